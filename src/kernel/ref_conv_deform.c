#include "base/number.h"
#include "kernel/panel.h"
#include "kernel/ref_conv.h"
#include "kernel/ref_sample.h"

// One tap of one offset group for one output: where it looks and how much it counts.
typedef struct Look {
    RefTaps taps[REF_WINDOW_MAX];
    double  mask;
} Look;

// offset [N, groups * taps * rank, out...], mask [N, groups * taps, out...].
static Look look_at(const RefConvDeform *p, int64_t image, int64_t group, int64_t tap_at,
                    const int64_t *tap, int64_t out_at) {
    const RefWindow *w = &p->conv.window;
    int64_t          outputs = ref_window_count(w->rank, w->out);
    int64_t          taps = ref_window_count(w->rank, w->kernel), out[REF_WINDOW_MAX];
    int64_t          which = (image * p->offset_group + group) * taps + tap_at;
    Look             look = {.mask = 1};
    ref_window_split(w->rank, w->out, out_at, out);
    for (int32_t d = 0; d < w->rank; d++) {
        double at = (double)(out[d] * w->stride[d] + tap[d] * w->dilation[d] - w->pad[d]);
        at += number_f64(p->offset, (which * w->rank + d) * outputs + out_at);
        look.taps[d] = ref_sample_linear(at, w->in[d]);
    }
    if (p->mask != NULL) look.mask = number_f64(p->mask, which * outputs + out_at);
    return look;
}

static void patch_deform(const void *self, const Tensor *x, int64_t image, int64_t group,
                         int64_t at, int64_t n, double *panel) {
    const RefConvDeform *p = self;
    const RefWindow     *w = &p->conv.window;
    int64_t              channels = x->dims[1] / p->conv.group, each = x->dims[1] / p->offset_group;
    for (int64_t c = group * channels; c < (group + 1) * channels; c++) {
        int64_t tap[REF_WINDOW_MAX] = {0}, tap_at = 0;
        do {
            for (int64_t j = 0; j < n; j++) {
                Look look = look_at(p, image, c / each, tap_at, tap, at + j);
                panel[j] = look.mask *
                           ref_sample_sum(x, image * x->dims[1] + c, w->rank, w->in, look.taps);
            }
            panel += PANEL;
            tap_at++;
        } while (ref_window_next(w->rank, w->kernel, tap));
    }
}

Err ref_conv_deform(const RefConvDeform *p, const Tensor *x, const Tensor *w, const Tensor *bias,
                    Tensor *y, Arena *scratch) {
    return ref_conv_patches(&p->conv, patch_deform, p, x, w, bias, y, scratch);
}
