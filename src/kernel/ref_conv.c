#include "kernel/ref_conv.h"

#include <string.h>

#include "base/number.h"
#include "kernel/panel.h"
#include "kernel/wide.h"

// Outputs are computed PANEL at a time: their patches become the columns of a panel, and each
// output channel's weights are one row that meets it.

static void subtract(double zero, int64_t n, double *v) {
    for (int64_t i = 0; i < n; i++) v[i] -= zero;
}

// Outputs [from, to) of one line along the last dimension, seen through one tap.
static void patch_line(const RefConv *p, const Tensor *x, int64_t plane, const int64_t *out,
                       const int64_t *tap, int64_t n, double *line) {
    const RefWindow *w = &p->window;
    int32_t          last = w->rank - 1;
    for (int32_t d = 0; d < last; d++) {
        int64_t i = out[d] * w->stride[d] + tap[d] * w->dilation[d] - w->pad[d];
        if (i < 0 || i >= w->in[d]) return;
        plane = plane * w->in[d] + i;
    }
    RefSpan s = ref_window_outputs(w, last, tap[last]);
    if (s.from < out[last]) s.from = out[last];
    if (s.to > out[last] + n) s.to = out[last] + n;
    if (s.from >= s.to) return;
    int64_t at = s.from * w->stride[last] + tap[last] * w->dilation[last] - w->pad[last];
    double *to = line + (s.from - out[last]);
    wide_read(x, plane * w->in[last] + at, w->stride[last], s.to - s.from, to);
    if (p->x_zero != 0) subtract(p->x_zero, s.to - s.from, to);
}

static void patch_tap(const RefConv *p, const Tensor *x, int64_t plane, const int64_t *tap,
                      int64_t at, int64_t n, double *row) {
    const RefWindow *w = &p->window;
    int64_t          out[REF_WINDOW_MAX] = {0};
    ref_window_split(w->rank, w->out, at, out);
    memset(row, 0, PANEL * sizeof *row);
    for (int64_t done = 0; done < n;) {
        int64_t left = w->out[w->rank - 1] - out[w->rank - 1];
        int64_t line = left < n - done ? left : n - done;
        patch_line(p, x, plane, out, tap, line, row + done);
        done += line;
        out[w->rank - 1] = w->out[w->rank - 1] - 1;
        (void)ref_window_next(w->rank, w->out, out);
    }
}

static void patch_window(const void *self, const Tensor *x, int64_t image, int64_t group,
                         int64_t at, int64_t n, double *panel) {
    const RefConv *p = self;
    int64_t        channels = x->dims[1] / p->group;
    int64_t        plane = image * x->dims[1] + group * channels;
    for (int64_t c = 0; c < channels; c++) {
        int64_t tap[REF_WINDOW_MAX] = {0};
        do {
            patch_tap(p, x, plane + c, tap, at, n, panel);
            panel += PANEL;
        } while (ref_window_next(p->window.rank, p->window.kernel, tap));
    }
}

static double zero_of(const Tensor *zero, int64_t channel) {
    if (zero == NULL) return 0;
    return number_f64(zero, tensor_count(zero) == 1 ? 0 : channel);
}

// Work space of one call.
typedef struct Space {
    int64_t outputs, taps;  // of an image; weights of an output channel
    double *panel, *row;
} Space;

static void conv_block(const RefConv *p, const Tensor *w, const Tensor *bias, Tensor *y,
                       const Space *s, int64_t image, int64_t group, int64_t at, int64_t n) {
    int64_t each = w->dims[0] / p->group;
    for (int64_t m = group * each; m < (group + 1) * each; m++) {
        double acc[PANEL] = {0}, zero = zero_of(p->w_zero, m);
        double start = bias != NULL ? number_f64(bias, m) : 0;
        for (int64_t j = 0; j < n; j++) acc[j] = start;
        wide_read(w, m * s->taps, 1, s->taps, s->row);
        if (zero != 0) subtract(zero, s->taps, s->row);
        panel_dot(s->panel, s->row, s->taps, acc);
        wide_write(y, (image * w->dims[0] + m) * s->outputs + at, 1, n, acc);
    }
}

Err ref_conv_patches(const RefConv *p, RefConvPatch *patch, const void *self, const Tensor *x,
                     const Tensor *w, const Tensor *bias, Tensor *y, Arena *scratch) {
    if (tensor_count(y) == 0) return ERR_OK;
    Space s = {.outputs = ref_window_count(p->window.rank, p->window.out)};
    s.taps = w->dims[1] * ref_window_count(p->window.rank, p->window.kernel);
    TRY(panel_room(scratch, s.taps, PANEL, &s.panel));
    TRY(panel_room(scratch, s.taps, 1, &s.row));
    for (int64_t image = 0; image < x->dims[0]; image++)
        for (int64_t group = 0; group < p->group; group++)
            for (int64_t at = 0; at < s.outputs; at += PANEL) {
                int64_t n = s.outputs - at < PANEL ? s.outputs - at : PANEL;
                patch(self, x, image, group, at, n, s.panel);
                conv_block(p, w, bias, y, &s, image, group, at, n);
            }
    return ERR_OK;
}

Err ref_conv(const RefConv *p, const Tensor *x, const Tensor *w, const Tensor *bias, Tensor *y,
             Arena *scratch) {
    RefConv flat = *p;
    flat.window = ref_window_flatten(&p->window);
    return ref_conv_patches(&flat, patch_window, &flat, x, w, bias, y, scratch);
}
