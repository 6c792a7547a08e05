#include "kernel/vec_gemm.h"

#define UNROLL _Pragma("GCC unroll 16")

// One row meets up to GEMM_ROW_VECS vectors: as fast as the weights come in, so that nothing else
// counts than many streams that run on, and enough sums to hide the time an addition takes.
VEC_INLINE void add_up(const Tile *t, const uint32_t vecs, const uint32_t steps, Vf *sums) {
    const float *x = t->rows[0], *w = t->weights;
    Vf           s[GEMM_ROW_VECS] = {0};
    uint32_t     k = 0;
    for (; k + steps <= t->depth; k += steps) {
        UNROLL for (uint32_t i = 0; i < steps; i++) {
            const Vf b = vf_set(x[k + i]);
            UNROLL for (uint32_t v = 0; v < vecs; v++) {
                s[i * vecs + v] +=
                    b * vf_load(w + v * t->weight_stride + (size_t)(k + i) * VEC_LANES);
            }
        }
    }
    for (; k < t->depth; k++) {
        const Vf b = vf_set(x[k]);
        UNROLL for (uint32_t v = 0; v < vecs; v++) {
            s[v] += b * vf_load(w + v * t->weight_stride + (size_t)k * VEC_LANES);
        }
    }
    UNROLL for (uint32_t v = 0; v < vecs; v++) {
        sums[v] = s[v];
        UNROLL for (uint32_t i = 1; i < steps; i++) sums[v] += s[i * vecs + v];
    }
}

VEC_INLINE void row(const Tile *t, const uint32_t vecs, const uint32_t steps) {
    const Vf lo = vf_set(t->lo), hi = vf_set(t->hi);
    Vf       sums[GEMM_ROW_VECS];
    add_up(t, vecs, steps, sums);
    for (uint32_t v = 0; v < vecs; v++) {
        float *out = t->out + v * t->vec_stride;
        Vf     x = sums[v];
        if (t->more)
            x += vf_load(out);
        else if (t->bias != NULL)
            x += vf_load(t->bias + (size_t)v * VEC_LANES);
        if (t->last && t->add != NULL) x += vf_load(t->add + v * t->vec_stride);
        if (t->last) x = vf_min(hi, vf_max(lo, x));
        vf_store(out, x);
    }
}

void VEC(gemm_row)(const Tile *t, uint32_t vecs) {
    switch (vecs) {
    case 1: row(t, 1, 8); return;
    case 2: row(t, 2, 4); return;
    case 3: row(t, 3, 2); return;
    case 4: row(t, 4, 2); return;
    case 5: row(t, 5, 1); return;
    case 6: row(t, 6, 1); return;
    case 7: row(t, 7, 1); return;
    default: row(t, 8, 1); return;
    }
}
