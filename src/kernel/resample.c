#include "kernel/resample.h"

#include <math.h>

#include "kernel/blocking.h"

enum { RESAMPLE_TASK = 8192 };  // floats written per task, approximately

static uint32_t channels_per_plane(const Resample *r, uint32_t lanes) {
    return r->plain ? 1 : lanes;
}

uint32_t resample_rows(const Resample *r, uint32_t lanes) {
    uint64_t rows = RESAMPLE_TASK / ((uint64_t)r->ow * channels_per_plane(r, lanes)) + 1;
    return rows < r->oh ? (uint32_t)rows : r->oh;
}

uint32_t resample_tasks(const Resample *r, const Isa *isa) {
    const uint32_t together = channels_per_plane(r, isa->lanes),
                   rows = resample_rows(r, isa->lanes);
    uint64_t planes = (uint64_t)r->n * ceil_div(r->c, together);
    return checked_tasks(planes * ceil_div(r->oh, rows));
}

size_t resample_scratch(const Resample *r, const Isa *isa) {
    return r->nearest ? 0 : 2 * (size_t)r->ow * channels_per_plane(r, isa->lanes) * sizeof(float);
}

static uint32_t clamp(int64_t i, int64_t in) {
    return (uint32_t)(i < 0 ? 0 : i >= in ? in - 1 : i);
}

static bool nearest_tap(const RefResize *p, int32_t d, int64_t o, int64_t in, int64_t out,
                        ResampleTap *t) {
    int64_t i = ref_resize_nearest(p, d, o, in, out);
    if (i < 0) return false;
    *t = (ResampleTap){{(uint32_t)i, (uint32_t)i}, {1, 0}};
    return true;
}

static bool linear_tap(const RefResize *p, int32_t d, int64_t o, int64_t in, int64_t out,
                       ResampleTap *t) {
    double x = ref_resize_coordinate(p, &p->axis[d], o, in, out), last = (double)(in - 1);
    if (p->coordinate == REF_RESIZE_TF_CROP_AND_RESIZE && !(x >= 0 && x <= last)) return false;
    if (!(fabs(x) < 2147483648.0)) return false;
    int64_t left = (int64_t)ceil(x) - 1;
    double  weight[2] = {(double)(left + 1) - x, x - (double)left};
    for (int k = 0; k < 2 && p->exclude_outside; k++)
        if (left + k < 0 || left + k >= in) weight[k] = 0;
    double sum = p->exclude_outside ? weight[0] + weight[1] : 1;
    if (sum == 0) return false;
    *t = (ResampleTap){{clamp(left, in), clamp(left + 1, in)},
                       {(float)(weight[0] / sum), (float)(weight[1] / sum)}};
    return true;
}

bool resample_keeps(const RefResize *p, int32_t d, int64_t n) {
    const RefResizeAxis *a = &p->axis[d];
    const bool           crop = p->coordinate == REF_RESIZE_TF_CROP_AND_RESIZE;
    if (a->scale != 1 || (crop && (a->roi[0] != 0 || a->roi[1] != 1))) return false;
    if (p->mode != REF_RESIZE_NEAREST) return true;
    for (int64_t o = 0; o < n; o++)
        if (ref_resize_nearest(p, d, o, n, n) != o) return false;
    return true;
}

bool resample_axis(const RefResize *p, int32_t d, int64_t in, int64_t out, ResampleTap *taps) {
    const bool nearest = p->mode == REF_RESIZE_NEAREST;
    if (p->mode == REF_RESIZE_CUBIC || in > INT32_MAX || out > INT32_MAX) return false;
    if (!nearest && p->antialias && p->axis[d].scale < 1) return false;
    const bool keeps = in == out && resample_keeps(p, d, in);
    for (int64_t o = 0; o < out; o++) {
        taps[o] = (ResampleTap){{(uint32_t)o, (uint32_t)o}, {1, 0}};
        if (keeps) continue;
        bool exact = nearest ? nearest_tap(p, d, o, in, out, &taps[o])
                             : linear_tap(p, d, o, in, out, &taps[o]);
        if (!exact) return false;
    }
    return true;
}
