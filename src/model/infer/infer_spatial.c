// Operators over spatial dimensions: convolutions, pooling, sampling, Resize.
#include <inttypes.h>

#include "model/infer/infer.h"
#include "model/params/quant.h"
#include "model/params/resize.h"
#include "model/params/sliding_window.h"

static Err conv_group(const OpCall *c, const Tensor *x, int64_t *group) {
    *group = attr_int(c->node, "group", 1);
    if (*group < 1 || x->dims[1] % *group != 0)
        return err_set(ERR_INVALID, "group %" PRId64 " does not divide %" PRId64 " channels",
                       *group, x->dims[1]);
    return ERR_OK;
}

static Err conv_bias(const Tensor *bias, int64_t channels, DType type) {
    if (bias == NULL) return ERR_OK;
    if (bias->dtype != type)
        return err_set(ERR_INVALID, "the bias is %s, must be %s", dtype_name(bias->dtype),
                       dtype_name(type));
    if (bias->rank != 1 || bias->dims[0] != channels)
        return err_set(ERR_INVALID, "the bias must have shape %" PRId64, channels);
    return ERR_OK;
}

// N of x, then channels, then the spatial sizes.
static Err set_shape(const Tensor *x, int64_t channels, const int64_t *spatial, Tensor *out) {
    out->dtype = x->dtype;
    out->rank = x->rank;
    out->dims[0] = x->dims[0];
    out->dims[1] = channels;
    for (int32_t i = 2; i < x->rank; i++) out->dims[i] = spatial[i - 2];
    return ERR_OK;
}

// Checks the shapes of x and w and sets the output's; the caller checks types and bias.
static Err conv_shape(const OpCall *c, const Tensor *x, const Tensor *w, Tensor *out) {
    int64_t       group = 1;
    SlidingWindow win;
    if (x->rank < 3 || x->rank != w->rank)
        return err_set(ERR_INVALID, "input of rank %d and weights of rank %d", x->rank, w->rank);
    TRY(conv_group(c, x, &group));
    if (w->dims[1] != x->dims[1] / group || w->dims[0] % group != 0)
        return err_set(ERR_INVALID,
                       "weights %" PRId64 "x%" PRId64 " do not fit %" PRId64 " channels in %" PRId64
                       " groups",
                       w->dims[0], w->dims[1], x->dims[1], group);
    TRY(sliding_window_read(c->node, x, w->dims + 2, &win));
    return set_shape(x, w->dims[0], win.out, out);
}

Err infer_conv(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *w = c->in[1];
    TRY(infer_check_type(x, TYPES_FLOAT, "X"));
    TRY(infer_check_type(w, dtype_bit(x->dtype), "W"));
    TRY(conv_shape(c, x, w, out));
    return conv_bias(infer_input(c, 2), w->dims[0], x->dtype);
}

Err infer_conv_transpose(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *w = c->in[1];
    int64_t       group = 1, channels = 0;
    SlidingWindow win;
    TRY(infer_check_type(x, TYPES_FLOAT, "X"));
    TRY(infer_check_type(w, dtype_bit(x->dtype), "W"));
    if (x->rank < 3 || x->rank != w->rank)
        return err_set(ERR_INVALID, "input of rank %d and weights of rank %d", x->rank, w->rank);
    TRY(conv_group(c, x, &group));
    if (w->dims[0] != x->dims[1] || __builtin_mul_overflow(w->dims[1], group, &channels))
        return err_set(ERR_INVALID, "weights for %" PRId64 " channels, the input has %" PRId64,
                       w->dims[0], x->dims[1]);
    TRY(sliding_window_read_transposed(c->node, x, w->dims + 2, &win));
    TRY(conv_bias(infer_input(c, 2), channels, x->dtype));
    return set_shape(x, channels, win.in, out);
}

Err infer_conv_integer(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *w = c->in[1];
    TRY(infer_check_type(x, TYPES_BYTE, "x"));
    TRY(infer_check_type(w, TYPES_BYTE, "w"));
    TRY(conv_shape(c, x, w, out));
    TRY(quant_zero(infer_input(c, 2), x->dtype, 1, "x_zero_point"));
    TRY(quant_zero(infer_input(c, 3), w->dtype, w->dims[0], "w_zero_point"));
    out->dtype = DT_I32;
    return ERR_OK;
}

Err infer_conv_qlinear(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *w = c->in[3];
    TRY(infer_check_type(x, TYPES_BYTE, "x"));
    TRY(infer_check_type(w, TYPES_BYTE, "w"));
    TRY(infer_check_type(c->in[7], TYPES_BYTE, "y_zero_point"));
    TRY(conv_shape(c, x, w, out));
    TRY(quant_scale(c->in[1], 1, "x_scale"));
    TRY(quant_zero(c->in[2], x->dtype, 1, "x_zero_point"));
    TRY(quant_scale(c->in[4], w->dims[0], "w_scale"));
    TRY(quant_zero(c->in[5], w->dtype, w->dims[0], "w_zero_point"));
    TRY(quant_scale(c->in[6], 1, "y_scale"));
    TRY(quant_zero(c->in[7], c->in[7]->dtype, 1, "y_zero_point"));
    out->dtype = c->in[7]->dtype;
    return conv_bias(infer_input(c, 8), w->dims[0], DT_I32);
}

// offset or mask: [N, groups * kernel elements * each, out...].
static Err deform_fits(const Tensor *t, const Tensor *out, int64_t groups, const SlidingWindow *w,
                       int64_t each, const char *what) {
    int64_t channels = groups * each;
    bool    fits = t->rank == out->rank && t->dims[0] == out->dims[0];
    for (int32_t i = 0; i < w->rank && fits; i++)
        fits = !__builtin_mul_overflow(channels, w->kernel[i], &channels) &&
               t->dims[i + 2] == out->dims[i + 2];
    if (fits && t->dims[1] == channels) return ERR_OK;
    return err_set(ERR_INVALID, "the shape of %s does not fit the output", what);
}

Err infer_conv_deform(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *w = c->in[1], *mask = infer_input(c, 4);
    int64_t       groups = attr_int(c->node, "offset_group", 1);
    SlidingWindow win;
    TRY(infer_check_type(x, TYPES_FLOAT, "X"));
    TRY(infer_check_type(w, dtype_bit(x->dtype), "W"));
    TRY(infer_check_type(c->in[2], dtype_bit(x->dtype), "offset"));
    if (mask != NULL) TRY(infer_check_type(mask, dtype_bit(x->dtype), "mask"));
    TRY(conv_shape(c, x, w, out));
    TRY(sliding_window_read(c->node, x, w->dims + 2, &win));
    TRY(conv_bias(infer_input(c, 3), w->dims[0], x->dtype));
    if (groups < 1 || groups > INT32_MAX || x->dims[1] % groups != 0)
        return err_set(ERR_INVALID, "offset_group %" PRId64 " does not divide %" PRId64 " channels",
                       groups, x->dims[1]);
    TRY(deform_fits(c->in[2], out, groups, &win, win.rank, "offset"));
    return mask != NULL ? deform_fits(mask, out, groups, &win, 1, "mask") : ERR_OK;
}

Err infer_col2im(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    SlidingWindow w;
    TRY(infer_check_type(x, TYPES_NUMBER, "input"));
    *out = (Tensor){.dtype = x->dtype, .rank = RANK_UNKNOWN};
    if (c->in[1]->data == NULL || c->in[2]->data == NULL) return ERR_OK;
    TRY(sliding_window_read_col2im(c->node, x, c->in[1], c->in[2], &w, &out->dims[1]));
    out->rank = w.rank + 2;
    out->dims[0] = x->dims[0];
    for (int32_t i = 0; i < w.rank; i++) out->dims[i + 2] = w.in[i];
    return ERR_OK;
}

static uint64_t pool_types(OpId op) {
    return op == OP_MaxPool ? TYPES_FLOAT | TYPES_BYTE : TYPES_FLOAT;
}

// LpPool and GlobalLpPool: p is an integer since version 2, a float before.
static Err check_p(const OpCall *c) {
    double      p = (double)attr_int(c->node, "p", 2);
    const Attr *a = attr_find(c->node, "p");
    if (a != NULL && a->kind == ATTR_FLOAT) p = (double)a->v.f;
    if (p >= 1 && p <= 1024) return ERR_OK;
    return err_set(ERR_INVALID, "p is %g, must be in 1..1024", p);
}

Err infer_pool(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    SlidingWindow w;
    TRY(infer_check_type(x, pool_types(c->node->op), "X"));
    TRY(sliding_window_read(c->node, x, NULL, &w));
    if (c->node->op == OP_LpPool) TRY(check_p(c));
    if (c->node->n_out > 1) {
        TRY(set_shape(x, x->dims[1], w.out, &out[1]));
        out[1].dtype = DT_I64;
    }
    return set_shape(x, x->dims[1], w.out, &out[0]);
}

Err infer_pool_global(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    TRY(infer_check_type(x, TYPES_FLOAT, "X"));
    if (x->rank < 2)
        return err_set(ERR_INVALID, "the input has rank %d, needs at least 2", x->rank);
    if (c->node->op == OP_GlobalLpPool) TRY(check_p(c));
    *out = infer_like(x);
    for (int32_t i = 2; i < x->rank; i++) out->dims[i] = 1;
    return ERR_OK;
}

static Err unpool_shape(const Tensor *shape, const Tensor *x, Tensor *out) {
    uint32_t n = 0;
    if (shape->data == NULL) return infer_unknown_shape(out);
    TRY(infer_read_ints(shape, out->dims, TENSOR_MAX_RANK, &n));
    if (n != (uint32_t)x->rank || out->dims[0] != x->dims[0] || out->dims[1] != x->dims[1])
        return err_set(ERR_INVALID, "output_shape does not fit an input of rank %d", x->rank);
    for (int32_t i = 2; i < x->rank; i++)
        if (out->dims[i] < 1)
            return err_set(ERR_INVALID, "output_shape holds %" PRId64, out->dims[i]);
    return ERR_OK;
}

Err infer_unpool(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *indices = c->in[1], *shape = infer_input(c, 2);
    SlidingWindow w;
    TRY(infer_check_type(x, TYPES_FLOAT, "X"));
    TRY(infer_check_type(indices, dtype_bit(DT_I64), "I"));
    if (!tensor_same_shape(x, indices))
        return err_set(ERR_INVALID, "X and I have different shapes");
    TRY(sliding_window_read_unpool(c->node, x, &w));
    TRY(set_shape(x, x->dims[1], w.in, out));
    if (shape == NULL) return ERR_OK;
    TRY(infer_check_type(shape, dtype_bit(DT_I64), "output_shape"));
    return unpool_shape(shape, x, out);
}

Err infer_pool_roi(const OpCall *c, Tensor *out) {
    const Tensor  *x = c->in[0], *rois = c->in[1];
    uint32_t       n = 0;
    const int64_t *size = attr_ints(c->node, "pooled_shape", &n);
    TRY(infer_check_type(x, TYPES_FLOAT, "X"));
    TRY(infer_check_type(rois, dtype_bit(x->dtype), "rois"));
    if (x->rank != 4 || rois->rank != 2 || rois->dims[1] != 5)
        return err_set(ERR_INVALID, "needs X of rank 4 and rois of shape Nx5");
    if (n != 2 || size[0] < 1 || size[1] < 1 || size[0] > INT32_MAX || size[1] > INT32_MAX)
        return err_set(ERR_INVALID, "pooled_shape must hold two sizes of at least 1");
    *out = tensor_of(x->dtype, 4, (int64_t[]){rois->dims[0], x->dims[1], size[0], size[1]}, NULL);
    return ERR_OK;
}

Err infer_grid_sample(const OpCall *c, Tensor *out) {
    static const char *const modes[] = {"bilinear", "linear", "nearest", "bicubic", "cubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const Tensor            *x = c->in[0], *grid = c->in[1];
    int                      mode = 0, padding = 0;
    TRY(infer_check_type(x, TYPES_NUMBER, "X"));
    TRY(infer_check_type(grid, TYPES_FLOAT, "grid"));
    TRY(attr_enum(c->node, "mode", modes, 5, &mode));
    TRY(attr_enum(c->node, "padding_mode", paddings, 3, &padding));
    if (x->rank < 3 || grid->rank != x->rank || grid->dims[0] != x->dims[0] ||
        grid->dims[x->rank - 1] != x->rank - 2)
        return err_set(ERR_INVALID, "the grid does not fit an input of rank %d", x->rank);
    for (int32_t i = 2; i < x->rank; i++)
        if (x->dims[i] < 1) return err_set(ERR_INVALID, "the input has no pixels");
    return set_shape(x, x->dims[1], grid->dims + 1, out);
}

Err infer_affine_grid(const OpCall *c, Tensor *out) {
    const Tensor *theta = c->in[0], *size = c->in[1];
    int64_t       v[5] = {0};
    uint32_t      n = 0;
    TRY(infer_check_type(theta, TYPES_FLOAT, "theta"));
    TRY(infer_check_type(size, dtype_bit(DT_I64), "size"));
    *out = (Tensor){.dtype = theta->dtype, .rank = RANK_UNKNOWN};
    if (size->data == NULL) return ERR_OK;
    TRY(infer_read_ints(size, v, 5, &n));
    int32_t rank = (int32_t)n - 2;
    if (rank < 2 || theta->rank != 3 || theta->dims[0] != v[0] || theta->dims[1] != rank ||
        theta->dims[2] != rank + 1)
        return err_set(ERR_INVALID, "theta does not fit a size of %u dimensions", n);
    out->rank = rank + 2;
    out->dims[0] = v[0];
    for (int32_t i = 0; i < rank; i++) {
        if (v[i + 2] < 1) return err_set(ERR_INVALID, "size holds %" PRId64, v[i + 2]);
        out->dims[i + 1] = v[i + 2];
    }
    out->dims[rank + 1] = rank;
    return ERR_OK;
}

static Err roi_attrs(const Node *n, Tensor *out) {
    static const char *const modes[] = {"avg", "max"};
    static const char *const coordinates[] = {"half_pixel", "output_half_pixel"};
    int                      mode = 0, coordinate = 0;
    TRY(attr_enum(n, "mode", modes, 2, &mode));
    TRY(attr_enum(n, "coordinate_transformation_mode", coordinates, 2, &coordinate));
    out->dims[2] = attr_int(n, "output_height", 1);
    out->dims[3] = attr_int(n, "output_width", 1);
    if (out->dims[2] < 1 || out->dims[3] < 1 || out->dims[2] > INT32_MAX ||
        out->dims[3] > INT32_MAX)
        return err_set(ERR_INVALID, "the output is %" PRId64 "x%" PRId64 ", must be at least 1x1",
                       out->dims[2], out->dims[3]);
    int64_t sampling = attr_int(n, "sampling_ratio", 0);
    if (sampling < 0 || sampling > 4096)
        return err_set(ERR_INVALID, "sampling_ratio %" PRId64 " is outside 0..4096", sampling);
    return ERR_OK;
}

Err infer_roi_align(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *rois = c->in[1], *images = c->in[2];
    TRY(infer_check_type(x, TYPES_FLOAT, "X"));
    TRY(infer_check_type(rois, dtype_bit(x->dtype), "rois"));
    TRY(infer_check_type(images, TYPES_INDEX, "batch_indices"));
    if (x->rank != 4 || rois->rank != 2 || rois->dims[1] != 4 || images->rank != 1 ||
        images->dims[0] != rois->dims[0])
        return err_set(ERR_INVALID, "needs X of rank 4, rois of shape Nx4 and N batch_indices");
    if (x->dims[2] < 1 || x->dims[3] < 1) return err_set(ERR_INVALID, "the input has no pixels");
    out->dtype = x->dtype;
    out->rank = 4;
    out->dims[0] = rois->dims[0];
    out->dims[1] = x->dims[1];
    return roi_attrs(c->node, out);
}

Err infer_resize(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    Resize        r;
    TRY(resize_read(c, &r));
    TRY(infer_check_type(x, r.mode == RESIZE_NEAREST ? TYPES_TENSOR : TYPES_NUMBER, "X"));
    *out = (Tensor){.dtype = x->dtype, .rank = r.known ? x->rank : RANK_UNKNOWN};
    for (int32_t i = 0; i < out->rank; i++) out->dims[i] = r.out[i];
    return ERR_OK;
}
