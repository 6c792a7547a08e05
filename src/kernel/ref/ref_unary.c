#include "kernel/ref/ref_elementwise.h"

#include <math.h>

#include "base/err.h"
#include "base/tensor.h"
#include "base/work_stop.h"
#include "kernel/wide_type.h"

typedef void Row32(float a, float b, const float *x, float *y, int64_t n);
typedef void Row64(double a, double b, const double *x, double *y, int64_t n);

#define ROW(id, T, suffix, expr)                                                                   \
    static void id##suffix(T a, T b, const T *x, T *y, int64_t n) {                                \
        (void)a, (void)b;                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T v = x[i];                                                                      \
            y[i] = expr;                                                                           \
        }                                                                                          \
    }

// NaN propagates: both comparisons are false.
static float  unit_f32(float v) { return v < 0 ? 0 : v > 1 ? 1 : v; }
static double unit_f64(double v) { return v < 0 ? 0 : v > 1 ? 1 : v; }
static float  softplus_f32(float v) { return v > 0 ? v + log1pf(expf(-v)) : log1pf(expf(v)); }
static double softplus_f64(double v) { return v > 0 ? v + log1p(exp(-v)) : log1p(exp(v)); }

#define F(name)     name##f
#define G(name)     name##_f32
#define C(number)   number##f
#define X(id, expr) ROW(id, float, _f32, expr)
#include "kernel/ref/ref_unary.def"
#undef X
#undef F
#undef G
#undef C

#define F(name)     name
#define G(name)     name##_f64
#define C(number)   number
#define X(id, expr) ROW(id, double, _f64, expr)
#include "kernel/ref/ref_unary.def"
#undef X

static Row32 *const rows32[REF_UNARY_COUNT] = {
#define X(id, expr) [REF_##id] = id##_f32,
#include "kernel/ref/ref_unary.def"
#undef X
};

static Row64 *const rows64[REF_UNARY_COUNT] = {
#define X(id, expr) [REF_##id] = id##_f64,
#include "kernel/ref/ref_unary.def"
#undef X
};

static bool exact_on_ints(RefUnary f) {
    return f == REF_ABS || f == REF_NEG || f == REF_SIGN || f == REF_RELU || f >= REF_BIT_NOT;
}

static void row_i64(RefUnary f, const int64_t *x, int64_t *y, int64_t n) {
    WORK_EACH (i, n) {
        const int64_t v = x[i], minus = (int64_t)(0 - (uint64_t)v);
        y[i] = f == REF_ABS    ? (v < 0 ? minus : v)
               : f == REF_NEG  ? minus
               : f == REF_SIGN ? (v > 0) - (v < 0)
               : f == REF_RELU ? (v > 0 ? v : 0)
                               : ~v;
    }
}

static void row_u64(RefUnary f, const uint64_t *x, uint64_t *y, int64_t n) {
    WORK_EACH (i, n) {
        const uint64_t v = x[i];
        y[i] = f == REF_NEG       ? 0 - v
               : f == REF_SIGN    ? v > 0
               : f == REF_BIT_NOT ? ~v
               : f == REF_NOT     ? v == 0
                                  : v;
    }
}

static WideType wide_for(RefUnary f, DType t) {
    WideType w = wide_type_of(t);
    CHECK(f < REF_BIT_NOT || w == WIDE_I64 || w == WIDE_U64);
    return (w == WIDE_I64 || w == WIDE_U64) && !exact_on_ints(f) ? WIDE_F64 : w;
}

void ref_unary(RefUnary f, float a, float b, const Tensor *x, Tensor *y) {
    const WideType w = wide_for(f, x->dtype);
    const bool     direct = wide_is_native(w, y->dtype);
    int64_t        count = tensor_count(x);
    WideBlock      in, out;
    for (int64_t at = 0, n; at < count && !work_stopped(); at += n) {
        n = count - at < WIDE_BLOCK ? count - at : WIDE_BLOCK;
        const void *from = wide_view(w, x, at, 1, n, &in);
        void *to = direct ? (char *)y->data + (size_t)at * dtype_size(y->dtype) : (void *)&out;
        switch (w) {
        case WIDE_F32: rows32[f](a, b, from, to, n); break;
        case WIDE_F64: rows64[f](a, b, from, to, n); break;
        case WIDE_I64: row_i64(f, from, to, n); break;
        case WIDE_U64: row_u64(f, from, to, n); break;
        }
        if (!direct) wide_store(w, &out, y, at, 1, n);
    }
}

void ref_is_nan(const Tensor *x, Tensor *y) {
    uint8_t *to = y->data;
    WORK_EACH (i, tensor_count(x)) {
        double v = tensor_get_f64(x, i);
        to[i] = v != v;
    }
}

void ref_is_inf(bool negative, bool positive, const Tensor *x, Tensor *y) {
    uint8_t *to = y->data;
    WORK_EACH (i, tensor_count(x)) {
        double v = tensor_get_f64(x, i);
        to[i] = isinf(v) && (v < 0 ? negative : positive);
    }
}
