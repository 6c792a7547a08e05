#include "kernel/vec_finish.h"
#include "kernel/vec_wino.h"

typedef struct Place {
    const float *add;  // NULL: none
    float       *y;
    size_t       stride;  // from one row of outputs to the next
    uint32_t     rows, columns;
} Place;

// From values at the points to the m outputs.
VEC_INLINE Six interpolate(Six x, const uint32_t m) {
    Six y = {0};
    if (m == 2) {
        y.a = x.a + (x.b + x.c);
        y.b = x.d + (x.b - x.c);
        return y;
    }
    const Vf p = vf_set(WINO_P), pp = p * p, q = vf_set(WINO_Q), qq = q * q;
    const Vf ppp = pp * p, qqq = qq * q;
    const Vf even_p = x.b + x.c, odd_p = x.b - x.c, even_q = x.d + x.e, odd_q = x.d - x.e;
    y.a = x.a + (even_p + even_q);
    y.b = p * odd_p + q * odd_q;
    y.c = pp * even_p + qq * even_q;
    y.d = ppp * odd_p + (qqq * odd_q + x.f);
    return y;
}

VEC_INLINE void put(const Place *to, size_t at, Vf v, Vf lo, Vf hi) {
    if (to->add != NULL) v += vf_load(to->add + at);
    vf_store(to->y + at, vf_min(hi, vf_max(lo, v)));
}

VEC_INLINE void one_tile(const float *products, const uint32_t m, Vf bias, Vf lo, Vf hi,
                         const Place *to) {
    const uint32_t     t = m + 2;
    _Alignas(64) float half[4 * 6 * VEC_LANES];
    for (uint32_t j = 0; j < t; j++) {
        Six x = six_load(products + (size_t)j * VEC_LANES, (size_t)t * VEC_LANES, t);
        six_store(half + (size_t)j * VEC_LANES, (size_t)t * VEC_LANES, interpolate(x, m), m);
    }
    for (uint32_t i = 0; i < to->rows; i++) {
        Six    x = six_load(half + (size_t)(i * t) * VEC_LANES, VEC_LANES, t);
        Six    y = interpolate(x, m);
        size_t at = i * to->stride;
        put(to, at, y.a + bias, lo, hi);
        if (to->columns > 1) put(to, at + VEC_LANES, y.b + bias, lo, hi);
        if (m > 2 && to->columns > 2) put(to, at + 2 * VEC_LANES, y.c + bias, lo, hi);
        if (m > 2 && to->columns > 3) put(to, at + 3 * VEC_LANES, y.d + bias, lo, hi);
    }
}

VEC_INLINE uint32_t at_most(uint32_t a, uint32_t b) { return a < b ? a : b; }

// One tile and vector: whole tiles get code of their own, without tests.
VEC_INLINE void place(const Wino *w, const uint32_t m, const float *products, size_t at,
                      uint32_t vec, uint32_t rows, uint32_t columns) {
    const Finish *f = &w->finish;
    const Vf      bias = f->bias != NULL ? vf_load(f->bias + vec * VEC_LANES) : (Vf){0};
    const Vf      lo = vf_set(f->lo), hi = vf_set(f->hi);
    Place to = {f->add != NULL ? f->add + at : NULL, w->y + at, (size_t)w->shape.ow * VEC_LANES,
                rows, columns};
    if (rows < m || columns < m) {
        one_tile(products, m, bias, lo, hi, &to);
        return;
    }
    to.rows = to.columns = m;
    if (to.add == NULL)  // NOLINT(bugprone-branch-clone): each copy is inlined for its own case
        one_tile(products, m, bias, lo, hi, &to);
    else
        one_tile(products, m, bias, lo, hi, &to);
}

VEC_INLINE void all_tiles(const Wino *w, const WinoPlan *p, const uint32_t m, uint32_t begin,
                          uint32_t end, uint32_t first, uint32_t last, const float *products) {
    const ConvShape *s = &w->shape;
    WinoRow          r;
    for (uint32_t tile = begin; tile < end; tile += r.n) {
        r = wino_row(p, tile, end, UINT32_MAX);
        const uint32_t rows = at_most(m, s->oh - r.y * m);
        for (uint32_t i = 0; i < r.n; i++) {
            const uint32_t x = (r.x + i) * m;
            const float   *from = products + (tile - begin + i) * p->product_stride;
            for (uint32_t v = first; v < last; v++, from += p->points * VEC_LANES) {
                size_t plane = ((size_t)r.image * p->vecs + v) * s->oh + r.y * m;
                place(w, m, from, (plane * s->ow + x) * VEC_LANES, v, rows, at_most(m, s->ow - x));
            }
        }
    }
}

static void chain_tiles(const Wino *w, const WinoPlan *p, uint32_t begin, uint32_t end,
                        uint32_t first, uint32_t last) {
    const ConvShape *s = &w->shape;
    WinoRow          r;
    for (uint32_t tile = begin; tile < end; tile += r.n) {
        r = wino_row(p, tile, end, UINT32_MAX);
        const uint32_t top = r.y * p->m, bottom = at_most(s->oh, top + p->m);
        const uint32_t left = r.x * p->m, right = at_most(s->ow, left + r.n * p->m);
        for (uint32_t v = first; v < last; v++)
            for (uint32_t y = top; y < bottom; y++) {
                size_t row = ((size_t)r.image * p->vecs + v) * s->oh + y;
                finish_span(&w->finish, w->y, (row * s->ow + left) * VEC_LANES,
                            (size_t)v * VEC_LANES, (size_t)(right - left) * VEC_LANES);
            }
    }
}

void VEC(wino_outputs)(const Wino *w, const WinoPlan *p, uint32_t begin, uint32_t end,
                       uint32_t first, uint32_t last, const float *products) {
    if (p->m == 2)
        all_tiles(w, p, 2, begin, end, first, last, products);
    else
        all_tiles(w, p, 4, begin, end, first, last, products);
    if (w->finish.chain != NULL) chain_tiles(w, p, begin, end, first, last);
}
