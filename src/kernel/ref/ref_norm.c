#include "kernel/ref/ref_norm.h"

#include <math.h>

#include "base/tensor.h"
#include "base/work_stop.h"
#include "kernel/nd_iter.h"
#include "kernel/wide_type.h"

// Sum over a set of (v - centre)^power, or of |v| for power 0.
static double sum_of(const AxisIter *f, const Tensor *x, int64_t from, double centre, int power) {
    double    sum = 0;
    WideBlock b;
    for (NdIter r = f->runs; nd_iter_more(&r); nd_iter_next(&r))
        for (int64_t i = 0, n; i < f->n && !work_stopped(); i += n) {
            n = f->n - i < WIDE_BLOCK ? f->n - i : WIDE_BLOCK;
            wide_load(WIDE_F64, x, from + r.off[0] + i * f->stride, f->stride, n, &b);
            WORK_EACH (j, n) {
                double v = b.f64[j] - centre;
                sum += power == 0 ? fabs(v) : power == 1 ? v : v * v;
            }
        }
    return sum;
}

// y = (x - centre) * factor over a set.
static void write_set(const AxisIter *f, const Tensor *x, int64_t from, double centre,
                      double factor, Tensor *y) {
    WideBlock b;
    for (NdIter r = f->runs; nd_iter_more(&r); nd_iter_next(&r))
        for (int64_t i = 0, n; i < f->n && !work_stopped(); i += n) {
            n = f->n - i < WIDE_BLOCK ? f->n - i : WIDE_BLOCK;
            const int64_t at = from + r.off[0] + i * f->stride;
            wide_load(WIDE_F64, x, at, f->stride, n, &b);
            for (int64_t j = 0; j < n; j++) b.f64[j] = (b.f64[j] - centre) * factor;
            wide_store(WIDE_F64, &b, y, at, f->stride, n);
        }
}

static double factor_of(const RefNorm *p, const AxisIter *f, const Tensor *x, int64_t from,
                        double mean) {
    const double length = (double)f->length;
    double       size = 0;
    switch (p->kind) {
    case REF_NORM_VARIANCE: return 1 / sqrt(sum_of(f, x, from, mean, 2) / length + p->epsilon);
    case REF_NORM_DEVIATION: return 1 / (sqrt(sum_of(f, x, from, mean, 2) / length) + p->epsilon);
    case REF_NORM_RMS: return 1 / sqrt(sum_of(f, x, from, 0, 2) / length + p->epsilon);
    case REF_NORM_L1: size = sum_of(f, x, from, 0, 0); break;
    case REF_NORM_L2: size = sqrt(sum_of(f, x, from, 0, 2)); break;
    }
    return size == 0 ? 0 : 1 / size;
}

void ref_norm(const RefNorm *p, const Tensor *x, Tensor *y) {
    const AxisIter f = axis_iter_of(x, p->along);
    const bool     centred = p->kind == REF_NORM_VARIANCE || p->kind == REF_NORM_DEVIATION;
    if (f.length == 0 && p->mean == NULL && p->inverse == NULL) return;
    for (NdIter k = f.kept; nd_iter_more(&k); nd_iter_next(&k)) {
        double mean = centred ? sum_of(&f, x, k.off[0], 0, 1) / (double)f.length : 0;
        double factor = factor_of(p, &f, x, k.off[0], mean);
        if (p->mean != NULL) tensor_set(p->mean, k.at, mean);
        if (p->inverse != NULL) tensor_set(p->inverse, k.at, factor);
        write_set(&f, x, k.off[0], mean, factor, y);
    }
}

void ref_moments(const bool along[TENSOR_MAX_RANK], const Tensor *x, double *mean,
                 double *variance) {
    const AxisIter f = axis_iter_of(x, along);
    for (NdIter k = f.kept; nd_iter_more(&k); nd_iter_next(&k)) {
        mean[k.at] = sum_of(&f, x, k.off[0], 0, 1) / (double)f.length;
        variance[k.at] = sum_of(&f, x, k.off[0], mean[k.at], 2) / (double)f.length;
    }
}

void ref_affine(const double *mul, const double *add, const Tensor *x, Tensor *y) {
    const int64_t rest = x->dims[2];
    WideBlock     b;
    if (rest == 0) return;
    for (int64_t set = 0; set < x->dims[0] * x->dims[1] && !work_stopped(); set++) {
        const double m = mul[set % x->dims[1]], a = add[set % x->dims[1]];
        for (int64_t i = 0, n; i < rest && !work_stopped(); i += n) {
            n = rest - i < WIDE_BLOCK ? rest - i : WIDE_BLOCK;
            wide_load(WIDE_F64, x, set * rest + i, 1, n, &b);
            for (int64_t j = 0; j < n; j++) b.f64[j] = b.f64[j] * m + a;
            wide_store(WIDE_F64, &b, y, set * rest + i, 1, n);
        }
    }
}

void ref_lrn(const RefLrn *p, const Tensor *x, Tensor *y) {
    const int64_t channels = x->dims[1], rest = x->dims[2];
    const int64_t below = (p->size - 1) / 2, above = p->size / 2;
    for (int64_t i = 0; i < tensor_count(x) && !work_stopped(); i++) {
        const int64_t c = i / rest % channels, base = i - c * rest;
        const int64_t from = c > below ? c - below : 0;
        const int64_t to = above < channels - c ? c + above : channels - 1;
        double        sum = 0;
        for (int64_t k = from; k <= to && !work_stopped(); k++) {
            double v = tensor_get_f64(x, base + k * rest);
            sum += v * v;
        }
        tensor_set(y, i,
                   tensor_get_f64(x, i) / pow(p->bias + p->alpha / (double)p->size * sum, p->beta));
    }
}

#define SOFTMAX(T, suffix, exponential)                                                            \
    static int64_t top_##suffix(const T *row, int64_t n) {                                         \
        int64_t top = 0;                                                                           \
        for (int64_t i = 1; i < n; i++)                                                            \
            if (row[i] > row[top]) top = i;                                                        \
        return top;                                                                                \
    }                                                                                              \
    static double sum_##suffix(const T *row, int64_t n, T top) {                                   \
        double sum = 0;                                                                            \
        WORK_EACH (i, n) sum += (double)exponential(row[i] - top);                                 \
        return sum;                                                                                \
    }                                                                                              \
    static void softmax_##suffix(RefSoftmax f, T *row, int64_t n) {                                \
        const int64_t first = top_##suffix(row, n);                                                \
        const T       top = row[first];                                                            \
        if (f == REF_HARDMAX) {                                                                    \
            WORK_EACH (i, n) row[i] = i == first;                                                  \
            return;                                                                                \
        }                                                                                          \
        if (f == REF_LOG_SOFTMAX) {                                                                \
            const T share = (T)log(sum_##suffix(row, n, top));                                     \
            WORK_EACH (i, n) row[i] = row[i] - top - share;                                        \
            return;                                                                                \
        }                                                                                          \
        double sum = 0;                                                                            \
        WORK_EACH (i, n) sum += (double)(row[i] = exponential(row[i] - top));                      \
        WORK_EACH (i, n) row[i] /= (T)sum;                                                         \
    }
SOFTMAX(float, f32, expf)
SOFTMAX(double, f64, exp)

static void load_row(WideType w, const AxisIter *f, const Tensor *x, int64_t from, void *row) {
    WideBlock b;
    for (int64_t i = 0, n; i < f->n && !work_stopped(); i += n) {
        n = f->n - i < WIDE_BLOCK ? f->n - i : WIDE_BLOCK;
        wide_load(w, x, from + i * f->stride, f->stride, n, &b);
        for (int64_t j = 0; j < n && !work_stopped(); j++)
            if (w == WIDE_F32)
                ((float *)row)[i + j] = b.f32[j];
            else
                ((double *)row)[i + j] = b.f64[j];
    }
}

static void store_row(WideType w, const AxisIter *f, const void *row, Tensor *y, int64_t to) {
    WideBlock b;
    for (int64_t i = 0, n; i < f->n && !work_stopped(); i += n) {
        n = f->n - i < WIDE_BLOCK ? f->n - i : WIDE_BLOCK;
        WORK_EACH (j, n)
            if (w == WIDE_F32)
                b.f32[j] = ((const float *)row)[i + j];
            else
                b.f64[j] = ((const double *)row)[i + j];
        wide_store(w, &b, y, to + i * f->stride, f->stride, n);
    }
}

void ref_softmax(RefSoftmax f, const bool along[TENSOR_MAX_RANK], const Tensor *x, Tensor *y,
                 void *row) {
    const AxisIter sets = axis_iter_of(x, along);
    const WideType w = wide_type_of(x->dtype);
    if (sets.n == 0) return;
    for (NdIter k = sets.kept; nd_iter_more(&k); nd_iter_next(&k)) {
        load_row(w, &sets, x, k.off[0], row);
        if (w == WIDE_F32)
            softmax_f32(f, row, sets.n);
        else
            softmax_f64(f, row, sets.n);
        store_row(w, &sets, row, y, k.off[0]);
    }
}
