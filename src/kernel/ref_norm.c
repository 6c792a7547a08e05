#include "kernel/ref_norm.h"

#include <math.h>

#include "base/number.h"
#include "kernel/fibers.h"
#include "kernel/wide.h"

// Sum over a fiber of (v - centre)^power, or of |v| for power 0.
static double sum_of(const Fibers *f, const Tensor *x, int64_t from, double centre, int power) {
    double    sum = 0;
    WideBlock b;
    for (Walk r = f->runs; walk_more(&r); walk_next(&r))
        for (int64_t i = 0, n; i < f->n; i += n) {
            n = f->n - i < WIDE_BLOCK ? f->n - i : WIDE_BLOCK;
            wide_load(WIDE_F64, x, from + r.off[0] + i * f->stride, f->stride, n, &b);
            for (int64_t j = 0; j < n; j++) {
                double v = b.f64[j] - centre;
                sum += power == 0 ? fabs(v) : power == 1 ? v : v * v;
            }
        }
    return sum;
}

// y = (x - centre) * factor over a fiber.
static void write_fiber(const Fibers *f, const Tensor *x, int64_t from, double centre,
                        double factor, Tensor *y) {
    WideBlock b;
    for (Walk r = f->runs; walk_more(&r); walk_next(&r))
        for (int64_t i = 0, n; i < f->n; i += n) {
            n = f->n - i < WIDE_BLOCK ? f->n - i : WIDE_BLOCK;
            const int64_t at = from + r.off[0] + i * f->stride;
            wide_load(WIDE_F64, x, at, f->stride, n, &b);
            for (int64_t j = 0; j < n; j++) b.f64[j] = (b.f64[j] - centre) * factor;
            wide_store(WIDE_F64, &b, y, at, f->stride, n);
        }
}

static double factor_of(const RefNorm *p, const Fibers *f, const Tensor *x, int64_t from,
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
    const Fibers f = fibers_of(x, p->along);
    const bool   centred = p->kind == REF_NORM_VARIANCE || p->kind == REF_NORM_DEVIATION;
    if (f.length == 0 && p->mean == NULL && p->inverse == NULL) return;
    for (Walk k = f.kept; walk_more(&k); walk_next(&k)) {
        double mean = centred ? sum_of(&f, x, k.off[0], 0, 1) / (double)f.length : 0;
        double factor = factor_of(p, &f, x, k.off[0], mean);
        if (p->mean != NULL) number_set(p->mean, k.at, mean);
        if (p->inverse != NULL) number_set(p->inverse, k.at, factor);
        write_fiber(&f, x, k.off[0], mean, factor, y);
    }
}

void ref_moments(const bool along[TENSOR_MAX_RANK], const Tensor *x, double *mean,
                 double *variance) {
    const Fibers f = fibers_of(x, along);
    for (Walk k = f.kept; walk_more(&k); walk_next(&k)) {
        mean[k.at] = sum_of(&f, x, k.off[0], 0, 1) / (double)f.length;
        variance[k.at] = sum_of(&f, x, k.off[0], mean[k.at], 2) / (double)f.length;
    }
}

void ref_affine(const double *mul, const double *add, const Tensor *x, Tensor *y) {
    const int64_t rest = x->dims[2];
    WideBlock     b;
    if (rest == 0) return;
    for (int64_t set = 0; set < x->dims[0] * x->dims[1]; set++) {
        const double m = mul[set % x->dims[1]], a = add[set % x->dims[1]];
        for (int64_t i = 0, n; i < rest; i += n) {
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
    for (int64_t i = 0; i < tensor_count(x); i++) {
        const int64_t c = i / rest % channels, base = i - c * rest;
        const int64_t from = c > below ? c - below : 0;
        const int64_t to = above < channels - c ? c + above : channels - 1;
        double        sum = 0;
        for (int64_t k = from; k <= to; k++) {
            double v = number_f64(x, base + k * rest);
            sum += v * v;
        }
        number_set(y, i,
                   number_f64(x, i) / pow(p->bias + p->alpha / (double)p->size * sum, p->beta));
    }
}
