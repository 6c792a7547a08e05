#include "kernel/ref/ref_reduce.h"

#include <math.h>
#include <string.h>

#include "base/tensor.h"
#include "base/merge_sort.h"
#include "base/work_stop.h"
#include "kernel/nd_iter.h"
#include "kernel/wide_type.h"

#define WRAP(x, op, y) (int64_t)((uint64_t)(x)op(uint64_t)(y))

// Accumulator; the wide type of the elements selects the member.
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
#include "kernel/ref/ref_reduce.def"
#undef X

static const struct Row {
    double start;
    Step  *f64, *i64, *u64;
} rows[REF_REDUCE_COUNT] = {
#define X(id, start, real, sint, uint) [REF_REDUCE_##id] = {start, id##_f64, id##_i64, id##_u64},
#include "kernel/ref/ref_reduce.def"
#undef X
};

// Initial value, converted through the type of y: infinity becomes its largest or smallest integer.
static Acc start_of(RefReduce f, WideType w, Tensor *y, int64_t at) {
    Acc       a = {.shift = 0};
    WideBlock b;
    bool      lowest = y->dtype == DT_BOOL && f == REF_REDUCE_MAX;
    if (w == WIDE_F64) return (Acc){.f64 = rows[f].start};
    tensor_set(y, at, lowest ? 0 : rows[f].start);
    wide_load(w, y, at, 1, 1, &b);
    if (w == WIDE_I64)
        a.i64 = b.i64[0];
    else
        a.u64 = b.u64[0];
    return a;
}

static void accumulate(Step *step, WideType w, const AxisIter *f, const Tensor *x, int64_t from,
                       Acc *a) {
    WideBlock b;
    for (NdIter r = f->runs; nd_iter_more(&r); nd_iter_next(&r))
        for (int64_t i = 0, n; i < f->n && !work_stopped(); i += n) {
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

static void finish(RefReduce f, WideType w, const Acc *a, int64_t length, Tensor *y, int64_t at) {
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
    const WideType w = needs_reals(f) ? WIDE_F64 : wide_sum_type_of(x->dtype);
    const AxisIter sets = axis_iter_of(x, along);
    Step          *step = w == WIDE_F64 ? rows[f].f64 : w == WIDE_I64 ? rows[f].i64 : rows[f].u64;
    for (NdIter k = sets.kept; nd_iter_more(&k); nd_iter_next(&k)) {
        Acc a = start_of(f, w, y, k.at);
        if (f == REF_REDUCE_LOG_SUM_EXP) {
            Acc top = {.f64 = -INFINITY};
            accumulate(rows[REF_REDUCE_MAX].f64, w, &sets, x, k.off[0], &top);
            a.shift = isfinite(top.f64) ? top.f64 : 0;
        }
        accumulate(step, w, &sets, x, k.off[0], &a);
        finish(f, w, &a, sets.length, y, k.at);
    }
}

// Whether v replaces the best so far.
#define BEATS(v, best, largest, last)                                                              \
    ((largest) ? (v) > (best) : (v) < (best)) || ((last) && (v) == (best)) ||                      \
        ((v) != (v) && (best) == (best))
#define BEST(T, member)                                                                            \
    static int64_t best_##member(bool largest, bool last, const AxisIter *f, const Tensor *x,      \
                                 int64_t from) {                                                   \
        int64_t   at = 0;                                                                          \
        T         best = 0;                                                                        \
        WideBlock b;                                                                               \
        for (int64_t i = 0, n; i < f->n && !work_stopped(); i += n) {                              \
            n = f->n - i < WIDE_BLOCK ? f->n - i : WIDE_BLOCK;                                     \
            wide_load(wide_sum_type_of(x->dtype), x, from + i * f->stride, f->stride, n, &b);      \
            for (int64_t j = 0; j < n; j++)                                                        \
                if (i + j == 0 || BEATS(b.member[j], best, largest, last)) {                       \
                    best = b.member[j];                                                            \
                    at = i + j;                                                                    \
                }                                                                                  \
        }                                                                                          \
        return at;                                                                                 \
    }
BEST(double, f64)
BEST(int64_t, i64)
BEST(uint64_t, u64)

void ref_arg(bool largest, bool last, int32_t axis, const Tensor *x, Tensor *y) {
    bool along[TENSOR_MAX_RANK] = {false};
    along[axis] = true;
    const AxisIter f = axis_iter_of(x, along);
    const WideType w = wide_sum_type_of(x->dtype);
    int64_t       *to = y->data;
    for (NdIter k = f.kept; nd_iter_more(&k); nd_iter_next(&k))
        to[k.at] = (w == WIDE_F64   ? best_f64
                    : w == WIDE_I64 ? best_i64
                                    : best_u64)(largest, last, &f, x, k.off[0]);
}

// Integers wrap, so signed ones are summed as unsigned.
static void sum_block(WideType w, bool exclusive, WideBlock *b, int64_t n, double *real,
                      uint64_t *whole) {
    WORK_EACH (i, n) {
        if (w == WIDE_F64) {
            double before = *real;
            *real += b->f64[i];
            b->f64[i] = exclusive ? before : *real;
        } else {
            uint64_t before = *whole;
            *whole += b->u64[i];
            b->u64[i] = exclusive ? before : *whole;
        }
    }
}

void ref_cumsum(bool exclusive, bool reverse, int32_t axis, const Tensor *x, Tensor *y) {
    bool along[TENSOR_MAX_RANK] = {false};
    along[axis] = true;
    const AxisIter f = axis_iter_of(x, along);
    const WideType w = dtype_is_float(x->dtype) ? WIDE_F64 : WIDE_U64;
    const int64_t  stride = reverse ? -f.stride : f.stride;
    WideBlock      b;
    if (f.n == 0) return;
    for (NdIter k = f.kept; nd_iter_more(&k); nd_iter_next(&k)) {
        const int64_t first = k.off[0] + (reverse ? (f.n - 1) * f.stride : 0);
        double        real = 0;
        uint64_t      whole = 0;
        for (int64_t i = 0, n; i < f.n && !work_stopped(); i += n) {
            n = f.n - i < WIDE_BLOCK ? f.n - i : WIDE_BLOCK;
            wide_load(w, x, first + i * stride, stride, n, &b);
            sum_block(w, exclusive, &b, n, &real, &whole);
            wide_store(w, &b, y, first + i * stride, stride, n);
        }
    }
}

static int compare_keys(int64_t a, int64_t b, const void *keys) {
    const uint64_t *key = keys;
    return (key[a] > key[b]) - (key[a] < key[b]);
}

// As tensor_sort_key orders them.
static uint64_t float_sort_key(float v) {
    uint32_t bits;
    if (v != v) return UINT64_MAX;
    v += 0.0f;  // -0 becomes 0
    memcpy(&bits, &v, sizeof bits);
    return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// Keys of n elements, `apart` from each other; the first in order has the smallest.
static void sort_keys(const Tensor *x, int64_t first, int64_t apart, int64_t n, bool largest,
                      uint64_t *key) {
    const float *at = x->dtype == DT_F32 ? (const float *)x->data + first : NULL;
    WORK_EACH (j, n) {
        key[j] = at != NULL ? float_sort_key(at[j * apart]) : tensor_sort_key(x, first + j * apart);
        if (largest) key[j] = ~key[j];
    }
}

// Writes the k first of n keys to order, which has room for n, sorted; of equal ones the earlier.
// Candidates are collected and, when there are twice too many, sorted and cut to k.
static void choose_first(const uint64_t *key, int64_t n, int64_t k, int64_t *order,
                         int64_t *spare) {
    int64_t  room = n / 2 - 32 > k ? 2 * k + 64 : n, count = 0;
    uint64_t limit = UINT64_MAX;
    bool     cut = false;
    WORK_EACH (j, n) {
        if (cut && key[j] >= limit) continue;
        order[count++] = j;
        if (count < room || room == n) continue;
        merge_sort(order, spare, count, compare_keys, key);
        count = k;
        cut = true;
        limit = key[order[k - 1]];
    }
    merge_sort(order, spare, count, compare_keys, key);
}

Err ref_topk(const Tensor *x, int32_t axis, bool largest, Arena *scratch, Tensor *values,
             Tensor *indices) {
    int64_t n = x->dims[axis], k = values->dims[axis], outer = 1, inner = 1;
    int64_t size = (int64_t)dtype_size(x->dtype);
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis) *(i < axis ? &outer : &inner) *= x->dims[i];
    uint64_t *key = arena_try_new(scratch, uint64_t, (size_t)n);
    int64_t  *order = arena_try_new(scratch, int64_t, (size_t)n);
    int64_t  *spare = arena_try_new(scratch, int64_t, (size_t)n);
    if (key == NULL || order == NULL || spare == NULL)
        return err_set(ERR_LIMIT, "top-k: no memory to sort %lld elements", (long long)n);
    if (k == 0) return ERR_OK;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner && !work_stopped(); i++) {
            sort_keys(x, o * n * inner + i, inner, n, largest, key);
            choose_first(key, n, k, order, spare);
            if (work_stopped()) break;  // order is unfinished
            WORK_EACH (j, k) {
                int64_t to = (o * k + j) * inner + i, from = (o * n + order[j]) * inner + i;
                memcpy((char *)values->data + to * size, (const char *)x->data + from * size,
                       (size_t)size);
                if (indices != NULL) ((int64_t *)indices->data)[to] = order[j];
            }
        }
    return ERR_OK;
}
