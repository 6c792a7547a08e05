// Signals: HannWindow, HammingWindow, BlackmanWindow, DFT, STFT, MelWeightMatrix.
#include <inttypes.h>
#include <math.h>

#include "base/tensor.h"
#include "model/infer/infer_params.h"

Err infer_signal_window(const OpCall *c, Tensor *out) {
    int64_t size = 0;
    bool    known = true;
    *out = (Tensor){.rank = 1};
    TRY(infer_dtype_attr(c->node, "output_datatype", DT_F32, TYPES_NUMBER, &out->dtype));
    TRY(infer_int_input(c, 0, &size, &known));
    if (!known) return infer_unknown_shape(out);
    if (size < 0) return err_set(ERR_INVALID, "size is %" PRId64, size);
    out->dims[0] = size;
    return ERR_OK;
}

// A positive count from an optional input; *v stays without it.
static Err positive(const OpCall *c, uint32_t input, const char *what, int64_t *v, bool *known) {
    bool now = true;
    TRY(infer_int_input(c, input, v, &now));
    if (infer_input(c, input) != NULL && now && *v < 1)
        return err_set(ERR_INVALID, "%s is %" PRId64, what, *v);
    *known = *known && now;
    return ERR_OK;
}

// The axis to transform: an attribute up to operator set 19, an input since.
static Err dft_axis(const OpCall *c, int32_t *axis, bool *known) {
    const Tensor *x = c->in[0];
    int64_t       v = attr_int(c->node, "axis", c->node->version < 20 ? 1 : -2);
    TRY(infer_int_input(c, 2, &v, known));
    if (!*known) return ERR_OK;
    TRY(infer_axis(v, x->rank, axis));
    if (*axis == x->rank - 1)
        return err_set(
            ERR_INVALID,
            "the last dimension holds real and imaginary part and cannot be transformed");
    return ERR_OK;
}

Err infer_dft_params(const OpCall *c, Tensor *out, DftParams *d) {
    const Tensor *x = c->in[0];
    bool          known = true;
    TRY(infer_check_type(x, TYPES_FLOAT, "input"));
    if (x->rank < 2 || x->dims[x->rank - 1] < 1 || x->dims[x->rank - 1] > 2)
        return err_set(ERR_INVALID, "the last dimension must be 1 (real) or 2 (complex)");
    *d = (DftParams){.inverse = attr_int(c->node, "inverse", 0) != 0};
    *out = tensor_of(x->dtype, x->rank, x->dims, NULL);
    TRY(dft_axis(c, &d->axis, &known));
    d->n = known ? x->dims[d->axis] : 1;
    TRY(positive(c, 1, "dft_length", &d->n, &known));
    bool half = attr_int(c->node, "onesided", 0) != 0;
    if (half && (d->inverse || x->dims[x->rank - 1] == 2))
        return err_set(ERR_INVALID,
                       "onesided is not supported for complex input or the inverse transform");
    if (!known) return infer_unknown_shape(out);
    if (d->n < 1) return err_set(ERR_INVALID, "the axis to transform is empty");
    d->bins = half ? d->n / 2 + 1 : d->n;
    out->dims[d->axis] = d->bins;
    out->dims[out->rank - 1] = 2;
    return ERR_OK;
}

Err infer_dft(const OpCall *c, Tensor *out) {
    DftParams d;
    return infer_dft_params(c, out, &d);
}

static Err stft_window(const OpCall *c, StftParams *s, bool known) {
    const Tensor *x = c->in[0], *window = infer_input(c, 2);
    if (window != NULL && (window->dtype != x->dtype || window->rank != 1))
        return err_set(ERR_INVALID, "the window must have the signal's type and rank 1");
    if (infer_input(c, 3) == NULL) {
        if (window == NULL) return err_set(ERR_INVALID, "window and frame_length are both missing");
        s->n = window->dims[0];
        known = true;
    }
    if (known && window != NULL && window->dims[0] != s->n)
        return err_set(ERR_INVALID, "the window has %" PRId64 " samples, a frame %" PRId64,
                       window->dims[0], s->n);
    return ERR_OK;
}

Err infer_stft_params(const OpCall *c, Tensor *out, StftParams *s) {
    const Tensor *x = c->in[0];
    bool          known = true, half = attr_int(c->node, "onesided", 1) != 0;
    TRY(infer_check_type(x, TYPES_FLOAT, "signal"));
    int64_t parts = x->rank == 3 ? x->dims[2] : 1;
    if (x->rank < 2 || x->rank > 3 || parts < 1 || parts > 2)
        return err_set(ERR_INVALID, "the signal must be batch x samples x 1 or 2");
    if (half && parts == 2)
        return err_set(ERR_INVALID, "onesided is not supported for complex input");
    *s = (StftParams){0};
    TRY(positive(c, 3, "frame_length", &s->n, &known));
    TRY(stft_window(c, s, known));
    TRY(positive(c, 1, "frame_step", &s->step, &known));
    *out = (Tensor){.dtype = x->dtype, .rank = 4, .dims = {x->dims[0], 0, 0, 2}};
    if (!known) return infer_unknown_shape(out);
    if (s->n < 1 || s->n > x->dims[1])
        return err_set(ERR_INVALID, "a frame has %" PRId64 " samples, the signal %" PRId64, s->n,
                       x->dims[1]);
    s->frames = out->dims[1] = (x->dims[1] - s->n) / s->step + 1;
    s->bins = out->dims[2] = half ? s->n / 2 + 1 : s->n;
    return ERR_OK;
}

Err infer_stft(const OpCall *c, Tensor *out) {
    StftParams s;
    return infer_stft_params(c, out, &s);
}

static Err mel_edge(const OpCall *c, uint32_t input, double *v, bool *known) {
    const Tensor *t = c->in[input];
    TRY(infer_check_type(t, TYPES_FLOAT, "edge"));
    if (tensor_count(t) != 1) return err_set(ERR_INVALID, "input %u must have one element", input);
    if (t->data == NULL) {
        *known = false;
        return ERR_OK;
    }
    *v = tensor_get_f64(t, 0);
    if (!(*v >= 0) || isinf(*v)) return err_set(ERR_INVALID, "a band edge is %g Hz", *v);
    return ERR_OK;
}

Err infer_mel_params(const OpCall *c, Tensor *out, MelParams *m) {
    bool known = true;
    *m = (MelParams){0};
    *out = (Tensor){.rank = 2};
    TRY(infer_dtype_attr(c->node, "output_datatype", DT_F32, TYPES_NUMBER, &out->dtype));
    TRY(positive(c, 0, "num_mel_bins", &m->bands, &known));
    TRY(positive(c, 1, "dft_length", &m->points, &known));
    TRY(positive(c, 2, "sample_rate", &m->rate, &known));
    TRY(mel_edge(c, 3, &m->low, &known));
    TRY(mel_edge(c, 4, &m->high, &known));
    if (!known) return infer_unknown_shape(out);
    if (m->high < m->low || m->bands > INT64_MAX - 2)
        return err_set(ERR_INVALID, "upper_edge_hertz is below lower_edge_hertz");
    out->dims[0] = m->points / 2 + 1;
    out->dims[1] = m->bands;
    return ERR_OK;
}

Err infer_mel(const OpCall *c, Tensor *out) {
    MelParams m;
    return infer_mel_params(c, out, &m);
}
