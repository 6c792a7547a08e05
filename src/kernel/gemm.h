// Gemm: products of matrices and of stacks of them, row-major, with what follows fused in.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/elementwise.h"
#include "kernel/isa.h"
#include "kernel/version.h"

// A product of one row takes more vectors at a time than register tiles have.
enum { GEMM_BATCH_DIMS = 3, GEMM_ROW_VECS = 8 };

// One matrix of the stack begins at the sum of place[i] * batch[i] numbers; 0: all places share it.
typedef struct GemmOperand {
    size_t row;                     // numbers from a row, as it lies in memory, to the next
    size_t batch[GEMM_BATCH_DIMS];  // from a place of the stack to the next
    bool   transposed;              // lies transposed: a as [k][m], b as [n][k]. Not for y
} GemmOperand;

// y [m][n] = epilogue(scale * a [m][k] b [k][n]) for each of batch[0] * batch[1] * batch[2] places.
typedef struct GemmShape {
    uint32_t    m, n, k;
    uint32_t    batch[GEMM_BATCH_DIMS];  // outermost first; 1 where not used
    GemmOperand a, b, y;
    bool  packed;  // b is what gemm_pack made: its row and transposed say nothing, its stack does
    float scale;   // packed: not used, it is in there
} GemmShape;

// How rows reach the register tile: Version.pack.
typedef enum GemmPack {
    GEMM_ROWS,  // where they lie
    GEMM_COPY,  // from a copy, for rows that would meet in the same cache sets, or lie transposed
} GemmPack;

typedef struct Gemm {
    GemmShape    shape;
    Version      version;  // one of gemm_versions
    const float *a, *b;
    float       *y;
    Epilogue     epilogue;  // bias and LANES arguments are shared by the batch, EACH lie as y
} Gemm;

// Vector kernel: isa->gemm(gemm, part).

GemmShape gemm_shape(uint32_t m, uint32_t n, uint32_t k);  // one dense product of packed weights

// Packed weights: [ceil(n / lanes)][k][lanes], columns beyond n are 0.
size_t gemm_pack_bytes(uint32_t n, uint32_t k, const Isa *isa);
void   gemm_pack(uint32_t n, uint32_t k, const float *b, size_t row, bool transposed, float scale,
                 const Isa *isa, float *out);

// The best guess comes first. Returns how many were written, at least 1.
uint32_t gemm_versions(const GemmShape *s, const Isa *isa, const CacheSizes *caches, Version *out,
                       uint32_t max);
uint32_t gemm_tasks(const GemmShape *s, const Isa *isa, const Version *v);
size_t   gemm_scratch(const GemmShape *s, const Isa *isa, const Version *v);  // bytes of each part
Traffic gemm_traffic(const GemmShape *s, const Isa *isa, const Version *v, const CacheSizes *caches,
                     uint32_t parts);

static inline uint32_t gemm_batch_count(const GemmShape *s) {
    return s->batch[0] * s->batch[1] * s->batch[2];
}

// The grid of tasks of one place. Tasks side by side along the inner axis are computed as one.
typedef struct GemmGrid {
    uint32_t down, across;   // cells
    uint32_t rows, columns;  // of a cell: rows, vectors
    bool     down_first;     // the inner axis: down, else across
} GemmGrid;

GemmGrid gemm_grid(const GemmShape *s, const Version *v, uint32_t lanes);

// Where the scratch of a part has what: offsets and an end, in numbers.
typedef struct GemmRoom {
    size_t copy, copy_row;  // [rows][copy_row] of a
    size_t panels;          // [columns][k][lanes] of b
    size_t edge, edge_row;  // [rows][edge_row]: sums of the panel that y has no room for
    size_t end;
} GemmRoom;

GemmRoom gemm_room(const GemmShape *s, const Version *v, uint32_t lanes);
