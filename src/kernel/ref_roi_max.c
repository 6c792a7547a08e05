#include <inttypes.h>
#include <math.h>

#include "base/number.h"
#include "kernel/ref_pool.h"
#include "kernel/wide.h"

// A region's corners in whole pixels: [from, to) of a bin is clipped to the image.
typedef struct Region {
    int64_t image, x, y, w, h;
} Region;

static int64_t pixel(double v) {
    const double limit = 1099511627776.0;  // 2^40: far outside any image, safe to compute with
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
    for (int64_t h = rows.from; h < rows.to; h++)
        for (int64_t w = cols.from; w < cols.to; w++) {
            double v = number_f64(x, (plane * x->dims[2] + h) * x->dims[3] + w);
            if (v > best) best = v;
        }
    return best;
}

Err ref_roi_max(double scale, const Tensor *x, const Tensor *rois, Tensor *y) {
    int64_t channels = y->dims[1], bins_h = y->dims[2], bins_w = y->dims[3], at = 0;
    for (int64_t i = 0; i < rois->dims[0]; i++) {
        Region r;
        TRY(region_read(scale, x, rois, i, &r));
        for (int64_t c = 0; c < channels; c++)
            for (int64_t b = 0; b < bins_h * bins_w; b++) {
                RefSpan rows = bin(r.y, r.h, b / bins_w, bins_h, x->dims[2]);
                RefSpan cols = bin(r.x, r.w, b % bins_w, bins_w, x->dims[3]);
                double  v = bin_max(x, r.image * channels + c, rows, cols);
                number_set(y, at++, v);
            }
    }
    return ERR_OK;
}
