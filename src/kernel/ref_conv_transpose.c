#include "base/check.h"
#include "base/number.h"
#include "kernel/panel.h"
#include "kernel/ref_conv.h"
#include "kernel/wide.h"

// The window is that of the forward convolution from y to x, so an input position of ours is an
// output of the window, and its taps say where in y the products are added.

// Work space of one group of one image.
typedef struct Space {
    int64_t channels, each;      // inputs and outputs of a group
    int64_t positions, outputs;  // of an image
    int64_t taps;
    double *panel, *row, *planes;
} Space;

static void spread_block(const RefConv *p, const Tensor *w, const Space *s, int64_t group,
                         int64_t at, int64_t n) {
    int64_t step = s->each * s->taps;
    for (int64_t m = 0; m < s->each; m++) {
        int64_t tap[REF_WINDOW_MAX] = {0}, k = 0;
        do {
            double acc[PANEL] = {0};
            wide_read(w, group * s->channels * step + m * s->taps + k, step, s->channels, s->row);
            panel_dot(s->panel, s->row, s->channels, acc);
            ref_window_scatter(&p->window, tap, at, n, acc, s->planes + m * s->outputs);
            k++;
        } while (ref_window_next(p->window.rank, p->window.kernel, tap));
    }
}

static void group_start(const Tensor *bias, const Space *s, int64_t group) {
    for (int64_t m = 0; m < s->each; m++) {
        double start = bias != NULL ? number_f64(bias, group * s->each + m) : 0;
        for (int64_t i = 0; i < s->outputs; i++) s->planes[m * s->outputs + i] = start;
    }
}

static void group_run(const RefConv *p, const Tensor *x, const Tensor *w, const Tensor *bias,
                      Tensor *y, const Space *s, int64_t image, int64_t group) {
    int64_t plane = image * x->dims[1] + group * s->channels;
    group_start(bias, s, group);
    for (int64_t at = 0; at < s->positions; at += PANEL) {
        int64_t n = s->positions - at < PANEL ? s->positions - at : PANEL;
        for (int64_t c = 0; c < s->channels; c++)
            wide_read(x, (plane + c) * s->positions + at, 1, n, s->panel + c * PANEL);
        spread_block(p, w, s, group, at, n);
    }
    int64_t to = (image * p->group + group) * s->each * s->outputs;
    wide_write(y, to, 1, s->each * s->outputs, s->planes);
}

Err ref_conv_transpose(const RefConv *p, const Tensor *x, const Tensor *w, const Tensor *bias,
                       Tensor *y, Arena *scratch) {
    if (tensor_count(y) == 0) return ERR_OK;
    Space s = {.channels = x->dims[1] / p->group, .each = w->dims[1]};
    s.positions = ref_window_count(p->window.rank, p->window.out);
    s.outputs = ref_window_count(p->window.rank, p->window.in);
    s.taps = ref_window_count(p->window.rank, p->window.kernel);
    TRY(panel_room(scratch, s.channels, PANEL, &s.panel));
    TRY(panel_room(scratch, s.channels, 1, &s.row));
    TRY(panel_room(scratch, s.each, s.outputs, &s.planes));
    for (int64_t image = 0; image < x->dims[0]; image++)
        for (int64_t group = 0; group < p->group; group++)
            group_run(p, x, w, bias, y, &s, image, group);
    return ERR_OK;
}

Err ref_col2im(const RefWindow *w, const Tensor *x, Tensor *y, Arena *scratch) {
    int64_t positions = ref_window_count(w->rank, w->out),
            taps = ref_window_count(w->rank, w->kernel);
    int64_t size = ref_window_count(w->rank, w->in), row = 0;
    double *line, *plane;
    TRY(panel_room(scratch, positions, 1, &line));
    TRY(panel_room(scratch, size, 1, &plane));
    for (int64_t i = 0; i < y->dims[0] * y->dims[1]; i++) {
        int64_t tap[REF_WINDOW_MAX] = {0};
        for (int64_t k = 0; k < size; k++) plane[k] = 0;
        do {
            wide_read(x, row++ * positions, 1, positions, line);
            ref_window_scatter(w, tap, 0, positions, line, plane);
        } while (ref_window_next(w->rank, w->kernel, tap));
        wide_write(y, i * size, 1, size, plane);
    }
    CHECK(row == y->dims[0] * y->dims[1] * taps);
    return ERR_OK;
}
