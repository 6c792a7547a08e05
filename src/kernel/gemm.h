// Gemm: batched row-major matrix products with a fused epilogue.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/elementwise.h"
#include "kernel/isa.h"
#include "kernel/version.h"

// One-row products (m == 1) use more vectors at a time than register tiles hold.
enum { GEMM_BATCH_DIMS = 3, GEMM_ROW_VECS = 8, GEMM_WIDEN_ROWS = 4 };

// The matrix of batch index (i0, i1, i2) starts at float i0 * batch[0] + i1 * batch[1] + i2 *
// batch[2]; stride 0 shares one matrix along that batch dimension.
typedef struct GemmOperand {
    size_t row;                     // leading dimension: floats between rows as stored
    size_t batch[GEMM_BATCH_DIMS];  // batch strides in floats
    bool   transposed;              // stored transposed: a as [k][m], b as [n][k]; not for y
} GemmOperand;

// Packed weights in memory: floats, or narrower numbers that the kernel widens (narrow_weights.h).
typedef enum GemmWeights { GEMM_F32, GEMM_F16, GEMM_BF16, GEMM_U4, GEMM_U8 } GemmWeights;

// y [m][n] = epilogue(scale * a [m][k] b [k][n]) per batch index.
typedef struct GemmShape {
    uint32_t    m, n, k;
    uint32_t    batch[GEMM_BATCH_DIMS];  // sizes, outermost first; unused ones are 1
    GemmOperand a, b, y;
    bool        packed;   // b comes from gemm_pack; of b only its batch strides are read
    float       scale;    // not used if packed: gemm_pack applied it
    GemmWeights weights;  // not GEMM_F32: b comes from narrow_pack, `packed` is false
    uint32_t    block;    // of GEMM_U4 and GEMM_U8: elements along k with one scale
    bool        zeros;    // blocks have zero points, else all are half the range
} GemmShape;

// Version.pack: where the register tile reads rows of a.
typedef enum GemmPack {
    GEMM_ROWS,   // in place
    GEMM_COPY,   // from a copy: for rows that alias in the cache, or a transposed a
    GEMM_WIDEN,  // in place or from a copy; narrow weights are widened in registers, for few rows
} GemmPack;

// Arguments of isa->gemm(&gemm, part).
typedef struct Gemm {
    GemmShape    shape;
    Version      version;  // one of gemm_versions
    const float *a;
    const void  *b;  // floats, or narrow weights
    float       *y;
    Epilogue     epilogue;  // bias and PER_LANE arguments are shared by the batch
} Gemm;

GemmShape gemm_shape(uint32_t m, uint32_t n, uint32_t k);  // one product with packed weights

// Packed weights are panels [ceil(n / lanes)][k][lanes]; columns beyond n are 0.
size_t gemm_pack_bytes(uint32_t n, uint32_t k, const Isa *isa);
void   gemm_pack(uint32_t n, uint32_t k, const float *b, size_t row, bool transposed, float scale,
                 const Isa *isa, float *out);

// Writes at least 1 and at most max versions, the one expected to be fastest first; returns how
// many.
uint32_t gemm_versions(const GemmShape *s, const Isa *isa, const CacheSizes *caches, Version *out,
                       uint32_t max);
uint32_t gemm_tasks(const GemmShape *s, const Isa *isa, const Version *v);
size_t   gemm_scratch(const GemmShape *s, const Isa *isa, const Version *v);  // bytes per part
Traffic gemm_traffic(const GemmShape *s, const Isa *isa, const Version *v, const CacheSizes *caches,
                     uint32_t parts);

static inline uint32_t gemm_batch_count(const GemmShape *s) {
    return s->batch[0] * s->batch[1] * s->batch[2];
}

// Grid of tasks of one matrix of the batch. A part runs neighbouring cells along the inner axis as
// one rectangle.
typedef struct GemmGrid {
    uint32_t down, across;   // cells
    uint32_t rows, columns;  // per cell: rows, vectors
    bool     down_first;     // the inner axis: down, else across
} GemmGrid;

GemmGrid gemm_grid(const GemmShape *s, const Version *v, uint32_t lanes);

// Layout of a part's scratch: offsets in floats, and its end.
typedef struct GemmScratch {
    size_t copy, copy_row;  // copy of a: [rows][copy_row]
    size_t panels;          // packed b: [columns][k][lanes]
    size_t edge, edge_row;  // last panel if it is wider than y: [rows][edge_row]
    size_t sums;            // of GEMM_WIDEN: sums of a by block, [rows][blocks]
    size_t end;
} GemmScratch;

GemmScratch gemm_scratch_layout(const GemmShape *s, const Version *v, uint32_t lanes);
