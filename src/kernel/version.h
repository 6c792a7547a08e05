// Version: the tuning parameters of a kernel call: algorithm, register tile, cache blocking, loop
// order and parallel split. One binary runs all versions of a kernel.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum Algo {
#define X(id, name, about) ALGO_##id,
#include "kernel/algo.def"
#undef X
    ALGO_COUNT
} Algo;

// Which operand stays in cache while the other streams.
typedef enum BlockOrder { ORDER_WEIGHT_STATIONARY, ORDER_INPUT_STATIONARY } BlockOrder;

// The axis that parts split first.
typedef enum Split { SPLIT_COLUMNS, SPLIT_ROWS, SPLIT_BOTH } Split;

// In GEMM terms: rows are pixels or rows of a product (m), columns are output channels or columns
// of a product (n), depth is the dimension summed over (k). Fields a kernel does not use are 0.
typedef struct Version {
    uint8_t  algo, order, split;
    uint8_t  tile_rows, tile_vecs;  // register tile: rows x vectors of columns
    uint8_t  pack;                  // packing or staging, by the kernel's own enum
    uint16_t rows, columns, depth;  // cache block: rows, vectors of columns, depth
} Version;

// Shared-cache footprint and traffic of a version, modelled from its blocking and the cache sizes.
typedef struct Traffic {
    size_t l3_bytes;         // reused data that does not fit the private caches
    size_t beyond_l2_bytes;  // moved between L2 and L3 or memory, all parts together
} Traffic;

typedef struct CacheSizes {
    size_t l1, l2, l3;  // bytes: per core, per core, shared
} CacheSizes;

const char *algo_name(Algo a);
void        version_text(const Version *v, char *out, size_t size);

// Appends v to out[0..*n) unless it is listed already or *n has reached max.
void version_add(Version v, Version *out, uint32_t *n, uint32_t max);

static inline bool version_same(const Version *a, const Version *b) {
    return memcmp(a, b, sizeof *a) == 0;  // the struct has no padding
}
