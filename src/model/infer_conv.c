#include <inttypes.h>

#include "model/infer.h"
#include "model/quant.h"
#include "model/window.h"

#define TYPES_BYTE (dtype_bit(DT_U8) | dtype_bit(DT_I8))

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

static Err conv_out(const Tensor *x, int64_t channels, const int64_t *spatial, Tensor *out) {
    out->rank = x->rank;
    out->dims[0] = x->dims[0];
    out->dims[1] = channels;
    for (int32_t i = 2; i < x->rank; i++) out->dims[i] = spatial[i - 2];
    return ERR_OK;
}

// Shapes of x, w and the output; types and bias are the caller's.
static Err conv_shape(const OpCall *c, const Tensor *x, const Tensor *w, Tensor *out) {
    int64_t group = 1;
    Window  win;
    if (x->rank < 3 || x->rank != w->rank)
        return err_set(ERR_INVALID, "input of rank %d and weights of rank %d", x->rank, w->rank);
    TRY(conv_group(c, x, &group));
    if (w->dims[1] != x->dims[1] / group || w->dims[0] % group != 0)
        return err_set(ERR_INVALID,
                       "weights %" PRId64 "x%" PRId64 " do not fit %" PRId64 " channels in %" PRId64
                       " groups",
                       w->dims[0], w->dims[1], x->dims[1], group);
    TRY(window_read(c->node, x, w->dims + 2, &win));
    return conv_out(x, w->dims[0], win.out, out);
}

Err infer_conv(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *w = c->in[1];
    TRY(infer_need(x, TYPES_FLOAT, "X"));
    TRY(infer_need(w, dtype_bit(x->dtype), "W"));
    TRY(conv_shape(c, x, w, out));
    out->dtype = x->dtype;
    return conv_bias(infer_in(c, 2), w->dims[0], x->dtype);
}

Err infer_conv_transpose(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *w = c->in[1];
    int64_t       group = 1, channels = 0;
    Window        win;
    TRY(infer_need(x, TYPES_FLOAT, "X"));
    TRY(infer_need(w, dtype_bit(x->dtype), "W"));
    if (x->rank < 3 || x->rank != w->rank)
        return err_set(ERR_INVALID, "input of rank %d and weights of rank %d", x->rank, w->rank);
    TRY(conv_group(c, x, &group));
    if (w->dims[0] != x->dims[1] || __builtin_mul_overflow(w->dims[1], group, &channels))
        return err_set(ERR_INVALID, "weights for %" PRId64 " channels, the input has %" PRId64,
                       w->dims[0], x->dims[1]);
    TRY(window_read_transposed(c->node, x, w->dims + 2, &win));
    out->dtype = x->dtype;
    TRY(conv_bias(infer_in(c, 2), channels, x->dtype));
    return conv_out(x, channels, win.in, out);
}

Err infer_conv_integer(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *w = c->in[1];
    TRY(infer_need(x, TYPES_BYTE, "x"));
    TRY(infer_need(w, TYPES_BYTE, "w"));
    TRY(conv_shape(c, x, w, out));
    TRY(quant_zero(infer_in(c, 2), x->dtype, 1, "x_zero_point"));
    TRY(quant_zero(infer_in(c, 3), w->dtype, w->dims[0], "w_zero_point"));
    out->dtype = DT_I32;
    return ERR_OK;
}

Err infer_conv_qlinear(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *w = c->in[3];
    TRY(infer_need(x, TYPES_BYTE, "x"));
    TRY(infer_need(w, TYPES_BYTE, "w"));
    TRY(infer_need(c->in[7], TYPES_BYTE, "y_zero_point"));
    TRY(conv_shape(c, x, w, out));
    TRY(quant_scale(c->in[1], 1, "x_scale"));
    TRY(quant_zero(c->in[2], x->dtype, 1, "x_zero_point"));
    TRY(quant_scale(c->in[4], w->dims[0], "w_scale"));
    TRY(quant_zero(c->in[5], w->dtype, w->dims[0], "w_zero_point"));
    TRY(quant_scale(c->in[6], 1, "y_scale"));
    TRY(quant_zero(c->in[7], c->in[7]->dtype, 1, "y_zero_point"));
    out->dtype = c->in[7]->dtype;
    return conv_bias(infer_in(c, 8), w->dims[0], DT_I32);
}

// offset or mask: [N, groups * taps * each, out...].
static Err deform_fits(const Tensor *t, const Tensor *out, int64_t groups, const Window *w,
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
    const Tensor *x = c->in[0], *w = c->in[1], *mask = infer_in(c, 4);
    int64_t       groups = attr_int(c->node, "offset_group", 1);
    Window        win;
    TRY(infer_need(x, TYPES_FLOAT, "X"));
    TRY(infer_need(w, dtype_bit(x->dtype), "W"));
    TRY(infer_need(c->in[2], dtype_bit(x->dtype), "offset"));
    if (mask != NULL) TRY(infer_need(mask, dtype_bit(x->dtype), "mask"));
    TRY(conv_shape(c, x, w, out));
    TRY(window_read(c->node, x, w->dims + 2, &win));
    TRY(conv_bias(infer_in(c, 3), w->dims[0], x->dtype));
    if (groups < 1 || groups > INT32_MAX || x->dims[1] % groups != 0)
        return err_set(ERR_INVALID, "offset_group %" PRId64 " does not divide %" PRId64 " channels",
                       groups, x->dims[1]);
    out->dtype = x->dtype;
    TRY(deform_fits(c->in[2], out, groups, &win, win.rank, "offset"));
    return mask != NULL ? deform_fits(mask, out, groups, &win, 1, "mask") : ERR_OK;
}

Err infer_col2im(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    Window        w;
    TRY(infer_need(x, TYPES_NUMBER, "input"));
    *out = (Tensor){.dtype = x->dtype, .rank = RANK_UNKNOWN};
    if (c->in[1]->data == NULL || c->in[2]->data == NULL) return ERR_OK;
    TRY(window_read_col2im(c->node, x, c->in[1], c->in[2], &w, &out->dims[1]));
    out->rank = w.rank + 2;
    out->dims[0] = x->dims[0];
    for (int32_t i = 0; i < w.rank; i++) out->dims[i + 2] = w.in[i];
    return ERR_OK;
}
