#include <math.h>

#include "kernel/pool.h"
#include "kernel/vec/vec.h"

pool_fn VEC(pool);

// One plane. Windows are reduced vertically first, into a padded row, then along that row: kh + kw
// steps instead of kh * kw, without bounds checks in the inner loops.
typedef struct Plane {
    const Pool  *p;
    const float *x;  // input plane
    float       *y;
    uint32_t     unit;   // floats per pixel
    uint32_t     width;  // pixels per padded row
    float       *row;    // [width][unit]
    float       *scale;  // [ow]: for averages, 1 / columns counted
} Plane;

enum { TILE = 8 };

#define UNROLL VEC_UNROLL(8)

// The maximum; NaN if either argument is NaN.
VEC_INLINE Vf                 max_or_nan(Vf a, Vf x) {
#if VEC_LANES == 8 && defined __AVX__
    const __m256 m = _mm256_max_ps((__m256)a, (__m256)x);
    return (Vf)_mm256_blendv_ps(m, (__m256)a, _mm256_cmp_ps((__m256)a, (__m256)a, _CMP_UNORD_Q));
#else
    return vf_choose((Vi)(a != a), a, vf_max(a, x));
#endif
}

VEC_INLINE Vf combine(const PoolKind kind, Vf a, Vf x) {
    return kind == POOL_MAX ? max_or_nan(a, x) : a + x;
}

VEC_INLINE float combine_scalar(const PoolKind kind, float a, float x) {
    if (kind == POOL_AVERAGE) return a + x;
    return x > a || isnan(x) ? x : a;
}

VEC_INLINE float identity(const PoolKind kind) { return kind == POOL_MAX ? -INFINITY : 0; }

// Taps k in [0, taps) with low <= at + k * apart < high.
static void taps_inside(ptrdiff_t at, uint32_t taps, uint32_t apart, ptrdiff_t low, ptrdiff_t high,
                        uint32_t *from, uint32_t *to) {
    const ptrdiff_t d = apart, room = high - at;
    const ptrdiff_t first = at < low ? (low - at + d - 1) / d : 0;
    const ptrdiff_t last = room > 0 ? (room + d - 1) / d : 0;
    *to = last < (ptrdiff_t)taps ? (uint32_t)last : taps;
    *from = first < (ptrdiff_t)*to ? (uint32_t)first : *to;
}

static float inverse_count(ptrdiff_t at, uint32_t taps, uint32_t apart, ptrdiff_t low,
                           ptrdiff_t high) {
    uint32_t from, to;
    taps_inside(at, taps, apart, low, high, &from, &to);
    return to > from ? 1 / (float)(to - from) : 0;
}

// Reduces `rows` rows, `apart` floats from each other, to one row of n floats (here `vecs`
// vectors).
VEC_INLINE void reduce_down_vecs(const PoolKind kind, const float *x, size_t apart, uint32_t rows,
                                 float *to, const uint32_t vecs) {
    Vf sum[TILE];
    UNROLL for (uint32_t v = 0; v < vecs; v++) sum[v] = vf_load(x + v * VEC_LANES);
    for (; rows > 1; rows--) {
        x += apart;
        UNROLL for (uint32_t v = 0; v < vecs; v++) {
            sum[v] = combine(kind, sum[v], vf_load(x + v * VEC_LANES));
        }
    }
    UNROLL for (uint32_t v = 0; v < vecs; v++) vf_store(to + v * VEC_LANES, sum[v]);
}

VEC_INLINE void reduce_down(const PoolKind kind, const float *x, size_t apart, uint32_t rows,
                            float *to, size_t n) {
    size_t i = 0;
    for (; i + TILE * VEC_LANES <= n; i += TILE * VEC_LANES)
        reduce_down_vecs(kind, x + i, apart, rows, to + i, TILE);
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        reduce_down_vecs(kind, x + i, apart, rows, to + i, 1);
    for (; i < n; i++) {
        float sum = x[i];
        for (uint32_t r = 1; r < rows; r++) sum = combine_scalar(kind, sum, x[r * apart + i]);
        to[i] = sum;
    }
}

VEC_INLINE void reduce_along_tile(const PoolKind kind, const Plane *j, const float *row,
                                  float scale, uint32_t pixel, float *to, const uint32_t tile) {
    const ConvShape *s = &j->p->shape;
    const size_t     step = (size_t)s->sw * VEC_LANES, apart = (size_t)s->dw * VEC_LANES;
    Vf               sum[TILE];
    row += pixel * step;
    UNROLL for (uint32_t p = 0; p < tile; p++) sum[p] = vf_load(row + p * step);
    for (uint32_t k = 1; k < s->kw; k++) {
        row += apart;
        UNROLL for (uint32_t p = 0; p < tile; p++) {
            sum[p] = combine(kind, sum[p], vf_load(row + p * step));
        }
    }
    UNROLL for (uint32_t p = 0; p < tile; p++) {
        if (kind == POOL_AVERAGE) sum[p] *= vf_set(scale * j->scale[pixel + p]);
        vf_store(to + (size_t)(pixel + p) * VEC_LANES, sum[p]);
    }
}

VEC_INLINE void reduce_along_blocked(const PoolKind kind, const Plane *j, float scale, float *to) {
    uint32_t pixel = 0;
    for (; pixel + TILE <= j->p->shape.ow; pixel += TILE)
        reduce_along_tile(kind, j, j->row, scale, pixel, to, TILE);
    for (; pixel < j->p->shape.ow; pixel++) reduce_along_tile(kind, j, j->row, scale, pixel, to, 1);
}

VEC_INLINE void reduce_along_plain(const PoolKind kind, const Plane *j, float scale, float *to) {
    const ConvShape *s = &j->p->shape;
    uint32_t         pixel = 0;
    for (; s->sw == 1 && pixel + VEC_LANES <= s->ow; pixel += VEC_LANES) {
        Vf sum = vf_load(j->row + pixel);
        for (uint32_t k = 1; k < s->kw; k++)
            sum = combine(kind, sum, vf_load(j->row + pixel + (size_t)k * s->dw));
        if (kind == POOL_AVERAGE) sum *= vf_set(scale) * vf_load(j->scale + pixel);
        vf_store(to + pixel, sum);
    }
    for (; pixel < s->ow; pixel++) {
        const float *row = j->row + (size_t)pixel * s->sw;
        float        sum = row[0];
        for (uint32_t k = 1; k < s->kw; k++)
            sum = combine_scalar(kind, sum, row[(size_t)k * s->dw]);
        to[pixel] = kind == POOL_AVERAGE ? sum * (scale * j->scale[pixel]) : sum;
    }
}

VEC_INLINE void rows_run(const PoolKind kind, const Plane *j, uint32_t row, uint32_t end) {
    const Pool      *p = j->p;
    const ConvShape *s = &p->shape;
    const size_t     line = (size_t)s->iw * j->unit;
    const uint32_t   left = s->pl < j->width ? s->pl : j->width, room = j->width - left;
    const size_t     n = (size_t)(room < s->iw ? room : s->iw) * j->unit;
    for (; row < end; row++) {
        const ptrdiff_t top = (ptrdiff_t)row * s->sh - s->pt;
        float          *inside = j->row + (size_t)left * j->unit, scale = 0;
        float          *to = j->y + (size_t)row * s->ow * j->unit;
        uint32_t        from, beyond;
        taps_inside(top, s->kh, s->dh, 0, s->ih, &from, &beyond);
        if (from < beyond)
            reduce_down(kind, j->x + (size_t)(top + (ptrdiff_t)(from * s->dh)) * line, s->dh * line,
                        beyond - from, inside, n);
        else
            for (size_t i = 0; i < n; i++) inside[i] = identity(kind);
        if (kind == POOL_AVERAGE)
            scale = p->count_pad
                        ? inverse_count(top, s->kh, s->dh, -(ptrdiff_t)s->pt, s->ih + p->pb)
                        : inverse_count(top, s->kh, s->dh, 0, s->ih);
        if (p->plain)
            reduce_along_plain(kind, j, scale, to);
        else
            reduce_along_blocked(kind, j, scale, to);
    }
}

// Global pooling of a plain plane: one contiguous reduction.
VEC_INLINE void global_run(const PoolKind kind, const float *x, size_t n, float *to) {
    Vf     sum[4];
    float  all[VEC_LANES], one = identity(kind);
    size_t i = 0;
    UNROLL for (uint32_t v = 0; v < 4; v++) sum[v] = vf_set(identity(kind));
    for (; i + 4 * VEC_LANES <= n; i += 4 * VEC_LANES) UNROLL for (uint32_t v = 0; v < 4; v++) {
            sum[v] = combine(kind, sum[v], vf_load(x + i + v * VEC_LANES));
        }
    for (; i + VEC_LANES <= n; i += VEC_LANES) sum[0] = combine(kind, sum[0], vf_load(x + i));
    vf_store(all, combine(kind, combine(kind, sum[0], sum[1]), combine(kind, sum[2], sum[3])));
    for (uint32_t l = 0; l < VEC_LANES; l++) one = combine_scalar(kind, one, all[l]);
    for (; i < n; i++) one = combine_scalar(kind, one, x[i]);
    *to = kind == POOL_AVERAGE ? one / (float)n : one;
}

static bool is_global(const Pool *p) {
    const ConvShape *s = &p->shape;
    return p->plain && s->kh == s->ih && s->kw == s->iw && s->oh == 1 && s->ow == 1 && s->pt == 0 &&
           s->pl == 0 && s->dh == 1 && s->dw == 1 && !p->count_pad;
}

// Prepares what all planes share: the padding of the row and the column counts of averages.
static void row_prepare(const Plane *j) {
    const Pool      *p = j->p;
    const ConvShape *s = &p->shape;
    for (size_t i = 0; i < (size_t)j->width * j->unit; i++) j->row[i] = identity(p->kind);
    for (uint32_t o = 0; p->kind == POOL_AVERAGE && o < s->ow; o++) {
        const ptrdiff_t at = (ptrdiff_t)o * s->sw - s->pl;
        j->scale[o] = p->count_pad
                          ? inverse_count(at, s->kw, s->dw, -(ptrdiff_t)s->pl, s->iw + p->pr)
                          : inverse_count(at, s->kw, s->dw, 0, s->iw);
    }
}

void VEC(pool)(const Pool *p, Part part) {
    const ConvShape *s = &p->shape;
    const uint32_t   rows = pool_rows(p, VEC_LANES), blocks = (s->oh + rows - 1) / rows;
    const bool       global = is_global(p), max = p->kind == POOL_MAX;
    Plane            j = {.p = p, .unit = p->plain ? 1 : VEC_LANES, .width = pool_width(p)};
    uint32_t         task, end;
    j.row = part.scratch;
    j.scale = j.row + (size_t)j.width * j.unit;
    const uint32_t images = s->n * (p->planes > 0 ? p->planes : 1);
    part_range(part, images * ((s->ic + j.unit - 1) / j.unit) * blocks, &task, &end);
    if (!global && task < end) row_prepare(&j);
    for (; task < end; task++) {
        const uint32_t row = task % blocks * rows, last = s->oh - row < rows ? s->oh : row + rows;
        j.x = p->x + (size_t)(task / blocks) * s->ih * s->iw * j.unit;
        j.y = p->y + (size_t)(task / blocks) * s->oh * s->ow * j.unit;
        if (global && max) global_run(POOL_MAX, j.x, (size_t)s->ih * s->iw, j.y);
        if (global && !max) global_run(POOL_AVERAGE, j.x, (size_t)s->ih * s->iw, j.y);
        if (!global && max) rows_run(POOL_MAX, &j, row, last);
        if (!global && !max) rows_run(POOL_AVERAGE, &j, row, last);
    }
}
