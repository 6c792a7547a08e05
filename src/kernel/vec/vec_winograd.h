// Winograd's transforms of inputs and outputs, one vector of channels at a time.
#pragma once

#include "kernel/isa.h"
#include "kernel/vec/vec.h"
#include "kernel/winograd.h"

winograd_fn VEC(winograd);

// Tiles [begin, end) of the batch, all input channels, to inputs as the plan lays them out.
void VEC(winograd_inputs)(const Winograd *w, const WinogradPlan *p, uint32_t begin, uint32_t end,
                          float *inputs);

// Products of tiles [begin, end) and vectors of columns [first, last) to finished outputs.
void VEC(winograd_outputs)(const Winograd *w, const WinogradPlan *p, uint32_t begin, uint32_t end,
                           uint32_t first, uint32_t last, const float *products);

// Tiles side by side in one row of tiles of one image.
typedef struct WinogradRow {
    uint32_t image, y, x, n;
} WinogradRow;

VEC_INLINE WinogradRow winograd_row(const WinogradPlan *p, uint32_t tile, uint32_t end,
                                    uint32_t most) {
    WinogradRow r = {.x = tile % p->tiles_x, .n = end - tile};
    uint32_t    row = tile / p->tiles_x;
    r.image = row / p->tiles_y;
    r.y = row % p->tiles_y;
    if (r.n > p->tiles_x - r.x) r.n = p->tiles_x - r.x;
    if (r.n > most) r.n = most;
    return r;
}

// Points 0, +-WINOGRAD_P, +-WINOGRAD_Q, infinity for 4 outputs: of those with short exact squares
// and cubes, about the ones with the least rounding error.
#define WINOGRAD_P 0.625F
#define WINOGRAD_Q 1.5F

// Six numbers in one direction; of four, the last two are not used.
typedef struct Six {
    Vf a, b, c, d, e, f;
} Six;

VEC_INLINE Six six_load(const float *at, size_t stride, const uint32_t n) {
    const Vf none = {0};
    return (Six){vf_load(at),
                 vf_load(at + stride),
                 vf_load(at + 2 * stride),
                 vf_load(at + 3 * stride),
                 n > 4 ? vf_load(at + 4 * stride) : none,
                 n > 4 ? vf_load(at + 5 * stride) : none};
}

VEC_INLINE void six_store(float *at, size_t stride, Six v, const uint32_t n) {
    vf_store(at, v.a);
    if (n > 1) vf_store(at + stride, v.b);
    if (n > 2) vf_store(at + 2 * stride, v.c);
    if (n > 3) vf_store(at + 3 * stride, v.d);
    if (n > 4) vf_store(at + 4 * stride, v.e);
    if (n > 5) vf_store(at + 5 * stride, v.f);
}
