#include "kernel/ref/ref_resize.h"

#include <math.h>
#include <string.h>

#include "base/tensor.h"
#include "base/work_stop.h"
#include "kernel/ref/ref_int.h"
#include "kernel/wide_type.h"
#include "kernel/nd_iter.h"

// Every mode is separable: each dimension has a table of input indices and weights per output, and
// the dimensions are resized one after the other.

double ref_resize_cubic(double a, double x) {
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// In float, as inference runtimes do, so that coordinates round to the same integers.
double ref_resize_coordinate(const RefResize *p, const RefResizeAxis *a, int64_t o, int64_t in,
                             int64_t out) {
    float  x = (float)o;
    double last = (double)(in - 1), at = (double)o;
    switch (p->coordinate) {
    case REF_RESIZE_HALF_PIXEL: break;
    case REF_RESIZE_HALF_PIXEL_SYMMETRIC:
        return (double)in / 2 * (1 - (double)out / a->length) +
               (double)((x + 0.5F) / a->scale - 0.5F);
    case REF_RESIZE_PYTORCH_HALF_PIXEL:
        if (out == 1) return 0;
        break;
    case REF_RESIZE_ALIGN_CORNERS: return a->length == 1 ? 0 : at * last / (a->length - 1);
    case REF_RESIZE_ASYMMETRIC: return (double)(x / a->scale);
    case REF_RESIZE_TF_HALF_PIXEL_FOR_NN: return (double)((x + 0.5F) / a->scale);
    case REF_RESIZE_TF_CROP_AND_RESIZE:
        if (a->length == 1) return (a->roi[0] + a->roi[1]) * last / 2;
        return (a->roi[0] + at * (a->roi[1] - a->roi[0]) / (a->length - 1)) * last;
    }
    return (double)((x + 0.5F) / a->scale - 0.5F);
}

static bool outside(const RefResize *p, double x, int64_t in) {
    return p->coordinate == REF_RESIZE_TF_CROP_AND_RESIZE && !(x >= 0 && x <= (double)(in - 1));
}

static int64_t clamp(double x, int64_t in) {
    if (!(x > 0)) return 0;
    return x >= (double)in ? in - 1 : (int64_t)x;
}

static double round_nearest(const RefResize *p, float scale, double x) {
    switch (p->nearest) {
    case REF_RESIZE_ROUND_PREFER_FLOOR: return ceil(x - 0.5);
    case REF_RESIZE_ROUND_PREFER_CEIL: return floor(x + 0.5);
    case REF_RESIZE_FLOOR: return floor(x);
    case REF_RESIZE_CEIL: return ceil(x);
    case REF_RESIZE_SIMPLE: return scale < 1 ? ceil(x) : floor(x);
    }
    return x;
}

int64_t ref_resize_nearest(const RefResize *p, int32_t d, int64_t o, int64_t in, int64_t out) {
    double x = ref_resize_coordinate(p, &p->axis[d], o, in, out);
    return outside(p, x, in) ? -1 : clamp(round_nearest(p, p->axis[d].scale, x), in);
}

static Err nearest_table(const RefResize *p, int32_t d, int64_t in, int64_t out, Arena *scratch,
                         int64_t **table) {
    *table = arena_try(scratch, (size_t)out, sizeof(int64_t), 8);
    if (*table == NULL) return err_set(ERR_LIMIT, "resize: no memory for a table");
    for (int64_t o = 0; o < out && !work_stopped(); o++)
        (*table)[o] = ref_resize_nearest(p, d, o, in, out);
    return ERR_OK;
}

static void fill(const RefResize *p, Tensor *y, int64_t at) {
    if (dtype_is_number(y->dtype) || y->dtype == DT_BOOL) tensor_set(y, at, p->extrapolation);
}

static Err resize_nearest(const RefResize *p, const Tensor *x, Tensor *y, Arena *scratch) {
    int64_t *table[TENSOR_MAX_RANK], stride[TENSOR_MAX_RANK];
    size_t   size = dtype_size(x->dtype);
    nd_iter_contiguous(x->rank, x->dims, stride);
    for (int32_t d = 0; d < x->rank; d++)
        TRY(nearest_table(p, d, x->dims[d], y->dims[d], scratch, &table[d]));
    TRY(work_stop_check());
    for (NdIter w = nd_iter_begin(y->rank, y->dims); nd_iter_more(&w); nd_iter_next(&w)) {
        int64_t from = 0;
        bool    fills = false;
        for (int32_t d = 0; d < x->rank; d++) {
            fills = fills || table[d][w.index[d]] < 0;
            from += table[d][w.index[d]] * stride[d];
        }
        if (fills)
            fill(p, y, w.at);
        else
            memcpy((char *)y->data + (size_t)w.at * size,
                   (const char *)x->data + (size_t)from * size, size);
    }
    return ERR_OK;
}

// One dimension: output o is the sum of weight[o][k] * input[from[o] + k], with clamped indices.
typedef struct Taps {
    int64_t  in, out, n;
    double  *weight;   // [out][n]
    int64_t *from;     // [out]; may be negative
    bool    *outside;  // [out]: outside the region, gets the extrapolation value
} Taps;

static void taps_weigh(const RefResize *p, double stretch, double ratio, int64_t from,
                       const Taps *t, double *weight) {
    const int64_t middle = t->n / 2 - 1;
    double        sum = 0;
    for (int64_t k = 0; k < t->n && !work_stopped(); k++) {
        double distance = ((double)(k - middle) - ratio) * stretch;
        double w = p->mode == REF_RESIZE_CUBIC ? ref_resize_cubic(p->cubic_a, distance)
                                               : fmax(1 - fabs(distance), 0);
        if (p->exclude_outside && (from + k < 0 || from + k >= t->in)) w = 0;
        weight[k] = w;
        sum += w;
    }
    if ((p->antialias || p->exclude_outside) && sum != 0)
        WORK_EACH (k, t->n) weight[k] /= sum;
}

static void taps_set(const RefResize *p, const RefResizeAxis *a, double stretch, int64_t o,
                     const Taps *t) {
    const double limit = 0x1p48;
    double       x = ref_resize_coordinate(p, a, o, t->in, t->out);
    t->outside[o] = outside(p, x, t->in);
    if (!(x > -limit && x < limit)) x = 0;
    int64_t left = (int64_t)ceil(x) - 1;  // the ratio is in (0, 1]
    t->from[o] = left - t->n / 2 + 1;
    taps_weigh(p, stretch, x - (double)left, t->from[o], t, t->weight + o * t->n);
}

static Err taps_make(const RefResize *p, const RefResizeAxis *a, int64_t in, int64_t out,
                     Arena *scratch, Taps *t) {
    double stretch = p->antialias && a->scale < 1 ? (double)a->scale : 1;
    double reach = ceil((p->mode == REF_RESIZE_CUBIC ? 2 : 1) / stretch);
    *t = (Taps){.in = in, .out = out, .n = 2 * (int64_t)fmin(reach, 0x1p40)};
    TRY(ref_alloc_doubles(scratch, out, t->n, &t->weight));
    t->from = arena_try(scratch, (size_t)out, sizeof *t->from, 8);
    t->outside = arena_try(scratch, (size_t)out, sizeof *t->outside, 8);
    if (t->from == NULL || t->outside == NULL)
        return err_set(ERR_LIMIT, "resize: no memory for a table");
    for (int64_t o = 0; o < out && !work_stopped(); o++) taps_set(p, a, stretch, o, t);
    return ERR_OK;
}

// Resizes from [outer, in, inner] to [outer, out, inner].
static void taps_apply(const RefResize *p, const Taps *t, int64_t outer, int64_t inner,
                       const double *from, double *restrict to) {
    for (int64_t row = 0; row < outer * t->out && !work_stopped(); row++) {
        int64_t o = row % t->out;
        double *line = to + row * inner;
        for (int64_t k = 0; k < t->n && !work_stopped(); k++) {
            int64_t       i = t->from[o] + k;
            double        w = t->weight[o * t->n + k];
            const double *source = from + row / t->out * t->in * inner;
            source += (i < 0 ? 0 : i >= t->in ? t->in - 1 : i) * inner;
            for (int64_t j = 0; j < inner; j++) line[j] += w * source[j];
        }
        for (int64_t j = 0; j < inner && t->outside[o]; j++) line[j] = p->extrapolation;
    }
}

// Whether dimension d is not resized.
static bool unchanged(const RefResize *p, const Tensor *x, const Tensor *y, int32_t d) {
    const RefResizeAxis *a = &p->axis[d];
    bool                 crop =
        p->coordinate == REF_RESIZE_TF_CROP_AND_RESIZE && (a->roi[0] != 0 || a->roi[1] != 1);
    return a->scale == 1 && x->dims[d] == y->dims[d] && !crop;
}

static Err resize_weighted(const RefResize *p, const Tensor *x, Tensor *y, Arena *scratch) {
    double *now, *next;
    int64_t dims[TENSOR_MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    TRY(ref_alloc_doubles(scratch, tensor_count(x), 1, &now));
    wide_read(x, 0, 1, tensor_count(x), now);
    for (int32_t d = x->rank - 1; d >= 0; d--) {
        Taps t;
        if (unchanged(p, x, y, d)) continue;
        TRY(taps_make(p, &p->axis[d], x->dims[d], y->dims[d], scratch, &t));
        int64_t outer = ref_product(dims, d), inner = ref_product(dims + d + 1, x->rank - d - 1);
        TRY(ref_alloc_doubles(scratch, outer * inner, y->dims[d], &next));
        taps_apply(p, &t, outer, inner, now, next);
        dims[d] = y->dims[d];
        now = next;
    }
    wide_write(y, 0, 1, tensor_count(y), now);
    return ERR_OK;
}

Err ref_resize(const RefResize *p, const Tensor *x, Tensor *y, Arena *scratch) {
    if (tensor_count(y) == 0 || tensor_count(x) == 0) return ERR_OK;
    if (p->mode == REF_RESIZE_NEAREST) return resize_nearest(p, x, y, scratch);
    return resize_weighted(p, x, y, scratch);
}
