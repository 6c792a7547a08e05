#include "kernel/ref_quant.h"

#include <math.h>

#include "base/number.h"
#include "kernel/wide.h"
#include "kernel/walk.h"

// Quotients and products are floats, as runtimes have them: a tie there is a tie here.

enum { CHUNK = 256 };

// Part of one row along inner, with the scale and zero point of each element.
typedef struct Chunk {
    double  x[CHUNK], scale[CHUNK], zero[CHUNK];
    int64_t n;
} Chunk;

static void quantize(Chunk *c) {
    for (int64_t i = 0; i < c->n; i++) {
        float q = (float)c->x[i] / (float)c->scale[i];
        c->x[i] = nearbyint((double)q) + c->zero[i];
    }
}

static void dequantize(Chunk *c) {
    for (int64_t i = 0; i < c->n; i++) {
        float q = (float)(c->x[i] - c->zero[i]);
        c->x[i] = (double)(q * (float)c->scale[i]);
    }
}

// Where the scale of element (outer, axis, inner) is.
static int64_t scale_at(const RefQuant *p, int64_t o, int64_t a, int64_t i) {
    if (p->block <= 0) return p->block == 0 ? 0 : a;
    int64_t blocks = p->axis / p->block + (p->axis % p->block != 0);
    return (o * blocks + a / p->block) * p->inner + i;
}

static void each_chunk(const RefQuant *p, const Tensor *x, Tensor *y, void (*f)(Chunk *)) {
    Chunk   c = {.n = 0};
    int64_t step = p->block > 0 ? 1 : 0;
    for (int64_t row = 0; row < p->outer * p->axis; row++)
        for (int64_t i = 0; i < p->inner; i += CHUNK) {
            int64_t at = scale_at(p, row / p->axis, row % p->axis, i);
            c.n = p->inner - i < CHUNK ? p->inner - i : CHUNK;
            wide_read(x, row * p->inner + i, 1, c.n, c.x);
            wide_read(p->scale, at, step, c.n, c.scale);
            if (p->zero != NULL) wide_read(p->zero, at, step, c.n, c.zero);
            f(&c);
            wide_write(y, row * p->inner + i, 1, c.n, c.x);
        }
}

void ref_quantize(const RefQuant *p, const Tensor *x, Tensor *y) { each_chunk(p, x, y, quantize); }

void ref_dequantize(const RefQuant *p, const Tensor *x, Tensor *y) {
    each_chunk(p, x, y, dequantize);
}

void ref_quantize_dynamic(const Tensor *x, Tensor *y, float *scale, uint8_t *zero) {
    const float *v = x->data;
    float        low = 0, high = 0;
    for (int64_t i = 0; i < tensor_count(x); i++) {
        if (v[i] < low) low = v[i];
        if (v[i] > high) high = v[i];
    }
    *scale = high == low ? 1 : (high - low) / 255;
    float at = nearbyintf(-low / *scale);
    *zero = !(at > 0) ? 0 : at > 255 ? 255 : (uint8_t)at;
    Tensor   s = {.dtype = DT_F32, .data = scale}, z = {.dtype = DT_U8, .data = zero};
    RefQuant p = {.outer = 1, .axis = 1, .inner = tensor_count(x), .scale = &s, .zero = &z};
    ref_quantize(&p, x, y);
}

void ref_requantize(const Tensor *sum, const Tensor *a_scale, const Tensor *b_scale,
                    const Tensor *y_scale, const Tensor *y_zero, Tensor *y) {
    Walk w = walk_begin(y->rank, y->dims);
    walk_broadcast(&w, a_scale);
    walk_broadcast(&w, b_scale);
    walk_broadcast(&w, y_scale);
    walk_broadcast(&w, y_zero);
    for (; walk_more(&w); walk_next(&w)) {
        float factor = (float)number_f64(a_scale, w.off[0]) * (float)number_f64(b_scale, w.off[1]) /
                       (float)number_f64(y_scale, w.off[2]);
        float scaled = (float)number_f64(sum, w.at) * factor;
        number_set(y, w.at, nearbyint((double)scaled) + number_f64(y_zero, w.off[3]));
    }
}

void ref_scale_sums(const Tensor *sum, const Tensor *a_scale, const Tensor *b_scale,
                    const Tensor *bias, Tensor *y) {
    const Tensor none = {0};
    Walk         w = walk_begin(y->rank, y->dims);
    walk_broadcast(&w, a_scale);
    walk_broadcast(&w, b_scale);
    walk_broadcast(&w, bias != NULL ? bias : &none);
    for (; walk_more(&w); walk_next(&w)) {
        double v =
            number_f64(sum, w.at) * number_f64(a_scale, w.off[0]) * number_f64(b_scale, w.off[1]);
        number_set(y, w.at, v + (bias != NULL ? number_f64(bias, w.off[2]) : 0));
    }
}
