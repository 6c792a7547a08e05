#include "kernel/ref/ref_cast.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fp.h"
#include "base/tensor.h"
#include "base/work_stop.h"
#include "kernel/nd_iter.h"
#include "kernel/wide_type.h"

void ref_cast(const Tensor *x, Tensor *y) {
    const WideType w = wide_type_of(x->dtype);
    int64_t        count = tensor_count(x);
    WideBlock      block;
    for (int64_t at = 0, n; at < count && !work_stopped(); at += n) {
        n = count - at < WIDE_BLOCK ? count - at : WIDE_BLOCK;
        wide_load(w, x, at, 1, n, &block);
        wide_store(w, &block, y, at, 1, n);
    }
}

// Whether v, rounded to type t, equals `exact`, a value of type t.
static bool same_in(DType t, double v, double exact) {
    switch (t) {
    case DT_F16: return half_to_f32(half_from_f32((float)v)) == (float)exact;
    case DT_BF16: return bf16_to_f32(bf16_from_f32((float)v)) == (float)exact;
    case DT_F32: return (float)v == (float)exact;
    default: return v == exact;
    }
}

// Digit i of d, which has `count` digits; zeros outside.
static char digit(const char *d, int count, int i) { return i >= 0 && i < count ? d[i] : '0'; }

// Writes 0.ddd * 10^point in positional notation: "0.01", "12.5", "300.0".
static int print_plain(const char *d, int count, int point, char *to) {
    int n = 0, first = point < 1 ? point - 1 : 0, last = count > point ? count : point + 1;
    for (int i = first; i < last; i++) {
        if (i == point) to[n++] = '.';
        to[n++] = digit(d, count, i);
    }
    to[n] = '\0';
    return n;
}

static int print_float(DType t, double v, char text[REF_CAST_TEXT]) {
    if (isnan(v)) return snprintf(text, REF_CAST_TEXT, "NaN");
    if (isinf(v)) return snprintf(text, REF_CAST_TEXT, "%s", v < 0 ? "-INF" : "INF");
    char e[REF_CAST_TEXT], d[REF_CAST_TEXT] = "";
    int  digits = 1, minus = signbit(v) != 0;
    for (; digits < 17; digits++) {
        (void)snprintf(e, sizeof e, "%.*e", digits - 1, v);
        if (same_in(t, strtod(e, NULL), v)) break;
    }
    if (digits == 17) (void)snprintf(e, sizeof e, "%.16e", v);
    long exponent = strtol(strchr(e, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent >= 16) return snprintf(text, REF_CAST_TEXT, "%s", e);
    for (int i = minus, k = 0; e[i] != 'e'; i++)
        if (e[i] != '.') d[k++] = e[i];
    if (minus) text[0] = '-';
    return minus + print_plain(d, digits, (int)exponent + 1, text + minus);
}

size_t ref_cast_print(const Tensor *x, int64_t i, char text[REF_CAST_TEXT]) {
    int n;
    if (x->dtype == DT_BOOL)
        n = snprintf(text, REF_CAST_TEXT, "%s", tensor_get_f64(x, i) != 0 ? "True" : "False");
    else if (dtype_is_float(x->dtype))
        n = print_float(x->dtype, tensor_get_f64(x, i), text);
    else if (wide_type_of(x->dtype) == WIDE_U64) {
        WideBlock b;
        wide_load(WIDE_U64, x, i, 1, 1, &b);
        n = snprintf(text, REF_CAST_TEXT, "%" PRIu64, b.u64[0]);
    } else {
        WideBlock b;
        wide_load(WIDE_I64, x, i, 1, 1, &b);
        n = snprintf(text, REF_CAST_TEXT, "%" PRId64, b.i64[0]);
    }
    return (size_t)n;
}

// Integers are not parsed through double, which cannot hold all of them; false if text is not one.
static bool read_integer(const char *text, Tensor *y, int64_t i) {
    WideBlock  b;
    char      *end = NULL;
    const bool natural = wide_type_of(y->dtype) == WIDE_U64;
    errno = 0;
    if (natural)
        b.u64[0] = strtoull(text, &end, 10);
    else
        b.i64[0] = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || (natural && strchr(text, '-') != NULL)) return false;
    wide_store(natural ? WIDE_U64 : WIDE_I64, &b, y, i, 1, 1);
    return true;
}

Err ref_cast_read(Str text, Tensor *y, int64_t i) {
    char copy[128], *end = copy;
    if (text.len > 0 && text.len < sizeof copy) memcpy(copy, text.at, text.len);
    copy[text.len < sizeof copy ? text.len : 0] = '\0';
    if (y->dtype == DT_BOOL && (strcasecmp(copy, "true") == 0 || strcasecmp(copy, "false") == 0)) {
        tensor_set(y, i, (copy[0] | 32) == 't');
        return ERR_OK;
    }
    if (dtype_is_int(y->dtype) && copy[0] != '\0' && read_integer(copy, y, i)) return ERR_OK;
    double v = y->dtype == DT_F32 ? (double)strtof(copy, &end) : strtod(copy, &end);
    if (end == copy || *end != '\0' || strlen(copy) != text.len)
        return err_set(ERR_INVALID, "the text of element %" PRId64 " is not a number", i);
    tensor_set(y, i, v);
    return ERR_OK;
}

// Quotients and products are rounded to float, as inference runtimes do, so that ties round alike.

enum { CHUNK = 256 };

// Part of a row along inner, with scale and zero point per element.
typedef struct Chunk {
    double  x[CHUNK], scale[CHUNK], zero[CHUNK];
    int64_t n;
} Chunk;

static void quantize(Chunk *c) {
    for (int64_t i = 0; i < c->n && !work_stopped(); i++) {
        float q = (float)c->x[i] / (float)c->scale[i];
        c->x[i] = nearbyint((double)q) + c->zero[i];
    }
}

static void dequantize(Chunk *c) {
    WORK_EACH (i, c->n) {
        float q = (float)(c->x[i] - c->zero[i]);
        c->x[i] = (double)(q * (float)c->scale[i]);
    }
}

// Index of the scale of element (outer, axis, inner).
static int64_t scale_at(const RefQuant *p, int64_t o, int64_t a, int64_t i) {
    if (p->block <= 0) return p->block == 0 ? 0 : a;
    int64_t blocks = p->axis / p->block + (p->axis % p->block != 0);
    return (o * blocks + a / p->block) * p->inner + i;
}

static void each_chunk(const RefQuant *p, const Tensor *x, Tensor *y, void (*f)(Chunk *)) {
    Chunk   c = {.n = 0};
    int64_t step = p->block > 0 ? 1 : 0;
    for (int64_t row = 0; row < p->outer * p->axis && !work_stopped(); row++)
        for (int64_t i = 0; i < p->inner && !work_stopped(); i += CHUNK) {
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
    WORK_EACH (i, tensor_count(x)) {
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
    NdIter w = nd_iter_begin(y->rank, y->dims);
    nd_iter_broadcast(&w, a_scale);
    nd_iter_broadcast(&w, b_scale);
    nd_iter_broadcast(&w, y_scale);
    nd_iter_broadcast(&w, y_zero);
    for (; nd_iter_more(&w); nd_iter_next(&w)) {
        float factor = (float)tensor_get_f64(a_scale, w.off[0]) *
                       (float)tensor_get_f64(b_scale, w.off[1]) /
                       (float)tensor_get_f64(y_scale, w.off[2]);
        float scaled = (float)tensor_get_f64(sum, w.at) * factor;
        tensor_set(y, w.at, nearbyint((double)scaled) + tensor_get_f64(y_zero, w.off[3]));
    }
}

void ref_scale_sums(const Tensor *sum, const Tensor *a_scale, const Tensor *b_scale,
                    const Tensor *bias, Tensor *y) {
    const Tensor none = {0};
    NdIter       w = nd_iter_begin(y->rank, y->dims);
    nd_iter_broadcast(&w, a_scale);
    nd_iter_broadcast(&w, b_scale);
    nd_iter_broadcast(&w, bias != NULL ? bias : &none);
    for (; nd_iter_more(&w); nd_iter_next(&w)) {
        double v = tensor_get_f64(sum, w.at) * tensor_get_f64(a_scale, w.off[0]) *
                   tensor_get_f64(b_scale, w.off[1]);
        tensor_set(y, w.at, v + (bias != NULL ? tensor_get_f64(bias, w.off[2]) : 0));
    }
}
