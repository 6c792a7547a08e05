#include "kernel/ref_reduce.h"

#include <math.h>

#include "base/number.h"
#include "kernel/fibers.h"
#include "kernel/wide.h"

#define WRAP(x, op, y) (int64_t)((uint64_t)(x)op(uint64_t)(y))

// The wide type of the element picks the member.
typedef struct Acc {
    double   f64, shift;
    int64_t  i64;
    uint64_t u64;
} Acc;

typedef void Step(const WideBlock *b, int64_t n, Acc *a);

#define STEP(id, T, member, expr)                                                                  \
    static void id##_##member(const WideBlock *b, int64_t n, Acc *a) {                             \
        const double shift = a->shift;                                                             \
        T            acc = a->member;                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T v = b->member[i];                                                              \
            (void)shift, (void)v;                                                                  \
            acc = (expr);                                                                          \
        }                                                                                          \
        a->member = acc;                                                                           \
    }
#define X(id, start, real, sint, uint)                                                             \
    STEP(id, double, f64, real) STEP(id, int64_t, i64, sint) STEP(id, uint64_t, u64, uint)
#include "kernel/ref_reduce.def"
#undef X

static const struct Row {
    double start;
    Step  *f64, *i64, *u64;
} rows[REF_REDUCE_COUNT] = {
#define X(id, start, real, sint, uint) [REF_REDUCE_##id] = {start, id##_f64, id##_i64, id##_u64},
#include "kernel/ref_reduce.def"
#undef X
};

// The start as the type of y holds it: infinity becomes the outermost integer.
static Acc start_of(RefReduce f, Wide w, Tensor *y, int64_t at) {
    Acc       a = {.shift = 0};
    WideBlock b;
    bool      lowest = y->dtype == DT_BOOL && f == REF_REDUCE_MAX;
    if (w == WIDE_F64) return (Acc){.f64 = rows[f].start};
    number_set(y, at, lowest ? 0 : rows[f].start);
    wide_load(w, y, at, 1, 1, &b);
    if (w == WIDE_I64)
        a.i64 = b.i64[0];
    else
        a.u64 = b.u64[0];
    return a;
}

static void fold(Step *step, Wide w, const Fibers *f, const Tensor *x, int64_t from, Acc *a) {
    WideBlock b;
    for (Walk r = f->runs; walk_more(&r); walk_next(&r))
        for (int64_t i = 0, n; i < f->n; i += n) {
            n = f->n - i < WIDE_BLOCK ? f->n - i : WIDE_BLOCK;
            wide_load(w, x, from + r.off[0] + i * f->stride, f->stride, n, &b);
            step(&b, n, a);
        }
}

static double finish_f64(RefReduce f, const Acc *a, int64_t length) {
    switch (f) {
    case REF_REDUCE_MEAN: return a->f64 / (double)length;
    case REF_REDUCE_L2: return sqrt(a->f64);
    case REF_REDUCE_LOG_SUM: return log(a->f64);
    case REF_REDUCE_LOG_SUM_EXP: return a->shift + log(a->f64);
    default: return a->f64;
    }
}

static void finish(RefReduce f, Wide w, const Acc *a, int64_t length, Tensor *y, int64_t at) {
    const bool mean = f == REF_REDUCE_MEAN && length > 0;
    WideBlock  b;
    if (w == WIDE_F64)
        b.f64[0] = finish_f64(f, a, length);
    else if (w == WIDE_I64)
        b.i64[0] = mean ? a->i64 / length : a->i64;
    else
        b.u64[0] = mean ? a->u64 / (uint64_t)length : a->u64;
    wide_store(w, &b, y, at, 1, 1);
}

static bool needs_reals(RefReduce f) {
    return f == REF_REDUCE_L2 || f == REF_REDUCE_LOG_SUM || f == REF_REDUCE_LOG_SUM_EXP;
}

void ref_reduce(RefReduce f, const bool along[TENSOR_MAX_RANK], const Tensor *x, Tensor *y) {
    const Wide   w = needs_reals(f) ? WIDE_F64 : wide_sum_of(x->dtype);
    const Fibers fibers = fibers_of(x, along);
    Step        *step = w == WIDE_F64 ? rows[f].f64 : w == WIDE_I64 ? rows[f].i64 : rows[f].u64;
    for (Walk k = fibers.kept; walk_more(&k); walk_next(&k)) {
        Acc a = start_of(f, w, y, k.at);
        if (f == REF_REDUCE_LOG_SUM_EXP) {
            Acc top = {.f64 = -INFINITY};
            fold(rows[REF_REDUCE_MAX].f64, w, &fibers, x, k.off[0], &top);
            a.shift = isfinite(top.f64) ? top.f64 : 0;
        }
        fold(step, w, &fibers, x, k.off[0], &a);
        finish(f, w, &a, fibers.length, y, k.at);
    }
}
