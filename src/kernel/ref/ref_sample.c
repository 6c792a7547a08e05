#include "kernel/ref/ref_sample.h"

#include <inttypes.h>
#include <math.h>

#include "base/tensor.h"
#include "base/work_stop.h"
#include "kernel/nd_iter.h"
#include "kernel/ref/ref_pool.h"
#include "kernel/ref/ref_resize.h"
#include "kernel/wide_type.h"

static const double far = 0x1p40;  // outside any image, and convertible to an integer

static double limit_position(double x) { return isnan(x) || x < -far ? -far : x > far ? far : x; }

RefTaps ref_sample_linear(double x, int64_t size) {
    x = limit_position(x);
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
        if (weight != 0) sum += weight * tensor_get_f64(x, at);
    } while (ref_window_next(rank, size, k));
    return sum;
}

// From [-1, 1] to pixels. In float, as inference runtimes do, so that ties round alike.
static double denormalize(const RefGridSample *p, const Tensor *grid, int64_t at, int64_t size) {
    double v = tensor_get_f64(grid, at);
    float  f = (float)v, n = (float)size;
    if (grid->dtype == DT_F64)
        return p->align_corners ? (v + 1) / 2 * (double)(size - 1)
                                : ((v + 1) * (double)size - 1) / 2;
    return (double)(p->align_corners ? (f + 1) / 2 * (n - 1) : ((f + 1) * n - 1) / 2);
}

// Reflects x at low and high until it lies between them.
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

static RefTaps taps_at(const RefGridSample *p, double x, int64_t size) {
    double  last = (double)(size - 1), edge = p->align_corners ? 0 : 0.5;
    RefTaps t = {.n = 1, .weight = {1}};
    x = limit_position(x);
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

// The pixels that a position reads, the same ones of every channel.
enum { PIXELS_MAX = 4 * 4 * 4, PIXELS_RANK = 3 };

typedef struct Pixels {
    int32_t n;
    int64_t at[PIXELS_MAX];
    double  weight[PIXELS_MAX];
} Pixels;

// In the order in which ref_sample_sum reads them.
static void pixels_of(int32_t rank, const int64_t *dims, const RefTaps *taps, Pixels *out) {
    int64_t size[REF_WINDOW_MAX], k[REF_WINDOW_MAX] = {0};
    out->n = 0;
    for (int32_t d = 0; d < rank; d++) size[d] = taps[d].n;
    do {
        int64_t at = 0;
        double  weight = 1;
        for (int32_t d = 0; d < rank && weight != 0; d++) {
            int64_t i = taps[d].at[k[d]];
            weight = i < 0 ? 0 : weight * taps[d].weight[k[d]];
            at = at * dims[d] + (i < 0 ? 0 : i);
        }
        if (weight == 0) continue;
        out->at[out->n] = at;
        out->weight[out->n++] = weight;
    } while (ref_window_next(rank, size, k));
}

// One position of all channels of float32 images: x and y are their first elements.
static void sample_floats(const Pixels *p, const float *x, int64_t pixels, float *y,
                          int64_t positions, int64_t channels) {
    WORK_EACH (c, channels) {
        double sum = 0;
        for (int32_t k = 0; k < p->n; k++) sum += p->weight[k] * (double)x[c * pixels + p->at[k]];
        y[c * positions] = (float)sum;
    }
}

void ref_grid_sample(const RefGridSample *p, const Tensor *x, const Tensor *grid, Tensor *y) {
    int32_t rank = x->rank - 2;
    int64_t positions = 1, channels = x->dims[1], pixels = 1;
    bool    floats = x->dtype == DT_F32 && rank <= PIXELS_RANK;
    for (int32_t d = 0; d < rank; d++) positions *= y->dims[d + 2];
    for (int32_t d = 0; d < rank; d++) pixels *= x->dims[d + 2];
    for (int64_t i = 0; i < x->dims[0] * positions && !work_stopped(); i++) {
        RefTaps taps[REF_WINDOW_MAX];
        for (int32_t d = 0; d < rank; d++) {
            int64_t size = x->dims[d + 2];
            taps[d] = taps_at(p, denormalize(p, grid, (i + 1) * rank - 1 - d, size), size);
        }
        if (floats) {
            Pixels  all;
            int64_t image = i / positions * channels;
            pixels_of(rank, x->dims + 2, taps, &all);
            sample_floats(&all, (const float *)x->data + image * pixels, pixels,
                          (float *)y->data + image * positions + i % positions, positions,
                          channels);
        }
        for (int64_t c = 0; c < channels && !floats && !work_stopped(); c++) {
            int64_t plane = i / positions * channels + c;
            tensor_set(y, plane * positions + i % positions,
                       ref_sample_sum(x, plane, rank, x->dims + 2, taps));
        }
    }
}

static double affine_position(bool align_corners, int64_t i, int64_t size) {
    if (!align_corners) return (2 * (double)i + 1) / (double)size - 1;
    return size > 1 ? 2 * (double)i / (double)(size - 1) - 1 : 0;
}

void ref_affine_grid(bool align_corners, const Tensor *theta, Tensor *y) {
    int32_t rank = y->rank - 2;
    for (NdIter w = nd_iter_begin(y->rank - 1, y->dims); nd_iter_more(&w); nd_iter_next(&w))
        for (int32_t row = 0; row < rank; row++) {
            int64_t first = (w.index[0] * rank + row) * (rank + 1);
            double  sum = tensor_get_f64(theta, first + rank);
            for (int32_t d = 0; d < rank; d++) {
                int32_t dim = rank - d;  // x is the last dimension
                sum += tensor_get_f64(theta, first + d) *
                       affine_position(align_corners, w.index[dim], y->dims[dim]);
            }
            tensor_set(y, w.at * rank + row, sum);
        }
}

enum { POINTS_MAX = 1 << 12 };  // per bin and dimension

// One region along one dimension: start, bin size, sampling points per bin.
typedef struct Span {
    double  start, bin;
    int64_t points;
} Span;

static Err span_of(const RefRoiAlign *p, double from, double to, int64_t bins, Span *s) {
    double shift = p->half_pixel ? 0.5 : 0;
    double length = (to - from) * p->scale;
    s->start = from * p->scale - shift;
    if (!p->half_pixel && length < 1) length = 1;
    s->bin = length / (double)bins;
    double points = p->sampling > 0 ? (double)p->sampling : ceil(s->bin);
    if (!(fabs(s->start) < 0x1p40 && points <= POINTS_MAX))
        return err_set(ERR_INVALID, "a region from %g to %g is not finite or too large", from, to);
    s->points = points > 0 ? (int64_t)points : 0;
    return ERR_OK;
}

// Points up to one pixel outside are clamped to the border; others read as zero.
static RefTaps border_taps(double x, int64_t size) {
    if (!(x >= -1 && x <= (double)size)) return (RefTaps){.n = 1, .at = {-1}};
    x = fmin(fmax(x, 0), (double)(size - 1));
    return ref_sample_linear(x, size);
}

// Max mode: the largest of the four weighted pixels, as ONNX defines it.
static double largest(const Tensor *x, int64_t plane, const RefTaps *taps) {
    double best = (double)-INFINITY;
    for (int i = 0; i < taps[0].n; i++)
        for (int j = 0; j < taps[1].n; j++) {
            int64_t h = taps[0].at[i], w = taps[1].at[j];
            double  v = 0;
            if (h >= 0 && w >= 0)
                v = taps[0].weight[i] * taps[1].weight[j] *
                    tensor_get_f64(x, (plane * x->dims[2] + h) * x->dims[3] + w);
            best = fmax(best, v);
        }
    return best;
}

static double bin_value(const RefRoiAlign *p, const Tensor *x, int64_t plane, const Span *span,
                        int64_t row, int64_t col) {
    int64_t count = span[0].points * span[1].points;
    double  sum = 0, best = (double)-INFINITY;
    for (int64_t i = 0; i < count && !work_stopped(); i++) {
        int64_t at[2] = {i / span[1].points, i % span[1].points}, bin[2] = {row, col};
        RefTaps taps[2];
        for (int d = 0; d < 2; d++) {
            double inside = ((double)at[d] + 0.5) / (double)span[d].points;
            double position = span[d].start + ((double)bin[d] + inside) * span[d].bin;
            taps[d] = border_taps(position, x->dims[2 + d]);
        }
        if (p->max)
            best = fmax(best, largest(x, plane, taps));
        else
            sum += ref_sample_sum(x, plane, 2, x->dims + 2, taps);
    }
    if (p->max) return count > 0 ? best : 0;
    return count > 0 ? sum / (double)count : 0;
}

Err ref_roi_align(const RefRoiAlign *p, const Tensor *x, const Tensor *rois, const Tensor *images,
                  Tensor *y) {
    int64_t channels = y->dims[1], rows = y->dims[2], cols = y->dims[3], at = 0;
    for (int64_t r = 0; r < y->dims[0] && !work_stopped(); r++) {
        double  box[4];
        Span    span[2];
        int64_t image = tensor_get_i64(images, r);
        if (image < 0 || image >= x->dims[0])
            return err_set(ERR_INVALID, "region %" PRId64 " names image %" PRId64 " of %" PRId64, r,
                           image, x->dims[0]);
        wide_read(rois, r * 4, 1, 4, box);
        TRY(span_of(p, box[1], box[3], rows, &span[0]));
        TRY(span_of(p, box[0], box[2], cols, &span[1]));
        for (int64_t i = 0; i < channels * rows * cols && !work_stopped(); i++) {
            int64_t plane = image * channels + i / (rows * cols);
            tensor_set(y, at++, bin_value(p, x, plane, span, i / cols % rows, i % cols));
        }
    }
    return ERR_OK;
}

// A region in whole pixels.
typedef struct Region {
    int64_t image, x, y, w, h;
} Region;

static int64_t pixel(double v) {
    const double limit = 1099511627776.0;  // 2^40: outside any image, without overflow
    if (isnan(v)) return 0;
    return (int64_t)(v < -limit ? -limit : v > limit ? limit : round(v));
}

static Err region_read(double scale, const Tensor *x, const Tensor *rois, int64_t i, Region *r) {
    double v[5];
    wide_read(rois, i * 5, 1, 5, v);
    if (!(v[0] >= 0 && v[0] < (double)x->dims[0]))
        return err_set(ERR_INVALID, "region %" PRId64 " names image %g of %" PRId64, i, v[0],
                       x->dims[0]);
    *r = (Region){.image = (int64_t)v[0], .x = pixel(v[1] * scale), .y = pixel(v[2] * scale)};
    r->w = pixel(v[3] * scale) - r->x + 1;
    r->h = pixel(v[4] * scale) - r->y + 1;
    if (r->w < 1) r->w = 1;
    if (r->h < 1) r->h = 1;
    return ERR_OK;
}

static RefSpan bin(int64_t start, int64_t length, int64_t i, int64_t bins, int64_t size) {
    double  each = (double)length / (double)bins;
    RefSpan s = {(int64_t)floor((double)i * each) + start,
                 (int64_t)ceil((double)(i + 1) * each) + start};
    if (s.from < 0) s.from = 0;
    if (s.to > size) s.to = size;
    return s;
}

static double bin_max(const Tensor *x, int64_t plane, RefSpan rows, RefSpan cols) {
    if (rows.from >= rows.to || cols.from >= cols.to) return 0;
    double best = (double)-INFINITY;
    for (int64_t h = rows.from; h < rows.to && !work_stopped(); h++)
        for (int64_t w = cols.from; w < cols.to && !work_stopped(); w++) {
            double v = tensor_get_f64(x, (plane * x->dims[2] + h) * x->dims[3] + w);
            if (v > best) best = v;
        }
    return best;
}

Err ref_roi_max(double scale, const Tensor *x, const Tensor *rois, Tensor *y) {
    int64_t channels = y->dims[1], bins_h = y->dims[2], bins_w = y->dims[3], at = 0;
    for (int64_t i = 0; i < rois->dims[0] && !work_stopped(); i++) {
        Region r;
        TRY(region_read(scale, x, rois, i, &r));
        for (int64_t c = 0; c < channels && !work_stopped(); c++)
            for (int64_t b = 0; b < bins_h * bins_w && !work_stopped(); b++) {
                RefSpan rows = bin(r.y, r.h, b / bins_w, bins_h, x->dims[2]);
                RefSpan cols = bin(r.x, r.w, b % bins_w, bins_w, x->dims[3]);
                double  v = bin_max(x, r.image * channels + c, rows, cols);
                tensor_set(y, at++, v);
            }
    }
    return ERR_OK;
}
