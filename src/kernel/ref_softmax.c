#include "kernel/ref_softmax.h"

#include <math.h>

#include "kernel/fibers.h"
#include "kernel/wide.h"

#define SOFTMAX(T, suffix, exponential)                                                            \
    static int64_t top_##suffix(const T *row, int64_t n) {                                         \
        int64_t top = 0;                                                                           \
        for (int64_t i = 1; i < n; i++)                                                            \
            if (row[i] > row[top]) top = i;                                                        \
        return top;                                                                                \
    }                                                                                              \
    static double sum_##suffix(const T *row, int64_t n, T top) {                                   \
        double sum = 0;                                                                            \
        for (int64_t i = 0; i < n; i++) sum += (double)exponential(row[i] - top);                  \
        return sum;                                                                                \
    }                                                                                              \
    static void soften_##suffix(RefSoftmax f, T *row, int64_t n) {                                 \
        const int64_t first = top_##suffix(row, n);                                                \
        const T       top = row[first];                                                            \
        if (f == REF_HARDMAX) {                                                                    \
            for (int64_t i = 0; i < n; i++) row[i] = i == first;                                   \
            return;                                                                                \
        }                                                                                          \
        if (f == REF_LOG_SOFTMAX) {                                                                \
            const T share = (T)log(sum_##suffix(row, n, top));                                     \
            for (int64_t i = 0; i < n; i++) row[i] = row[i] - top - share;                         \
            return;                                                                                \
        }                                                                                          \
        double sum = 0;                                                                            \
        for (int64_t i = 0; i < n; i++) sum += (double)(row[i] = exponential(row[i] - top));       \
        for (int64_t i = 0; i < n; i++) row[i] /= (T)sum;                                          \
    }
SOFTMAX(float, f32, expf)
SOFTMAX(double, f64, exp)

static void load_row(Wide w, const Fibers *f, const Tensor *x, int64_t from, void *row) {
    WideBlock b;
    for (int64_t i = 0, n; i < f->n; i += n) {
        n = f->n - i < WIDE_BLOCK ? f->n - i : WIDE_BLOCK;
        wide_load(w, x, from + i * f->stride, f->stride, n, &b);
        for (int64_t j = 0; j < n; j++)
            if (w == WIDE_F32)
                ((float *)row)[i + j] = b.f32[j];
            else
                ((double *)row)[i + j] = b.f64[j];
    }
}

static void store_row(Wide w, const Fibers *f, const void *row, Tensor *y, int64_t to) {
    WideBlock b;
    for (int64_t i = 0, n; i < f->n; i += n) {
        n = f->n - i < WIDE_BLOCK ? f->n - i : WIDE_BLOCK;
        for (int64_t j = 0; j < n; j++)
            if (w == WIDE_F32)
                b.f32[j] = ((const float *)row)[i + j];
            else
                b.f64[j] = ((const double *)row)[i + j];
        wide_store(w, &b, y, to + i * f->stride, f->stride, n);
    }
}

void ref_softmax(RefSoftmax f, const bool along[TENSOR_MAX_RANK], const Tensor *x, Tensor *y,
                 void *row) {
    const Fibers fibers = fibers_of(x, along);
    const Wide   w = wide_of(x->dtype);
    if (fibers.n == 0) return;
    for (Walk k = fibers.kept; walk_more(&k); walk_next(&k)) {
        load_row(w, &fibers, x, k.off[0], row);
        if (w == WIDE_F32)
            soften_f32(f, row, fibers.n);
        else
            soften_f64(f, row, fibers.n);
        store_row(w, &fibers, row, y, k.off[0]);
    }
}
