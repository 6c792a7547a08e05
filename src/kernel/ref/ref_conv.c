#include "kernel/ref/ref_conv.h"

#include <string.h>

#include "base/err.h"
#include "base/tensor.h"
#include "base/work_stop.h"
#include "kernel/ref/ref_int.h"
#include "kernel/ref/ref_sample.h"
#include "kernel/wide_type.h"

bool ref_window_next(int32_t rank, const int64_t *dims, int64_t *at) {
    for (int32_t i = rank - 1; i >= 0; i--) {
        if (++at[i] < dims[i]) return true;
        at[i] = 0;
    }
    return false;
}

void ref_window_split(int32_t rank, const int64_t *dims, int64_t linear, int64_t *at) {
    for (int32_t i = rank - 1; i >= 0; i--) {
        at[i] = linear % dims[i];
        linear /= dims[i];
    }
}

static int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

// Integers x in [0, count) with low <= x * step + shift < high.
static RefSpan span(int64_t step, int64_t shift, int64_t low, int64_t high, int64_t count) {
    int64_t from = ceil_div(low - shift, step), to = ceil_div(high - shift, step);
    return (RefSpan){from > 0 ? from : 0, to < count ? to : count};
}

// Outputs of dimension d in [0, out) that read inside the input through this tap.
static RefSpan window_outputs(const RefWindow *w, int32_t d, int64_t tap) {
    return span(w->stride[d], tap * w->dilation[d] - w->pad[d], 0, w->in[d], w->out[d]);
}

RefSpan ref_window_taps(const RefWindow *w, int32_t d, int64_t o, int64_t low, int64_t high) {
    return span(w->dilation[d], o * w->stride[d] - w->pad[d], low, high, w->kernel[d]);
}

// The same window in as few dimensions as possible: one if it is 1x1, unpadded and unstrided.
static RefWindow window_flatten(const RefWindow *w) {
    for (int32_t i = 0; i < w->rank; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->pad[i] != 0 || w->in[i] != w->out[i])
            return *w;
    int64_t n = ref_product(w->in, w->rank);
    return (RefWindow){
        .rank = 1, .in = {n}, .out = {n}, .kernel = {1}, .stride = {1}, .dilation = {1}};
}

// Adds v[j] to the element of plane that `tap` reads for output at + j.
static void window_scatter(const RefWindow *w, const int64_t *tap, int64_t at, int64_t n,
                           const double *v, double *plane) {
    int64_t pos[REF_WINDOW_MAX] = {0};
    ref_window_split(w->rank, w->out, at, pos);
    for (int64_t j = 0; j < n && !work_stopped(); j++) {
        int64_t to = 0;
        bool    inside = true;
        for (int32_t d = 0; d < w->rank; d++) {
            int64_t i = pos[d] * w->stride[d] + tap[d] * w->dilation[d] - w->pad[d];
            if (i < 0 || i >= w->in[d]) inside = false;
            to = to * w->in[d] + (inside ? i : 0);
        }
        if (inside) plane[to] += v[j];
        (void)ref_window_next(w->rank, w->out, pos);
    }
}

// Outputs are computed PANEL at a time: their input patches are the columns of a panel, which is
// multiplied by each output channel's row of weights.

static void subtract(double zero, int64_t n, double *v) {
    WORK_EACH (i, n) v[i] -= zero;
}

// Inputs read through one tap by n outputs of a line along the last dimension.
static void patch_line(const RefConv *p, const Tensor *x, int64_t plane, const int64_t *out,
                       const int64_t *tap, int64_t n, double *line) {
    const RefWindow *w = &p->window;
    int32_t          last = w->rank - 1;
    for (int32_t d = 0; d < last; d++) {
        int64_t i = out[d] * w->stride[d] + tap[d] * w->dilation[d] - w->pad[d];
        if (i < 0 || i >= w->in[d]) return;
        plane = plane * w->in[d] + i;
    }
    RefSpan s = window_outputs(w, last, tap[last]);
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
    for (int64_t c = 0; c < channels && !work_stopped(); c++) {
        int64_t tap[REF_WINDOW_MAX] = {0};
        do {
            patch_tap(p, x, plane + c, tap, at, n, panel);
            panel += PANEL;
        } while (ref_window_next(p->window.rank, p->window.kernel, tap) && !work_stopped());
    }
}

static double zero_of(const Tensor *zero, int64_t channel) {
    if (zero == NULL) return 0;
    return tensor_get_f64(zero, tensor_count(zero) == 1 ? 0 : channel);
}

typedef struct Work {
    int64_t outputs, taps;  // per image; weights per output channel
    double *panel, *row;
} Work;

static void conv_block(const RefConv *p, const Tensor *w, const Tensor *bias, Tensor *y,
                       const Work *s, int64_t image, int64_t group, int64_t at, int64_t n) {
    int64_t each = w->dims[0] / p->group;
    for (int64_t m = group * each; m < (group + 1) * each && !work_stopped(); m++) {
        double acc[PANEL] = {0}, zero = zero_of(p->w_zero, m);
        double start = bias != NULL ? tensor_get_f64(bias, m) : 0;
        for (int64_t j = 0; j < n; j++) acc[j] = start;
        wide_read(w, m * s->taps, 1, s->taps, s->row);
        if (zero != 0) subtract(zero, s->taps, s->row);
        panel_dot(s->panel, s->row, s->taps, acc);
        wide_write(y, (image * w->dims[0] + m) * s->outputs + at, 1, n, acc);
    }
}

// Fills panel[c * taps + tap][j] with the input that output at + j of an image reads through each
// tap; j < n.
typedef void PatchFn(const void *self, const Tensor *x, int64_t image, int64_t group, int64_t at,
                     int64_t n, double *panel);

// Convolution over patches; of the window only the sizes are read.
static Err conv_patches(const RefConv *p, PatchFn *patch, const void *self, const Tensor *x,
                        const Tensor *w, const Tensor *bias, Tensor *y, Arena *scratch) {
    if (tensor_count(y) == 0) return ERR_OK;
    Work s = {.outputs = ref_product(p->window.out, p->window.rank)};
    s.taps = w->dims[1] * ref_product(p->window.kernel, p->window.rank);
    TRY(ref_alloc_doubles(scratch, s.taps, PANEL, &s.panel));
    TRY(ref_alloc_doubles(scratch, s.taps, 1, &s.row));
    for (int64_t image = 0; image < x->dims[0] && !work_stopped(); image++)
        for (int64_t group = 0; group < p->group && !work_stopped(); group++)
            for (int64_t at = 0; at < s.outputs && !work_stopped(); at += PANEL) {
                int64_t n = s.outputs - at < PANEL ? s.outputs - at : PANEL;
                patch(self, x, image, group, at, n, s.panel);
                conv_block(p, w, bias, y, &s, image, group, at, n);
            }
    return ERR_OK;
}

Err ref_conv(const RefConv *p, const Tensor *x, const Tensor *w, const Tensor *bias, Tensor *y,
             Arena *scratch) {
    RefConv flat = *p;
    flat.window = window_flatten(&p->window);
    return conv_patches(&flat, patch_window, &flat, x, w, bias, y, scratch);
}

// Sampling position and weight of one tap of one offset group for one output.
typedef struct DeformTap {
    RefTaps taps[REF_WINDOW_MAX];
    double  mask;
} DeformTap;

// offset [N, groups * taps * rank, out...], mask [N, groups * taps, out...].
static DeformTap deform_tap(const RefConvDeform *p, int64_t image, int64_t group, int64_t tap_at,
                            const int64_t *tap, int64_t out_at) {
    const RefWindow *w = &p->conv.window;
    int64_t          outputs = ref_product(w->out, w->rank);
    int64_t          taps = ref_product(w->kernel, w->rank), out[REF_WINDOW_MAX];
    int64_t          which = (image * p->offset_group + group) * taps + tap_at;
    DeformTap        t = {.mask = 1};
    ref_window_split(w->rank, w->out, out_at, out);
    for (int32_t d = 0; d < w->rank; d++) {
        double at = (double)(out[d] * w->stride[d] + tap[d] * w->dilation[d] - w->pad[d]);
        at += tensor_get_f64(p->offset, (which * w->rank + d) * outputs + out_at);
        t.taps[d] = ref_sample_linear(at, w->in[d]);
    }
    if (p->mask != NULL) t.mask = tensor_get_f64(p->mask, which * outputs + out_at);
    return t;
}

static void patch_deform(const void *self, const Tensor *x, int64_t image, int64_t group,
                         int64_t at, int64_t n, double *panel) {
    const RefConvDeform *p = self;
    const RefWindow     *w = &p->conv.window;
    int64_t              channels = x->dims[1] / p->conv.group, each = x->dims[1] / p->offset_group;
    for (int64_t c = group * channels; c < (group + 1) * channels && !work_stopped(); c++) {
        int64_t tap[REF_WINDOW_MAX] = {0}, tap_at = 0;
        do {
            for (int64_t j = 0; j < n && !work_stopped(); j++) {
                DeformTap t = deform_tap(p, image, c / each, tap_at, tap, at + j);
                panel[j] =
                    t.mask * ref_sample_sum(x, image * x->dims[1] + c, w->rank, w->in, t.taps);
            }
            panel += PANEL;
            tap_at++;
        } while (ref_window_next(w->rank, w->kernel, tap) && !work_stopped());
    }
}

Err ref_conv_deform(const RefConvDeform *p, const Tensor *x, const Tensor *w, const Tensor *bias,
                    Tensor *y, Arena *scratch) {
    return conv_patches(&p->conv, patch_deform, p, x, w, bias, y, scratch);
}

// The window is that of the forward convolution from y to x: an element of x is an output of the
// window, and its taps are the elements of y to which products are added.

typedef struct TransposeWork {
    int64_t channels, each;      // input and output channels per group
    int64_t positions, outputs;  // per image
    int64_t taps;
    double *panel, *row, *planes;
} TransposeWork;

static void scatter_block(const RefConv *p, const Tensor *w, const TransposeWork *s, int64_t group,
                          int64_t at, int64_t n) {
    int64_t step = s->each * s->taps;
    for (int64_t m = 0; m < s->each && !work_stopped(); m++) {
        int64_t tap[REF_WINDOW_MAX] = {0}, k = 0;
        do {
            double acc[PANEL] = {0};
            wide_read(w, group * s->channels * step + m * s->taps + k, step, s->channels, s->row);
            panel_dot(s->panel, s->row, s->channels, acc);
            window_scatter(&p->window, tap, at, n, acc, s->planes + m * s->outputs);
            k++;
        } while (ref_window_next(p->window.rank, p->window.kernel, tap) && !work_stopped());
    }
}

static void group_start(const Tensor *bias, const TransposeWork *s, int64_t group) {
    for (int64_t m = 0; m < s->each && !work_stopped(); m++) {
        double start = bias != NULL ? tensor_get_f64(bias, group * s->each + m) : 0;
        for (int64_t i = 0; i < s->outputs; i++) s->planes[m * s->outputs + i] = start;
    }
}

static void group_run(const RefConv *p, const Tensor *x, const Tensor *w, const Tensor *bias,
                      Tensor *y, const TransposeWork *s, int64_t image, int64_t group) {
    int64_t plane = image * x->dims[1] + group * s->channels;
    group_start(bias, s, group);
    for (int64_t at = 0; at < s->positions && !work_stopped(); at += PANEL) {
        int64_t n = s->positions - at < PANEL ? s->positions - at : PANEL;
        for (int64_t c = 0; c < s->channels && !work_stopped(); c++)
            wide_read(x, (plane + c) * s->positions + at, 1, n, s->panel + c * PANEL);
        scatter_block(p, w, s, group, at, n);
    }
    int64_t to = (image * p->group + group) * s->each * s->outputs;
    wide_write(y, to, 1, s->each * s->outputs, s->planes);
}

Err ref_conv_transpose(const RefConv *p, const Tensor *x, const Tensor *w, const Tensor *bias,
                       Tensor *y, Arena *scratch) {
    if (tensor_count(y) == 0) return ERR_OK;
    TransposeWork s = {.channels = x->dims[1] / p->group, .each = w->dims[1]};
    s.positions = ref_product(p->window.out, p->window.rank);
    s.outputs = ref_product(p->window.in, p->window.rank);
    s.taps = ref_product(p->window.kernel, p->window.rank);
    TRY(ref_alloc_doubles(scratch, s.channels, PANEL, &s.panel));
    TRY(ref_alloc_doubles(scratch, s.channels, 1, &s.row));
    TRY(ref_alloc_doubles(scratch, s.each, s.outputs, &s.planes));
    for (int64_t image = 0; image < x->dims[0] && !work_stopped(); image++)
        for (int64_t group = 0; group < p->group && !work_stopped(); group++)
            group_run(p, x, w, bias, y, &s, image, group);
    return ERR_OK;
}

Err ref_col2im(const RefWindow *w, const Tensor *x, Tensor *y, Arena *scratch) {
    int64_t positions = ref_product(w->out, w->rank), taps = ref_product(w->kernel, w->rank);
    int64_t size = ref_product(w->in, w->rank), row = 0;
    double *line, *plane;
    TRY(ref_alloc_doubles(scratch, positions, 1, &line));
    TRY(ref_alloc_doubles(scratch, size, 1, &plane));
    for (int64_t i = 0; i < y->dims[0] * y->dims[1] && !work_stopped(); i++) {
        int64_t tap[REF_WINDOW_MAX] = {0};
        for (int64_t k = 0; k < size; k++) plane[k] = 0;
        do {
            wide_read(x, row++ * positions, 1, positions, line);
            window_scatter(w, tap, 0, positions, line, plane);
        } while (ref_window_next(w->rank, w->kernel, tap) && !work_stopped());
        wide_write(y, i * size, 1, size, plane);
    }
    CHECK(work_stopped() || row == y->dims[0] * y->dims[1] * taps);
    return ERR_OK;
}
