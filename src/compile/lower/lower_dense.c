// Convolutions, matrix products, and recurrent layers with constant weights.
#include <math.h>
#include <stdlib.h>

#include "compile/lower/lower.h"
#include "compile/spec.h"
#include "kernel/gemm.h"
#include "model/infer/infer.h"
#include "model/infer/infer_params.h"
#include "model/params/rnn.h"
#include "model/params/sliding_window.h"

static bool conv_sizes(const Node *n, const Tensor *x, const Tensor *w, const SlidingWindow *win,
                       ConvShape *s) {
    int64_t group = attr_int(n, "group", 1);
    if (!spec_window(win, s) || !spec_dim_fits(x->dims[0]) || !spec_dim_fits(x->dims[1]) ||
        !spec_dim_fits(w->dims[0]))
        return false;
    s->n = (uint32_t)x->dims[0];
    s->ic = (uint32_t)x->dims[1];
    s->oc = (uint32_t)w->dims[0];
    s->groups = (uint32_t)group;
    return true;
}

// Kernels compute offsets into padded buffers in 32 bits.
static bool fits_address_range(const ConvShape *s) {
    double deep = s->kd > 0 ? s->kd : 1;
    double in = (double)s->n * (s->ic + 16.0) * s->ih * s->iw * (s->kd > 0 ? s->id : 1);
    double out = (double)s->n * (s->oc + 16.0) * s->oh * s->ow * (s->kd > 0 ? s->od : 1);
    double pad = (double)(s->ih + 2.0 * s->pt + s->kh * (double)s->dh) *
                 (s->iw + 2.0 * s->pl + s->kw * (double)s->dw) * (s->ic + 16.0);
    return in < 2e9 && out < 2e9 && pad * deep < 2e9;
}

// The same for the part of x that a phase of a transposed convolution reads.
static bool phases_fit_address_range(const ConvShape *s) {
    double h = ((double)s->oh + (double)s->kh * s->dh) / s->sh + 3;
    double w = ((double)s->ow + (double)s->kw * s->dw) / s->sw + 3;
    return h * w * (s->ic + 16.0) * (s->kd > 0 ? s->kd : 1) < 2e9;
}

// A preceding Pad node that pads images with zeros only: the convolution's window pads itself.
static const Node *zero_padding_before(const Ir *ir, const Node *n, PadParams *p) {
    const Graph *g = ir->shaped->graph;
    uint32_t     at = g->values[n->in[0]].producer;
    if (at == NO_NODE || g->nodes[at].op != OP_Pad || ir->shaped->folded[at]) return NULL;
    const Node   *pad = &g->nodes[at];
    const Tensor *in[4] = {0};
    OpCall        c = {.node = pad, .in = in};
    Tensor        out;
    for (uint32_t i = 0; i < pad->n_in && i < 4; i++) in[i] = lower_type(ir, pad, i);
    for (uint32_t i = 1; i < pad->n_in && i < 4; i++)
        if (in[i] != NULL && in[i]->data == NULL) return NULL;
    const float *value = in[2] != NULL ? in[2]->data : NULL;
    if (!attr_is(pad, "mode", "constant", true) || attr_float(pad, "value", 0) != 0) return NULL;
    if ((value != NULL && *value != 0) || in[0] == NULL || in[0]->dtype != DT_F32) return NULL;
    if (infer_pad_params(&c, &out, p) != ERR_OK || !tensor_known(&out)) return NULL;
    for (int32_t i = 0; i < out.rank; i++) {
        bool image = i >= 2;
        if (p->drop[i] != 0 || p->kept[i] != in[0]->dims[i] || (!image && p->begin[i] != 0))
            return NULL;
        if (!image && out.dims[i] != in[0]->dims[i]) return NULL;
    }
    return pad;
}

// Returns the input of such a Pad node and adds its padding to the shape; else the node's own
// input.
static uint32_t fold_zero_padding(const Ir *ir, const Node *n, ConvShape *s) {
    PadParams   p;
    const Node *pad = zero_padding_before(ir, n, &p);
    uint32_t    x = lower_in(ir, n, 0);
    if (pad == NULL) return x;
    const Tensor *t = lower_type(ir, pad, 0);
    s->iw = (uint32_t)t->dims[t->rank - 1];
    s->pl += (uint32_t)p.begin[t->rank - 1];
    if (t->rank == 4) {
        s->ih = (uint32_t)t->dims[2];
        s->pt += (uint32_t)p.begin[2];
    }
    return lower_in(ir, pad, 0);
}

static void add_conv(Ir *ir, const Node *n, IrKind kind, uint32_t in, ConvSpec spec) {
    spec.channels = (OutputChannels){.n = spec.shape.oc,
                                     .weight = lower_in(ir, n, 1),
                                     .bias = ir_floats(ir, lower_in(ir, n, 2))};
    lower_add(ir, n, 0, kind, 1, &spec, sizeof spec)->in[0] = in;
}

static bool constant_weights(const Ir *ir, const Node *n) {
    if (!lower_is_float(ir, n, 0) || ir_floats(ir, lower_in(ir, n, 1)) == NULL) return false;
    uint32_t bias = lower_in(ir, n, 2);
    return bias == IR_NONE || ir_floats(ir, bias) != NULL;
}

bool lower_conv_shape(const Node *n, const Tensor *x, const Tensor *w, ConvShape *out) {
    SlidingWindow win;
    if (sliding_window_read(n, x, w->dims + 2, &win) != ERR_OK) return false;
    return conv_sizes(n, x, w, &win, out) && fits_address_range(out);
}

// A window over three dimensions: the first is the depth.
static bool volume_sizes(const Node *n, const Tensor *x, const Tensor *w, SlidingWindow win,
                         ConvShape *s) {
    ConvShape depth = {0};
    win.rank = 1;
    if (!spec_window(&win, &depth)) return false;
    for (int32_t i = 0; i < 2; i++) {
        win.in[i] = win.in[i + 1], win.out[i] = win.out[i + 1], win.pad[i] = win.pad[i + 1];
        win.kernel[i] = win.kernel[i + 1], win.stride[i] = win.stride[i + 1];
        win.dilation[i] = win.dilation[i + 1];
    }
    win.rank = 2;
    if (!conv_sizes(n, x, w, &win, s)) return false;
    s->id = depth.iw, s->od = depth.ow, s->kd = depth.kw;
    s->sd = depth.sw, s->dd = depth.dw, s->pf = depth.pl;
    return true;
}

// A window over three dimensions. One that moves along the first alone has a plane as one row.
static bool volume_shape(const Node *n, const Tensor *x, const Tensor *w, ConvShape *s) {
    SlidingWindow win;
    if (sliding_window_read(n, x, w->dims + 2, &win) != ERR_OK || win.rank != 3) return false;
    bool flat = win.kernel[1] == 1 && win.kernel[2] == 1 && win.in[1] == win.out[1] &&
                win.in[2] == win.out[2] && win.pad[1] == 0 && win.pad[2] == 0;
    if (flat) {
        win.in[1] *= win.in[2];
        win.out[1] *= win.out[2];
        win.rank = 2;
        return conv_sizes(n, x, w, &win, s) && fits_address_range(s);
    }
    return volume_sizes(n, x, w, win, s) && fits_address_range(s);
}

bool lower_conv(Ir *ir, const Node *n) {
    ConvSpec s = {0};
    if (!constant_weights(ir, n)) return false;
    const Tensor *x = lower_type(ir, n, 0), *w = lower_type(ir, n, 1);
    if (!lower_conv_shape(n, x, w, &s.shape) && !volume_shape(n, x, w, &s.shape)) return false;
    bool depth = s.shape.groups > 1 && s.shape.groups == s.shape.ic && s.shape.oc == s.shape.ic;
    depth = depth && s.shape.kd == 0;
    s.plain_in = s.shape.groups == 1 && s.shape.ic < ir->lanes;
    uint32_t in = x->rank > 4 ? lower_in(ir, n, 0) : fold_zero_padding(ir, n, &s.shape);
    add_conv(ir, n, depth ? IR_DEPTHWISE : IR_CONV, in, s);
    return true;
}

// A transposed convolution's window maps from y to x: input and output sizes swap.
static void swap_sides(ConvShape *s) {
    uint32_t d = s->id, h = s->ih, w = s->iw;
    s->id = s->od, s->ih = s->oh, s->iw = s->ow;
    s->od = d, s->oh = h, s->ow = w;
}

static bool deconv_shape(const Node *n, const Tensor *x, const Tensor *w, ConvShape *s) {
    SlidingWindow win;
    if (sliding_window_read_transposed(n, x, w->dims + 2, &win) != ERR_OK) return false;
    bool sizes = win.rank == 3 ? volume_sizes(n, x, w, win, s) : conv_sizes(n, x, w, &win, s);
    if (!sizes || !spec_dim_fits(w->dims[1] * s->groups)) return false;
    s->oc = (uint32_t)w->dims[1] * s->groups;
    swap_sides(s);
    return fits_address_range(s) && phases_fit_address_range(s);
}

bool lower_deconv(Ir *ir, const Node *n) {
    ConvSpec s = {0};
    if (!constant_weights(ir, n)) return false;
    if (!deconv_shape(n, lower_type(ir, n, 0), lower_type(ir, n, 1), &s.shape)) return false;
    add_conv(ir, n, IR_DECONV, lower_in(ir, n, 0), s);
    return true;
}

// Batch dimensions of both operands, broadcast and collapsed to at most GEMM_BATCH_DIMS. Strides
// count elements.
static bool batch_dims(const Tensor *a, const Tensor *b, const Tensor *y, GemmShape *s) {
    int32_t lead = y->rank - 2, used = 0;
    size_t  sa = (size_t)a->dims[a->rank - 2] * (size_t)a->dims[a->rank - 1];
    size_t  sb = (size_t)b->dims[b->rank - 2] * (size_t)b->dims[b->rank - 1];
    size_t  sy = (size_t)y->dims[lead] * (size_t)y->dims[lead + 1];
    int     at = GEMM_BATCH_DIMS;
    bool    was_a = false, was_b = false;
    for (int32_t i = lead - 1; i >= 0; i--) {
        int32_t ia = i - (y->rank - a->rank), ib = i - (y->rank - b->rank);
        bool    has_a = ia >= 0 && a->dims[ia] > 1, has_b = ib >= 0 && b->dims[ib] > 1;
        if (y->dims[i] == 1) continue;
        if (used > 0 && has_a == was_a && has_b == was_b) {
            s->batch[at] *= (uint32_t)y->dims[i];
        } else {
            if (at == 0) return false;
            at--, used++;
            s->batch[at] = (uint32_t)y->dims[i];
            s->a.batch[at] = has_a ? sa : 0;
            s->b.batch[at] = has_b ? sb : 0;
            s->y.batch[at] = sy;
        }
        was_a = has_a, was_b = has_b;
        sa *= has_a ? (size_t)y->dims[i] : 1;
        sb *= has_b ? (size_t)y->dims[i] : 1;
        sy *= (size_t)y->dims[i];
    }
    return true;
}

// Both operands are computed: [..., M, K] x [..., K, N].
static bool lower_batched_matmul(Ir *ir, const Node *n) {
    const Tensor *a = lower_type(ir, n, 0), *b = lower_type(ir, n, 1);
    const Tensor *y = &ir->shaped->values[n->out[0]];
    if (a->rank < 2 || b->rank < 2) return false;
    int64_t m = a->dims[a->rank - 2], k = a->dims[a->rank - 1], columns = b->dims[b->rank - 1];
    if (!spec_dim_fits(m) || !spec_dim_fits(k) || !spec_dim_fits(columns) ||
        tensor_count(y) > INT32_MAX)
        return false;
    GemmShape s = gemm_shape((uint32_t)m, (uint32_t)columns, (uint32_t)k);
    s.packed = false;
    s.b.row = (size_t)columns;
    if (b->rank == 2)
        s.m = (uint32_t)(tensor_count(y) /
                         columns);  // one matrix b for all: batch dimensions are rows
    else if (!batch_dims(a, b, y, &s))
        return false;
    lower_add(ir, n, 0, IR_MATMUL, 2, &s, sizeof s)->in[1] = lower_in(ir, n, 1);
    return true;
}

// Weights that the model has in 16 bits stay so in memory.
static void keep_half(const Ir *ir, GemmSpec *s) {
    const Tensor *half = ir->values[s->channels.weight].half;
    if (half == NULL || s->alpha != 1) return;
    s->weights = half->dtype == DT_F16 ? GEMM_F16 : GEMM_BF16;
    s->half = half->data;
}

// [..., M, K] x constant [K, N]; batch dimensions are rows.
bool lower_matmul(Ir *ir, const Node *n) {
    const Tensor *a = lower_type(ir, n, 0), *b = lower_type(ir, n, 1);
    if (!lower_is_float(ir, n, 0) || !lower_is_float(ir, n, 1)) return false;
    if (b->rank != 2 || a->rank < 1 || ir_floats(ir, lower_in(ir, n, 1)) == NULL)
        return lower_batched_matmul(ir, n);
    GemmSpec s = {.k = b->dims[0], .n = b->dims[1], .alpha = 1};
    s.m = tensor_count(a) / s.k;
    if (!spec_dim_fits(s.m) || !spec_dim_fits(s.k) || !spec_dim_fits(s.n)) return false;
    s.channels = (OutputChannels){.n = (uint32_t)s.n, .weight = lower_in(ir, n, 1)};
    keep_half(ir, &s);
    lower_add(ir, n, 0, IR_GEMM, 1, &s, sizeof s);
    return true;
}

// The C operand of Gemm as a bias: beta * C, one element per column.
static bool gemm_bias(Ir *ir, const Node *n, int64_t columns, const float **bias) {
    uint32_t c = lower_in(ir, n, 2);
    float    beta = attr_float(n, "beta", 1.0f);
    *bias = NULL;
    if (c == IR_NONE || beta == 0) return true;
    const float  *x = ir_floats(ir, c);
    const Tensor *t = ir_type(ir, c);
    int64_t       count = x == NULL ? 0 : tensor_count(t);
    if (count != 1 && (count != columns || t->dims[t->rank - 1] != columns)) return false;
    float *own = arena_new(ir->arena, float, (size_t)columns);
    for (int64_t i = 0; i < columns; i++) own[i] = beta * x[count == 1 ? 0 : i];
    *bias = own;
    return true;
}

bool lower_gemm(Ir *ir, const Node *n) {
    const Tensor *a = lower_type(ir, n, 0), *b = lower_type(ir, n, 1);
    if (!lower_is_float(ir, n, 0) || ir_floats(ir, lower_in(ir, n, 1)) == NULL) return false;
    if (a->rank != 2 || b->rank != 2 || attr_int(n, "transA", 0) != 0) return false;
    GemmSpec s = {.m = a->dims[0], .k = a->dims[1], .alpha = attr_float(n, "alpha", 1.0f)};
    s.transposed = attr_int(n, "transB", 0) != 0;
    s.n = b->dims[s.transposed ? 0 : 1];
    if (!spec_dim_fits(s.m) || !spec_dim_fits(s.k) || !spec_dim_fits(s.n)) return false;
    s.channels = (OutputChannels){.n = (uint32_t)s.n, .weight = lower_in(ir, n, 1)};
    if (!gemm_bias(ir, n, s.n, &s.channels.bias)) return false;
    keep_half(ir, &s);
    lower_add(ir, n, 0, IR_GEMM, 1, &s, sizeof s);
    return true;
}

// RNN, GRU and LSTM with constant weights and default activations; RNN also with Relu.

enum { IN_X, IN_W, IN_R, IN_B, IN_LENS, IN_H0, IN_C0, IN_P, IN_COUNT };

// False: it has other activations than the kernels.
static bool gated_kind(OpId op, const Rnn *r, GatedRnnKind *out) {
    bool plain = op == OP_RNN, lstm = op == OP_LSTM;
    *out = lstm ? GATED_RNN_LSTM : GATED_RNN_GRU;
    if (plain) *out = r->fn[0][0] == RNN_RELU ? GATED_RNN_RELU : GATED_RNN_TANH;
    for (int32_t d = 0; d < r->directions; d++) {
        RnnFn first = !plain ? RNN_SIGMOID : *out == GATED_RNN_RELU ? RNN_RELU : RNN_TANH;
        if (r->fn[d][0] != first || (!plain && r->fn[d][1] != RNN_TANH) ||
            (lstm && r->fn[d][2] != RNN_TANH))
            return false;
    }
    return true;
}

static bool weights_of(const Ir *ir, const Node *n, GatedRnnWeights *w) {
    w->w = ir_floats(ir, lower_in(ir, n, IN_W));
    w->r = ir_floats(ir, lower_in(ir, n, IN_R));
    w->b = ir_floats(ir, lower_in(ir, n, IN_B));
    w->p = ir_floats(ir, lower_in(ir, n, IN_P));
    if (w->w == NULL || w->r == NULL) return false;
    if (lower_in(ir, n, IN_B) != IR_NONE && w->b == NULL) return false;
    return lower_in(ir, n, IN_P) == IR_NONE || w->p != NULL;
}

bool lower_rnn(Ir *ir, const Node *n) {
    const Tensor *in[IN_COUNT] = {0};
    OpCall        c = {.node = n, .in = in};
    Rnn           r;
    RnnSpec       s = {0};
    GatedRnnKind  kind;
    for (uint32_t i = 0; i < n->n_in && i < IN_COUNT; i++) in[i] = lower_type(ir, n, i);
    if (!lower_is_float(ir, n, 0) || !weights_of(ir, n, &s.weights)) return false;
    if (rnn_read(&c, &r) != ERR_OK || !gated_kind(n->op, &r, &kind)) return false;
    if (r.steps > INT32_MAX || r.batch > INT32_MAX) return false;
    s.shape = (GatedRnnShape){.kind = kind,
                              .steps = (uint32_t)r.steps,
                              .batch = (uint32_t)r.batch,
                              .input = (uint32_t)r.input,
                              .hidden = (uint32_t)r.hidden,
                              .directions = (uint32_t)r.directions,
                              .reversed = r.reversed,
                              .batch_first = r.batch_first,
                              .linear_before_reset = r.linear_before_reset,
                              .input_forget = r.input_forget,
                              .peepholes = s.weights.p != NULL,
                              .clip = r.clip > 0 ? r.clip : INFINITY};
    RnnSpec *own = arena_new(ir->arena, RnnSpec, 1);
    *own = s;
    uint32_t out[3];
    for (uint32_t i = 0; i < 3; i++) out[i] = lower_out(ir, n, i);
    IrLayer *l = ir_layer(ir, IR_RNN, n, RNN_OPERANDS, 3);
    l->in[RNN_X] = lower_in(ir, n, IN_X);
    l->in[RNN_LENS] = lower_in(ir, n, IN_LENS);
    l->in[RNN_H0] = lower_in(ir, n, IN_H0);
    l->in[RNN_C0] = lower_in(ir, n, IN_C0);
    for (uint32_t i = 0; i < 3; i++) l->out[i] = out[i];
    l->spec = own;
    return true;
}
