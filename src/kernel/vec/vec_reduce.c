#include "kernel/normalize.h"

#include "kernel/vec/vec_math.h"

reduce_fn VEC(reduce);

enum {
    STEP = 4 * VEC_LANES,
    WIDTH = REDUCE_VECS * VEC_LANES,
    BLOCK = 128 * VEC_LANES,  // floats accumulated in float before the double accumulator
    ROWS = 256,               // the same limit along columns, where a second float accumulates
};

// The accumulation behind a ReduceOp.
typedef enum Accumulate { SUM, SQUARES, ABS_VALUES, EXPS, MAXIMUM, MINIMUM, PRODUCT } Accumulate;

VEC_INLINE float identity_of(Accumulate f) {
    return f == MAXIMUM ? -INFINITY : f == MINIMUM ? INFINITY : f == PRODUCT ? 1 : 0;
}

// NaN propagates from either side.
VEC_INLINE Vf combine(Accumulate f, Vf a, Vf b) {
    if (f == MAXIMUM) return vf_choose((Vi)(a != a), a, vf_max(a, b));
    if (f == MINIMUM) return vf_choose((Vi)(a != a), a, vf_min(a, b));
    return f == PRODUCT ? a * b : a + b;
}

VEC_INLINE Vf term(Accumulate f, Vf x, Vf shift) {
    return f == SQUARES ? x * x : f == ABS_VALUES ? vf_abs(x) : f == EXPS ? vf_exp(x - shift) : x;
}

VEC_INLINE float across(Accumulate f, Vf x) {
#if VEC_LANES == 16
    x = combine(f, x, VEC_HALF(x));
#endif
    x = combine(f, x, VEC_FOURS(x));
    x = combine(f, x, VEC_TWOS(x));
    return combine(f, x, VEC_ONES(x))[0];
}

VEC_INLINE double combine_double(Accumulate f, double a, double b) {
    if (f == MAXIMUM) return a > b || a != a ? a : b;
    if (f == MINIMUM) return a < b || a != a ? a : b;
    return f == PRODUCT ? a * b : a + b;
}

// One block: bounds the rounding error of a float accumulator.
VEC_INLINE Vf reduce_block(Accumulate f, const float *x, size_t n, Vf shift) {
    const Vf none = vf_set(identity_of(f));
    Vf       acc[4] = {none, none, none, none};
    size_t   i = 0;
    for (; i + STEP <= n; i += STEP)
        for (int k = 0; k < 4; k++)
            acc[k] = combine(f, acc[k], term(f, vf_load(x + i + k * VEC_LANES), shift));
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        acc[0] = combine(f, acc[0], term(f, vf_load(x + i), shift));
    if (i < n) {
        const uint32_t some = (uint32_t)(n - i);
        const Vf       last = term(f, vf_load_some(x + i, some), shift);
        acc[1] = combine(f, acc[1], vf_choose(vi_before(some), last, none));
    }
    return combine(f, combine(f, acc[0], acc[1]), combine(f, acc[2], acc[3]));
}

VEC_INLINE double reduce_row(Accumulate f, const float *x, size_t n, float shift) {
    double total = (double)identity_of(f);
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t some = n - i < BLOCK ? n - i : BLOCK;
        total = combine_double(f, total,
                               (double)across(f, reduce_block(f, x + i, some, vf_set(shift))));
    }
    return total;
}

static double row_sum(const float *x, size_t n) { return reduce_row(SUM, x, n, 0); }
static double row_squares(const float *x, size_t n) { return reduce_row(SQUARES, x, n, 0); }
static double row_abs(const float *x, size_t n) { return reduce_row(ABS_VALUES, x, n, 0); }
static double row_max(const float *x, size_t n) { return reduce_row(MAXIMUM, x, n, 0); }
static double row_min(const float *x, size_t n) { return reduce_row(MINIMUM, x, n, 0); }
static double row_product(const float *x, size_t n) { return reduce_row(PRODUCT, x, n, 0); }

static double row_log_sum_exp(const float *x, size_t n) {
    const double top = row_max(x, n), shift = isfinite(top) ? top : 0;
    return shift + log(reduce_row(EXPS, x, n, (float)shift));
}

static float run_row(ReduceOp op, const float *x, size_t n) {
    switch (op) {
    case REDUCE_SUM: return (float)row_sum(x, n);
    case REDUCE_MEAN: return (float)(row_sum(x, n) / (double)n);
    case REDUCE_MAX: return (float)row_max(x, n);
    case REDUCE_MIN: return (float)row_min(x, n);
    case REDUCE_PROD: return (float)row_product(x, n);
    case REDUCE_SUM_SQUARE: return (float)row_squares(x, n);
    case REDUCE_L1: return (float)row_abs(x, n);
    case REDUCE_L2: return (float)sqrt(row_squares(x, n));
    case REDUCE_LOG_SUM: return (float)log(row_sum(x, n));
    default: return (float)row_log_sum_exp(x, n);
    }
}

// `vecs` vectors of neighbouring columns, the last with only `some` lanes; n rows `stride` floats
// apart.
typedef struct StridedColumns {
    const float *x;
    size_t       n, stride;
    uint32_t     vecs, some;
} StridedColumns;

VEC_INLINE Vf columns_load(const StridedColumns *r, size_t row, uint32_t v) {
    const float *at = r->x + row * r->stride + v * VEC_LANES;
    return v + 1 == r->vecs && r->some < VEC_LANES ? vf_load_some(at, r->some) : vf_load(at);
}

// REDUCE_VECS independent accumulators hide the latency of an addition, also for a single vector.
VEC_INLINE void reduce_columns(Accumulate f, const StridedColumns *r, const Vf *shift, Vf *total) {
    const Vf       none = vf_set(identity_of(f));
    const uint32_t ways = REDUCE_VECS / r->vecs;
    for (uint32_t v = 0; v < r->vecs; v++) total[v] = none;
    for (size_t i = 0; i < r->n; i += ROWS) {
        const size_t end = r->n - i < ROWS ? r->n : i + ROWS;
        size_t       k = i;
        Vf           acc[REDUCE_VECS];
        for (uint32_t w = 0; w < REDUCE_VECS; w++) acc[w] = none;
        for (; k + ways <= end; k += ways)
            for (uint32_t w = 0; w < REDUCE_VECS; w++) {
                const uint32_t v = w % r->vecs;
                acc[w] = combine(f, acc[w], term(f, columns_load(r, k + w / r->vecs, v), shift[v]));
            }
        for (; k < end; k++)
            for (uint32_t v = 0; v < r->vecs; v++)
                acc[v] = combine(f, acc[v], term(f, columns_load(r, k, v), shift[v]));
        for (uint32_t w = 0; w < REDUCE_VECS; w++)
            total[w % r->vecs] = combine(f, total[w % r->vecs], acc[w]);
    }
}

// A constant number of vectors lets the compiler keep the accumulators in registers.
VEC_INLINE void reduce_unrolled(Accumulate f, const StridedColumns *r, const Vf *shift, Vf *total) {
    if (r->vecs == REDUCE_VECS && r->some == VEC_LANES)
        reduce_columns(f, &(StridedColumns){r->x, r->n, r->stride, REDUCE_VECS, VEC_LANES}, shift,
                       total);
    else if (r->vecs == 1 && r->some == VEC_LANES)
        reduce_columns(f, &(StridedColumns){r->x, r->n, r->stride, 1, VEC_LANES}, shift, total);
    else
        for (uint32_t v = 0; v < r->vecs; v++) {
            const uint32_t       some = v + 1 == r->vecs ? r->some : VEC_LANES;
            const StridedColumns one = {r->x + v * VEC_LANES, r->n, r->stride, 1, some};
            reduce_columns(f, &one, shift + v, total + v);
        }
}

static void reduce_any(Accumulate f, const StridedColumns *r, const Vf *shift, Vf *total) {
    switch (f) {
    case SUM: reduce_unrolled(SUM, r, shift, total); return;
    case SQUARES: reduce_unrolled(SQUARES, r, shift, total); return;
    case ABS_VALUES: reduce_unrolled(ABS_VALUES, r, shift, total); return;
    case EXPS: reduce_unrolled(EXPS, r, shift, total); return;
    case MAXIMUM: reduce_unrolled(MAXIMUM, r, shift, total); return;
    case MINIMUM: reduce_unrolled(MINIMUM, r, shift, total); return;
    case PRODUCT: reduce_unrolled(PRODUCT, r, shift, total); return;
    }
}

static Accumulate accumulate_of(ReduceOp op) {
    static const Accumulate of[REDUCE_OPS] = {
        [REDUCE_MAX] = MAXIMUM,        [REDUCE_MIN] = MINIMUM,   [REDUCE_PROD] = PRODUCT,
        [REDUCE_SUM_SQUARE] = SQUARES, [REDUCE_L1] = ABS_VALUES, [REDUCE_L2] = SQUARES,
        [REDUCE_LOG_SUM_EXP] = EXPS,
    };
    return of[op];
}

VEC_INLINE Vf finish(ReduceOp op, Vf total, Vf shift, size_t n) {
    if (op == REDUCE_MEAN) return total / (float)n;
    if (op == REDUCE_L2) return vf_sqrt(total);
    if (op == REDUCE_LOG_SUM) return vf_log(total);
    return op == REDUCE_LOG_SUM_EXP ? vf_log(total) + shift : total;
}

static void shift_of(const StridedColumns *r, Vf *shift) {
    reduce_any(MAXIMUM, r, shift, shift);
    for (uint32_t v = 0; v < r->vecs; v++)
        shift[v] = (Vf)((Vi)shift[v] & (Vi)(vf_abs(shift[v]) < INFINITY));
}

static void run_rows(const Reduce *f, const StridedColumns *r, float *y) {
    Vf total[REDUCE_VECS], shift[REDUCE_VECS];
    for (uint32_t v = 0; v < REDUCE_VECS; v++) shift[v] = vf_set(0);
    if (f->op == REDUCE_LOG_SUM_EXP) shift_of(r, shift);
    reduce_any(accumulate_of(f->op), r, shift, total);
    for (uint32_t v = 0; v < r->vecs; v++) {
        const Vf done = finish(f->op, total[v], shift[v], f->n);
        if (v + 1 == r->vecs && r->some < VEC_LANES)
            vf_store_some(y + v * VEC_LANES, done, r->some);
        else
            vf_store(y + v * VEC_LANES, done);
    }
}

static void run_columns(const Reduce *f, const float *x, float *y, size_t width) {
    const uint32_t       vecs = (uint32_t)((width + VEC_LANES - 1) / VEC_LANES);
    const StridedColumns r = {x, f->n, f->inner, vecs, (uint32_t)(width - (vecs - 1) * VEC_LANES)};
    run_rows(f, &r, y);
}

void VEC(reduce)(const Reduce *f, const float *x, float *y, Part part) {
    const uint32_t columns = (uint32_t)((f->inner + WIDTH - 1) / WIDTH);
    uint32_t       begin, end;
    part_range(part, (uint32_t)f->outer * columns, &begin, &end);
    for (uint32_t task = begin; task < end; task++) {
        const size_t row = task / columns, at = task % columns * (size_t)WIDTH;
        const size_t width = f->inner - at < WIDTH ? f->inner - at : WIDTH;
        if (f->inner == 1)
            y[row] = run_row(f->op, x + row * f->n, f->n);
        else
            run_columns(f, x + row * f->n * f->inner + at, y + row * f->inner + at, width);
    }
}
