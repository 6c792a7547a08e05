// ChainMap: a chain over whole tensors, as a layer of its own; arguments broadcast to the result.
#pragma once

#include "base/tensor.h"
#include "kernel/chain.h"

// The result is row-major (or blocked, which is row-major over [n][blocks][pixels][lanes]). Made
// once at load, then run as often as wanted.
typedef struct ChainMap {
    const Chain *chain;        // borrowed
    uint32_t     rank, outer;  // the first `outer` dimensions are walked, the rest is one span
    size_t       dims[TENSOR_MAX_RANK], strides[CHAIN_MAX_ARGS][TENSOR_MAX_RANK];
    size_t       rows, span, piece;  // a task is a piece of a span
    uint32_t     pieces;             // of a span
    uint8_t      how[CHAIN_MAX_ARGS];
} ChainMap;

// Argument i of the chain is read with strides[i], in numbers; 0: the same along that dimension.
void chain_map_strided(ChainMap *m, const Chain *c, const Isa *isa, uint32_t rank,
                       const int64_t *dims, int64_t (*strides)[TENSOR_MAX_RANK]);

// args[i] broadcasts to the shape of y as ONNX has it; only shapes are looked at.
void chain_map_plain(ChainMap *m, const Chain *c, const Isa *isa, const Tensor *y,
                     const Tensor *const *args);

// What an argument of a blocked result holds.
typedef enum ChainExtent {
    CHAIN_SAME,      // [n][blocks][pixels][lanes], as the result
    CHAIN_IMAGES,    // [n][blocks][lanes], a number per image and channel
    CHAIN_CHANNELS,  // [blocks][lanes], a number per channel
    CHAIN_PIXELS,    // [n][pixels], a number per image and pixel
    CHAIN_NUMBER,    // one number
} ChainExtent;

void chain_map_blocked(ChainMap *m, const Chain *c, const Isa *isa, int64_t n, int64_t channels,
                       int64_t pixels, const ChainExtent *args);

uint32_t chain_map_tasks(const ChainMap *m);

// out may be any argument that is not broadcast. No scratch.
void chain_map_run(const ChainMap *m, const Isa *isa, const float *const *in, float *out,
                   Part part);
