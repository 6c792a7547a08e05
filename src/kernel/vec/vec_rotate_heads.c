#include "kernel/rotate_heads.h"
#include "kernel/vec/vec_int.h"

rotate_heads_fn VEC(rotate_heads);
cache_append_fn VEC(cache_append);

// Pairs (x[i], x[i + half]).
static void rotate_halves(const float *x, const float *c, const float *s, uint32_t half, float *y) {
    for (uint32_t i = 0; i < half; i += VEC_LANES) {
        uint32_t n = half - i < VEC_LANES ? half - i : VEC_LANES;
        const Vf a = vf_load_part(x + i, n), b = vf_load_part(x + half + i, n);
        const Vf u = vf_load_part(c + i, n), v = vf_load_part(s + i, n);
        vf_store_part(y + i, a * u - b * v, n);
        vf_store_part(y + half + i, a * v + b * u, n);
    }
}

static void rotate_neighbours(const float *x, const float *c, const float *s, uint32_t half,
                              float *y) {
    for (uint32_t i = 0; i < half; i++) {
        float a = x[2 * i], b = x[2 * i + 1];
        y[2 * i] = a * c[i] - b * s[i];
        y[2 * i + 1] = a * s[i] + b * c[i];
    }
}

static void rotate_head(const RotateHeads *r, int64_t row, const float *x, float *y) {
    const RotateShape *s = &r->shape;
    uint32_t           half = s->rotated / 2;
    const float       *cosines = r->cosines + row * half, *sines = r->sines + row * half;
    if (s->interleaved)
        rotate_neighbours(x, cosines, sines, half, y);
    else
        rotate_halves(x, cosines, sines, half, y);
    if (s->size > s->rotated)
        memcpy(y + s->rotated, x + s->rotated, (s->size - s->rotated) * sizeof *y);
}

void VEC(rotate_heads)(const RotateHeads *r, Part part) {
    const RotateShape *s = &r->shape;
    uint32_t           t, end;
    part_range(part, rotate_heads_tasks(s), &t, &end);
    for (; t < end; t++) {
        uint32_t b = t / s->length, at = t % s->length;
        int64_t  row = rotary_row(r, b, at);
        for (uint32_t h = 0; h < s->heads; h++)
            rotate_head(r, row, r->x + b * s->x.batch + h * s->x.head + at * s->x.step,
                        r->y + b * s->y.batch + h * s->y.head + at * s->y.step);
    }
}

static void append_head(const CacheAppend *a, uint32_t b, uint32_t h) {
    size_t   head = (size_t)b * a->heads + h, size = a->size;
    uint32_t past = cache_past(&a->cache, a->fresh, b), end = past + a->fresh;
    float   *y = a->y + head * a->rows * size;
    if (past > 0) memcpy(y, a->old + head * a->old_rows * size, past * size * sizeof *y);
    for (uint32_t i = 0; i < a->fresh; i++) {
        const float *x = a->x_at + b * a->x.batch + h * a->x.head + i * a->x.step;
        if (a->rotate != NULL)
            rotate_head(a->rotate, rotary_row(a->rotate, b, i), x, y + (past + i) * size);
        else
            memcpy(y + (past + i) * size, x, size * sizeof *y);
    }
    if (end < a->rows) memset(y + end * size, 0, (a->rows - end) * size * sizeof *y);
}

void VEC(cache_append)(const CacheAppend *a, Part part) {
    uint32_t t, end;
    part_range(part, cache_append_tasks(a), &t, &end);
    for (; t < end; t++) append_head(a, t / a->heads, t % a->heads);
}
