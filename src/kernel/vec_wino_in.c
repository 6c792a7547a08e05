#include "kernel/vec_wino.h"

// A strip is this many tiles wide, and blocks of channels whose results share cache lines are done
// together: strip and results stay in the nearest cache.
enum { STRIP_TILES = 8, STRIP_MOST = STRIP_TILES * 4 + 2, TOGETHER = 16 / VEC_LANES };

static _Alignas(64) const float zeros[STRIP_MOST * VEC_LANES];

VEC_INLINE Six evaluate(Six x, const uint32_t m) {
    Six v = {0};
    if (m == 2) {
        v.a = x.c - x.a;
        v.b = x.c + x.b;
        v.c = x.c - x.b;
        v.d = x.d - x.b;
        return v;
    }
    const Vf p = vf_set(WINO_P), pp = p * p, q = vf_set(WINO_Q), qq = q * q;
    const Vf even_p = x.e - qq * x.c, odd_p = x.d - qq * x.b;
    const Vf even_q = x.e - pp * x.c, odd_q = x.d - pp * x.b;
    v.a = even_q - qq * (x.c - pp * x.a);
    v.b = even_p + p * odd_p;
    v.c = even_p - p * odd_p;
    v.d = even_q + q * odd_q;
    v.e = even_q - q * odd_q;
    v.f = (x.f - pp * x.d) - qq * odd_q;
    return v;
}

// Evaluates the columns of a row of tiles: strip[column][point]. Columns outside the image are 0.
VEC_INLINE void fill_strip(const ConvShape *s, const float *plane, const uint32_t m, WinoRow r,
                           float *strip) {
    const uint32_t t = m + 2;
    const int32_t  top = (int32_t)(r.y * m) - (int32_t)s->pt;
    const int32_t  left = (int32_t)(r.x * m) - (int32_t)s->pl, n = (int32_t)(r.n * m + 2);
    const int32_t  width = (int32_t)s->iw, height = (int32_t)s->ih;
    int32_t        first = left < 0 ? -left : 0, last = left + n > width ? width - left : n;
    if (first > n) first = n;
    if (last < first) last = first;
    const float *from[6];
    for (int32_t i = 0; i < 6; i++) {
        const int32_t y = top + i;
        const bool    inside = i < (int32_t)t && y >= 0 && y < height && first < last;
        from[i] = inside ? plane + ((size_t)y * s->iw + (size_t)(left + first)) * VEC_LANES : zeros;
    }
    const size_t step = (size_t)t * VEC_LANES;
    memset(strip, 0, (size_t)first * step * sizeof *strip);
    float *to = strip + (size_t)first * step;
    for (size_t at = 0; at < (size_t)(last - first) * VEC_LANES; at += VEC_LANES, to += step) {
        Six x = {vf_load(from[0] + at), vf_load(from[1] + at), vf_load(from[2] + at),
                 vf_load(from[3] + at), vf_load(from[4] + at), vf_load(from[5] + at)};
        six_store(to, VEC_LANES, evaluate(x, m), t);
    }
    memset(to, 0, (size_t)(n - last) * step * sizeof *strip);
}

// Evaluates the rows of one tile: inputs[point of the row][point of the column].
VEC_INLINE void fill_tile(const float *strip, const uint32_t m, size_t stride, float *inputs) {
    const uint32_t t = m + 2;
    for (uint32_t i = 0; i < t; i++) {
        Six x = six_load(strip + (size_t)i * VEC_LANES, (size_t)t * VEC_LANES, t);
        six_store(inputs + i * t * stride, stride, evaluate(x, m), t);
    }
}

VEC_INLINE void all_tiles(const Wino *w, const WinoPlan *p, const uint32_t m, uint32_t begin,
                          uint32_t end, uint32_t channel, uint32_t channels, float *inputs) {
    const ConvShape   *s = &w->shape;
    const size_t       plane = (size_t)s->ih * s->iw * VEC_LANES;
    _Alignas(64) float strip[STRIP_MOST * 6 * VEC_LANES];
    WinoRow            r;
    for (uint32_t tile = begin; tile < end; tile += r.n) {
        r = wino_row(p, tile, end, STRIP_TILES);
        for (uint32_t c = channel; c < channel + channels; c++) {
            fill_strip(s, w->x + ((size_t)r.image * p->channels + c) * plane, m, r, strip);
            for (uint32_t i = 0; i < r.n; i++)
                fill_tile(strip + (size_t)(i * m * (m + 2)) * VEC_LANES, m, p->point_stride,
                          inputs + (tile - begin + i) * p->tile_stride + c * VEC_LANES);
        }
    }
}

void VEC(wino_inputs)(const Wino *w, const WinoPlan *p, uint32_t begin, uint32_t end,
                      float *inputs) {
    for (uint32_t c = 0; c < p->channels; c += TOGETHER) {
        uint32_t n = p->channels - c < TOGETHER ? p->channels - c : TOGETHER;
        if (p->m == 2)
            all_tiles(w, p, 2, begin, end, c, n, inputs);
        else
            all_tiles(w, p, 4, begin, end, c, n, inputs);
    }
}
