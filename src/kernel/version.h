// Version: one way to compute a heavy layer. A small record of parameters, not another binary.
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

// What stays close while the rest streams past.
typedef enum BlockOrder { ORDER_WEIGHT_STATIONARY, ORDER_INPUT_STATIONARY } BlockOrder;

// The axis that parts are cut along first.
typedef enum Split { SPLIT_COLUMNS, SPLIT_ROWS, SPLIT_BOTH } Split;

// Columns are output channels (or columns of a product), rows are pixels (or rows of a product),
// depth is what is summed over. What a family does not use is 0.
typedef struct Version {
    uint8_t  algo, order, split;
    uint8_t  tile_rows, tile_vecs;  // register tile: rows x (vectors of lanes columns)
    uint8_t  pack;                  // family's own: which packing or staging it uses
    uint16_t rows, columns, depth;  // cache blocks: rows, vectors of columns, numbers summed over
} Version;

// What a version asks of what cores share, from its blocking and the cache sizes.
typedef struct Traffic {
    size_t l3_bytes;         // kept hot beyond the private caches
    size_t beyond_l2_bytes;  // moved between L2 and further out, by all parts together
} Traffic;

typedef struct CacheSizes {
    size_t l1, l2, l3;  // bytes; of one core, one core, all cores
} CacheSizes;

const char *algo_name(Algo a);
void        version_text(const Version *v, char *out, size_t size);

static inline bool version_same(const Version *a, const Version *b) {
    return memcmp(a, b, sizeof *a) == 0;  // it has no gaps
}
