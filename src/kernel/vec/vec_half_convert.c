#include "kernel/half_convert.h"

#include "kernel/vec/vec_half.h"

half_convert_fn VEC(half_convert);

VEC_INLINE void widen(const uint16_t *from, size_t n, const bool bfloat, float *to) {
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        vf_store(to + i, bfloat ? vf_load_bf16(from + i) : vf_load_f16(from + i));
    if (i == n) return;
    uint16_t some[VEC_LANES] = {0};
    memcpy(some, from + i, (n - i) * sizeof *some);
    vf_store_some(to + i, bfloat ? vf_load_bf16(some) : vf_load_f16(some), (uint32_t)(n - i));
}

VEC_INLINE void store(uint16_t *to, Vf x, const bool bfloat) {
    if (bfloat)
        vf_store_bf16(to, x);
    else
        vf_store_f16(to, x);
}

VEC_INLINE void narrow(const float *from, size_t n, const bool bfloat, uint16_t *to) {
    size_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) store(to + i, vf_load(from + i), bfloat);
    if (i == n) return;
    uint16_t some[VEC_LANES];
    store(some, vf_load_some(from + i, (uint32_t)(n - i)), bfloat);
    memcpy(to + i, some, (n - i) * sizeof *some);
}

static void convert(const HalfConvert *h, size_t at, size_t n) {
    if (h->widen) {
        const uint16_t *from = (const uint16_t *)h->from + at;
        float          *to = (float *)h->to + at;
        if (h->bfloat)
            widen(from, n, true, to);
        else
            widen(from, n, false, to);
        return;
    }
    const float *from = (const float *)h->from + at;
    uint16_t    *to = (uint16_t *)h->to + at;
    if (h->bfloat)
        narrow(from, n, true, to);
    else
        narrow(from, n, false, to);
}

void VEC(half_convert)(const HalfConvert *h, Part part) {
    uint32_t t, end;
    part_range(part, half_convert_tasks(h), &t, &end);
    size_t from = (size_t)t * HALF_CONVERT_TASK, to = (size_t)end * HALF_CONVERT_TASK;
    if (to > h->n) to = h->n;
    if (from < to) convert(h, from, to - from);
}
