#include "kernel/ref_sample.h"

#include <math.h>

#include "base/number.h"
#include "kernel/ref_resize.h"
#include "kernel/walk.h"

static const double far = 0x1p40;  // outside any image, and safe to make an integer of

static double tame(double x) { return isnan(x) || x < -far ? -far : x > far ? far : x; }

RefTaps ref_sample_linear(double x, int64_t size) {
    x = tame(x);
    double  low = floor(x);
    RefTaps t = {
        .n = 2, .at = {(int64_t)low, (int64_t)low + 1}, .weight = {1 - (x - low), x - low}};
    for (int k = 0; k < 2; k++)
        if (t.at[k] < 0 || t.at[k] >= size) t.at[k] = -1;
    return t;
}

double ref_sample_sum(const Tensor *x, int64_t plane, int32_t rank, const int64_t *dims,
                      const RefTaps *taps) {
    int64_t size[REF_WINDOW_MAX], k[REF_WINDOW_MAX] = {0};
    double  sum = 0;
    for (int32_t d = 0; d < rank; d++) size[d] = taps[d].n;
    do {
        int64_t at = plane;
        double  weight = 1;
        for (int32_t d = 0; d < rank && weight != 0; d++) {
            int64_t i = taps[d].at[k[d]];
            weight = i < 0 ? 0 : weight * taps[d].weight[k[d]];
            at = at * dims[d] + (i < 0 ? 0 : i);
        }
        if (weight != 0) sum += weight * number_f64(x, at);
    } while (ref_window_next(rank, size, k));
    return sum;
}

// From [-1, 1] to pixels. Floats, as runtimes compute it: a tie there is a tie here.
static double denormalize(const RefGridSample *p, const Tensor *grid, int64_t at, int64_t size) {
    double v = number_f64(grid, at);
    float  f = (float)v, n = (float)size;
    if (grid->dtype == DT_F64)
        return p->align_corners ? (v + 1) / 2 * (double)(size - 1)
                                : ((v + 1) * (double)size - 1) / 2;
    return (double)(p->align_corners ? (f + 1) / 2 * (n - 1) : ((f + 1) * n - 1) / 2);
}

// Folds x into [low, high] like a beam between two mirrors.
static double reflect(double x, double low, double high) {
    double span = high - low;
    if (span <= 0) return low;
    double r = fmod(fabs(x - low), 2 * span);
    return r <= span ? low + r : high - (r - span);
}

static int64_t pixel_at(const RefGridSample *p, double i, int64_t size) {
    double last = (double)(size - 1), edge = p->align_corners ? 0 : 0.5;
    if (i >= 0 && i <= last) return (int64_t)i;
    switch (p->padding) {
    case REF_SAMPLE_ZEROS: return -1;
    case REF_SAMPLE_BORDER: return i < 0 ? 0 : size - 1;
    case REF_SAMPLE_REFLECTION: break;
    }
    i = reflect(i, -edge, last + edge);
    return (int64_t)fmin(fmax(i, 0), last);
}

static RefTaps place(const RefGridSample *p, double x, int64_t size) {
    double  last = (double)(size - 1), edge = p->align_corners ? 0 : 0.5;
    RefTaps t = {.n = 1, .weight = {1}};
    x = tame(x);
    if (p->mode == REF_SAMPLE_NEAREST) x = nearbyint(x);
    if (x < -edge || x > last + edge) {
        if (p->padding == REF_SAMPLE_BORDER) x = fmin(fmax(x, 0), last);
        if (p->padding == REF_SAMPLE_REFLECTION) x = reflect(x, -edge, last + edge);
    }
    double low = floor(x);
    if (p->mode == REF_SAMPLE_LINEAR) {
        t = (RefTaps){.n = 2, .weight = {1 - (x - low), x - low}};
    } else if (p->mode == REF_SAMPLE_CUBIC) {
        t.n = 4;
        for (int k = 0; k < 4; k++) t.weight[k] = ref_resize_cubic(-0.75, x - (low + k - 1));
        low -= 1;
    }
    for (int k = 0; k < t.n; k++) t.at[k] = pixel_at(p, low + k, size);
    return t;
}

void ref_grid_sample(const RefGridSample *p, const Tensor *x, const Tensor *grid, Tensor *y) {
    int32_t rank = x->rank - 2;
    int64_t places = 1, channels = x->dims[1];
    for (int32_t d = 0; d < rank; d++) places *= y->dims[d + 2];
    for (int64_t i = 0; i < x->dims[0] * places; i++) {
        RefTaps taps[REF_WINDOW_MAX];
        for (int32_t d = 0; d < rank; d++) {
            int64_t size = x->dims[d + 2];
            taps[d] = place(p, denormalize(p, grid, (i + 1) * rank - 1 - d, size), size);
        }
        for (int64_t c = 0; c < channels; c++) {
            int64_t plane = i / places * channels + c;
            number_set(y, plane * places + i % places,
                       ref_sample_sum(x, plane, rank, x->dims + 2, taps));
        }
    }
}

static double affine_place(bool align_corners, int64_t i, int64_t size) {
    if (!align_corners) return (2 * (double)i + 1) / (double)size - 1;
    return size > 1 ? 2 * (double)i / (double)(size - 1) - 1 : 0;
}

void ref_affine_grid(bool align_corners, const Tensor *theta, Tensor *y) {
    int32_t rank = y->rank - 2;
    for (Walk w = walk_begin(y->rank - 1, y->dims); walk_more(&w); walk_next(&w))
        for (int32_t row = 0; row < rank; row++) {
            int64_t first = (w.index[0] * rank + row) * (rank + 1);
            double  sum = number_f64(theta, first + rank);
            for (int32_t d = 0; d < rank; d++) {
                int32_t dim = rank - d;  // x is the last dimension
                sum += number_f64(theta, first + d) *
                       affine_place(align_corners, w.index[dim], y->dims[dim]);
            }
            number_set(y, w.at * rank + row, sum);
        }
}
