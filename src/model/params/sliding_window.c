#include "model/params/sliding_window.h"

#include <inttypes.h>
#include <string.h>

#include "model/attr.h"
#include "model/infer/infer.h"

// With parameters up to 2^30 and sizes up to 2^47 no sum of products below overflows.
static const int64_t param_max = INT64_C(1) << 30, size_max = INT64_C(1) << 47;

typedef enum AutoPad { PAD_NOTSET, PAD_VALID, PAD_SAME_UPPER, PAD_SAME_LOWER } AutoPad;

static Err read_auto_pad(const Node *n, AutoPad *out) {
    static const char *const names[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    const char              *s = attr_str(n, "auto_pad", "NOTSET");
    if (s[0] == '\0') s = names[PAD_NOTSET];
    for (int i = 0; i < 4; i++)
        if (strcmp(s, names[i]) == 0) {
            *out = (AutoPad)i;
            return ERR_OK;
        }
    return err_set(ERR_INVALID, "auto_pad '%.32s' is not one of NOTSET, VALID, SAME_*", s);
}

// A list attribute of count values in [low, 2^30]; absent or empty: all are `otherwise`.
static Err read_list(const Node *n, const char *name, int32_t count, int64_t low, int64_t otherwise,
                     int64_t *out) {
    uint32_t       have = 0;
    const int64_t *v = attr_ints(n, name, &have);
    if (have != 0 && have != (uint32_t)count)
        return err_set(ERR_INVALID, "%s has %u values, needs %d", name, have, count);
    for (int32_t i = 0; i < count; i++) {
        out[i] = have != 0 ? v[i] : otherwise;
        if (out[i] < low || out[i] > param_max)
            return err_set(ERR_INVALID, "%s holds %" PRId64 ", must be in %" PRId64 "..%" PRId64,
                           name, out[i], low, param_max);
    }
    return ERR_OK;
}

static Err read_kernel(const Node *n, const int64_t *kernel, SlidingWindow *w) {
    uint32_t have = 0;
    (void)attr_ints(n, "kernel_shape", &have);
    if (have == 0 && kernel == NULL) return err_set(ERR_INVALID, "kernel_shape is missing");
    TRY(read_list(n, "kernel_shape", w->rank, 1, 1, w->kernel));
    for (int32_t i = 0; kernel != NULL && i < w->rank; i++) {
        if (have != 0 && w->kernel[i] != kernel[i])
            return err_set(ERR_INVALID, "kernel_shape says %" PRId64 ", the weights %" PRId64,
                           w->kernel[i], kernel[i]);
        if (kernel[i] < 1 || kernel[i] > param_max)
            return err_set(ERR_INVALID, "the weights have a kernel of size %" PRId64, kernel[i]);
        w->kernel[i] = kernel[i];
    }
    return ERR_OK;
}

static Err read_params(const Node *n, const Tensor *x, const int64_t *kernel, SlidingWindow *w,
                       AutoPad *how) {
    *w = (SlidingWindow){.rank = x->rank - 2};
    if (x->rank < 3)
        return err_set(ERR_INVALID, "the input has rank %d, needs at least 3", x->rank);
    for (int32_t i = 0; i < w->rank; i++)
        if (x->dims[i + 2] < 1 || x->dims[i + 2] > size_max)
            return err_set(ERR_INVALID, "a spatial dimension of the input is %" PRId64,
                           x->dims[i + 2]);
    int64_t pads[2 * WINDOW_MAX] = {0};
    TRY(read_kernel(n, kernel, w));
    TRY(read_list(n, "strides", w->rank, 1, 1, w->stride));
    TRY(read_list(n, "dilations", w->rank, 1, 1, w->dilation));
    TRY(read_list(n, "pads", 2 * w->rank, 0, 0, pads));
    TRY(read_auto_pad(n, how));
    for (int32_t i = 0; i < w->rank && *how == PAD_NOTSET; i++) {
        w->pad[i] = pads[i];
        w->pad_end[i] = pads[w->rank + i];
    }
    return ERR_OK;
}

static int64_t extent(const SlidingWindow *w, int32_t i) {
    return (w->kernel[i] - 1) * w->dilation[i] + 1;
}

// Splits padding between both sides; an odd element goes to the end, or to the start if lower.
static void split_padding(int64_t total, bool lower, int64_t *start, int64_t *end) {
    *start = lower ? (total + 1) / 2 : total / 2;
    *end = total - *start;
}

static void fit_same(SlidingWindow *w, int32_t i, AutoPad how) {
    w->out[i] = (w->in[i] + w->stride[i] - 1) / w->stride[i];
    int64_t total = (w->out[i] - 1) * w->stride[i] + extent(w, i) - w->in[i];
    split_padding(total > 0 ? total : 0, how == PAD_SAME_LOWER, &w->pad[i], &w->pad_end[i]);
}

static Err fit(SlidingWindow *w, int32_t i, bool ceil_mode) {
    int64_t room = w->in[i] + w->pad[i] + w->pad_end[i] - extent(w, i);
    if (room < 0)
        return err_set(ERR_INVALID,
                       "a window of %" PRId64 " does not fit a padded input of %" PRId64,
                       extent(w, i), room + extent(w, i));
    w->out[i] = (room + (ceil_mode ? w->stride[i] - 1 : 0)) / w->stride[i] + 1;
    // A window that starts in the padding behind the input does not count.
    if (ceil_mode && w->out[i] > 1 && (w->out[i] - 1) * w->stride[i] >= w->in[i] + w->pad[i])
        w->out[i]--;
    return ERR_OK;
}

Err sliding_window_read(const Node *n, const Tensor *x, const int64_t *kernel, SlidingWindow *w) {
    AutoPad how;
    TRY(read_params(n, x, kernel, w, &how));
    bool ceil_mode = attr_int(n, "ceil_mode", 0) != 0;
    for (int32_t i = 0; i < w->rank; i++) {
        w->in[i] = x->dims[i + 2];
        if (how == PAD_SAME_UPPER || how == PAD_SAME_LOWER)
            fit_same(w, i, how);
        else
            TRY(fit(w, i, ceil_mode));
    }
    return ERR_OK;
}

// output_shape overrides pads; it has the spatial dimensions or all of them.
static Err fit_output_shape(const Node *n, SlidingWindow *w, const int64_t *extra, AutoPad how) {
    uint32_t       have = 0;
    const int64_t *shape = attr_ints(n, "output_shape", &have);
    if (have != (uint32_t)w->rank && have != (uint32_t)w->rank + 2)
        return err_set(ERR_INVALID, "output_shape has %u values, needs %d", have, w->rank);
    shape += have - (uint32_t)w->rank;
    for (int32_t i = 0; i < w->rank; i++) {
        if (shape[i] < 1 || shape[i] > size_max)
            return err_set(ERR_INVALID, "output_shape holds %" PRId64, shape[i]);
        w->in[i] = shape[i];
        int64_t total = (w->out[i] - 1) * w->stride[i] + extra[i] + extent(w, i) - shape[i];
        split_padding(total > 0 ? total : 0, how != PAD_SAME_UPPER, &w->pad[i], &w->pad_end[i]);
    }
    return ERR_OK;
}

static Err fit_transposed(SlidingWindow *w, int32_t i, int64_t extra, AutoPad how) {
    int64_t full = (w->out[i] - 1) * w->stride[i] + extra + extent(w, i);
    if (how == PAD_SAME_UPPER || how == PAD_SAME_LOWER) {
        int64_t total = full - w->out[i] * w->stride[i];
        split_padding(total > 0 ? total : 0, how == PAD_SAME_LOWER, &w->pad[i], &w->pad_end[i]);
        w->in[i] = w->out[i] * w->stride[i];
        return ERR_OK;
    }
    w->in[i] = full - w->pad[i] - w->pad_end[i];
    if (w->in[i] < 1)
        return err_set(ERR_INVALID, "the output has size %" PRId64 " after padding", w->in[i]);
    return ERR_OK;
}

// The spatial sizes of x are the outputs of the window.
static Err set_positions(const Tensor *x, SlidingWindow *w) {
    for (int32_t i = 0; i < w->rank; i++) {
        w->out[i] = x->dims[i + 2];
        if (w->out[i] > size_max / w->stride[i])
            return err_set(ERR_INVALID,
                           "an input of size %" PRId64 " with stride %" PRId64 " is too large",
                           w->out[i], w->stride[i]);
    }
    return ERR_OK;
}

Err sliding_window_read_transposed(const Node *n, const Tensor *x, const int64_t *kernel,
                                   SlidingWindow *w) {
    AutoPad  how;
    uint32_t have = 0;
    int64_t  extra[WINDOW_MAX];
    TRY(read_params(n, x, kernel, w, &how));
    TRY(read_list(n, "output_padding", w->rank, 0, 0, extra));
    TRY(set_positions(x, w));
    (void)attr_ints(n, "output_shape", &have);
    if (have != 0) return fit_output_shape(n, w, extra, how);
    for (int32_t i = 0; i < w->rank; i++) TRY(fit_transposed(w, i, extra[i], how));
    return ERR_OK;
}

Err sliding_window_read_unpool(const Node *n, const Tensor *x, SlidingWindow *w) {
    AutoPad how;
    TRY(read_params(n, x, NULL, w, &how));
    TRY(set_positions(x, w));
    for (int32_t i = 0; i < w->rank; i++) TRY(fit_transposed(w, i, 0, PAD_NOTSET));
    return ERR_OK;
}

static Err col2im_fits(const Tensor *x, const SlidingWindow *w, int64_t *channels) {
    int64_t taps = 1, positions = 1;
    bool    over = false;
    for (int32_t i = 0; i < w->rank; i++)
        over = over || __builtin_mul_overflow(taps, w->kernel[i], &taps) ||
               __builtin_mul_overflow(positions, w->out[i], &positions);
    if (over || x->dims[1] % taps != 0 || x->dims[2] != positions)
        return err_set(ERR_INVALID,
                       "%" PRId64 " rows of %" PRId64 " do not match block_shape and image_shape",
                       x->dims[1], x->dims[2]);
    *channels = x->dims[1] / taps;
    return ERR_OK;
}

Err sliding_window_read_col2im(const Node *n, const Tensor *x, const Tensor *image,
                               const Tensor *block, SlidingWindow *w, int64_t *channels) {
    int64_t  kernel[WINDOW_MAX];
    uint32_t n_image = 0, n_kernel = 0;
    Tensor   y = {.dtype = x->dtype, .dims = {1, 1}};
    TRY(infer_read_ints(image, y.dims + 2, WINDOW_MAX, &n_image));
    TRY(infer_read_ints(block, kernel, WINDOW_MAX, &n_kernel));
    if (x->rank != 3 || n_image != n_kernel)
        return err_set(ERR_INVALID, "an input of rank %d, image of %u and block of %u dimensions",
                       x->rank, n_image, n_kernel);
    y.rank = (int32_t)n_image + 2;
    TRY(sliding_window_read(n, &y, kernel, w));
    return col2im_fits(x, w, channels);
}

void sliding_window_whole(const Tensor *x, SlidingWindow *w) {
    *w = (SlidingWindow){.rank = 1, .out = {1}, .stride = {1}, .dilation = {1}};
    int64_t n = 1;
    for (int32_t i = 2; i < x->rank; i++) n *= x->dims[i];
    w->in[0] = w->kernel[0] = n;
}
