#include <inttypes.h>
#include <math.h>

#include "base/number.h"
#include "kernel/ref_sample.h"
#include "kernel/wide.h"

enum { POINTS_MAX = 1 << 12 };  // of a bin, in one dimension

// One region along one dimension: where it starts, its bins and the points inside each.
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

// A point just outside is drawn to the border; further out there is nothing.
static RefTaps border_taps(double x, int64_t size) {
    if (!(x >= -1 && x <= (double)size)) return (RefTaps){.n = 1, .at = {-1}};
    x = fmin(fmax(x, 0), (double)(size - 1));
    return ref_sample_linear(x, size);
}

// The largest of the four weighted pixels: what the operator's max mode has always meant.
static double largest(const Tensor *x, int64_t plane, const RefTaps *taps) {
    double best = (double)-INFINITY;
    for (int i = 0; i < taps[0].n; i++)
        for (int j = 0; j < taps[1].n; j++) {
            int64_t h = taps[0].at[i], w = taps[1].at[j];
            double  v = 0;
            if (h >= 0 && w >= 0)
                v = taps[0].weight[i] * taps[1].weight[j] *
                    number_f64(x, (plane * x->dims[2] + h) * x->dims[3] + w);
            best = fmax(best, v);
        }
    return best;
}

static double bin_value(const RefRoiAlign *p, const Tensor *x, int64_t plane, const Span *span,
                        int64_t row, int64_t col) {
    int64_t count = span[0].points * span[1].points;
    double  sum = 0, best = (double)-INFINITY;
    for (int64_t i = 0; i < count; i++) {
        int64_t at[2] = {i / span[1].points, i % span[1].points}, bin[2] = {row, col};
        RefTaps taps[2];
        for (int d = 0; d < 2; d++) {
            double inside = ((double)at[d] + 0.5) / (double)span[d].points;
            double place = span[d].start + ((double)bin[d] + inside) * span[d].bin;
            taps[d] = border_taps(place, x->dims[2 + d]);
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
    for (int64_t r = 0; r < y->dims[0]; r++) {
        double  box[4];
        Span    span[2];
        int64_t image = number_i64(images, r);
        if (image < 0 || image >= x->dims[0])
            return err_set(ERR_INVALID, "region %" PRId64 " names image %" PRId64 " of %" PRId64, r,
                           image, x->dims[0]);
        wide_read(rois, r * 4, 1, 4, box);
        TRY(span_of(p, box[1], box[3], rows, &span[0]));
        TRY(span_of(p, box[0], box[2], cols, &span[1]));
        for (int64_t i = 0; i < channels * rows * cols; i++) {
            int64_t plane = image * channels + i / (rows * cols);
            number_set(y, at++, bin_value(p, x, plane, span, i / cols % rows, i % cols));
        }
    }
    return ERR_OK;
}
