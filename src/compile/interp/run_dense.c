// Convolutions, matrix products, fused operators of com.microsoft, and recurrent layers.
#include "base/tensor.h"
#include "base/work_stop.h"
#include "compile/interp/run_ops.h"
#include "kernel/ref/ref_cast.h"
#include "kernel/ref/ref_conv.h"
#include "kernel/ref/ref_elementwise.h"
#include "kernel/ref/ref_matmul.h"
#include "kernel/ref/ref_rnn.h"
#include "model/params/einsum.h"
#include "model/params/rnn.h"

static Err conv_params(const OpCall *c, const Tensor *x, const Tensor *w, RefConv *p) {
    SlidingWindow win;
    TRY(sliding_window_read(c->node, x, w->dims + 2, &win));
    *p = (RefConv){.window = run_window(&win), .group = attr_int(c->node, "group", 1)};
    return ERR_OK;
}

Err run_conv(const OpCall *c, Tensor *out) {
    RefConv p;
    TRY(conv_params(c, c->in[0], c->in[1], &p));
    return ref_conv(&p, c->in[0], c->in[1], infer_input(c, 2), &out[0], c->scratch);
}

Err run_conv_transpose(const OpCall *c, Tensor *out) {
    SlidingWindow win;
    TRY(sliding_window_read_transposed(c->node, c->in[0], c->in[1]->dims + 2, &win));
    RefConv p = {.window = run_window(&win), .group = attr_int(c->node, "group", 1)};
    return ref_conv_transpose(&p, c->in[0], c->in[1], infer_input(c, 2), &out[0], c->scratch);
}

Err run_conv_integer(const OpCall *c, Tensor *out) {
    RefConv p;
    TRY(conv_params(c, c->in[0], c->in[1], &p));
    if (infer_input(c, 2) != NULL) p.x_zero = tensor_get_f64(c->in[2], 0);
    p.w_zero = infer_input(c, 3);
    return ref_conv(&p, c->in[0], c->in[1], NULL, &out[0], c->scratch);
}

Err run_conv_qlinear(const OpCall *c, Tensor *out) {
    RefConv p;
    Tensor  sum;
    TRY(conv_params(c, c->in[0], c->in[3], &p));
    p.x_zero = tensor_get_f64(c->in[2], 0);
    p.w_zero = c->in[5];
    TRY(run_alloc_f64(c, &out[0], &sum));
    TRY(ref_conv(&p, c->in[0], c->in[3], infer_input(c, 8), &sum, c->scratch));
    Tensor w_scale = run_column(c->in[4], out[0].rank - 2);
    ref_requantize(&sum, c->in[1], &w_scale, c->in[6], c->in[7], &out[0]);
    return ERR_OK;
}

Err run_conv_deform(const OpCall *c, Tensor *out) {
    RefConvDeform p = {.offset_group = attr_int(c->node, "offset_group", 1),
                       .offset = c->in[2],
                       .mask = infer_input(c, 4)};
    TRY(conv_params(c, c->in[0], c->in[1], &p.conv));
    return ref_conv_deform(&p, c->in[0], c->in[1], infer_input(c, 3), &out[0], c->scratch);
}

Err run_col2im(const OpCall *c, Tensor *out) {
    SlidingWindow win;
    int64_t       channels = 0;
    TRY(sliding_window_read_col2im(c->node, c->in[0], c->in[1], c->in[2], &win, &channels));
    RefWindow w = run_window(&win);
    return ref_col2im(&w, c->in[0], &out[0], c->scratch);
}

Err run_matmul(const OpCall *c, Tensor *out) {
    RefMatMul p = {0};
    return run_product(c, &p, c->in[0], c->in[1], &out[0]);
}

Err run_matmul_integer(const OpCall *c, Tensor *out) {
    RefMatMul p = {.b_zero = infer_input(c, 3)};
    Tensor    a_zero;
    if (infer_input(c, 2) != NULL) {
        a_zero = run_column(c->in[2], 1);
        p.a_zero = &a_zero;
    }
    return run_product(c, &p, c->in[0], c->in[1], &out[0]);
}

Err run_matmul_qlinear(const OpCall *c, Tensor *out) {
    Tensor    sum, a_zero = run_column(c->in[2], 1), a_scale = run_column(c->in[1], 1);
    Tensor    y_zero = run_column(c->in[7], 1), y_scale = run_column(c->in[6], 1);
    Tensor    b_scale = run_column(c->in[4], 0);
    RefMatMul p = {.a_zero = &a_zero, .b_zero = c->in[5]};
    TRY(run_alloc_f64(c, &out[0], &sum));
    TRY(run_product(c, &p, c->in[0], c->in[3], &sum));
    ref_requantize(&sum, &a_scale, &b_scale, &y_scale, &y_zero, &out[0]);
    return ERR_OK;
}

Err run_gemm(const OpCall *c, Tensor *out) {
    RefMatMul p = {.trans_a = attr_int(c->node, "transA", 0) != 0,
                   .trans_b = attr_int(c->node, "transB", 0) != 0};
    Tensor    product_ab;
    TRY(run_alloc_f64(c, &out[0], &product_ab));
    TRY(ref_matmul(&p, c->in[0], c->in[1], &product_ab, c->scratch));
    ref_gemm_add((double)attr_float(c->node, "alpha", 1), &product_ab,
                 (double)attr_float(c->node, "beta", 1), infer_input(c, 2), &out[0]);
    return ERR_OK;
}

Err run_einsum(const OpCall *c, Tensor *out) {
    Einsum e;
    TRY(einsum_read(c, &e));
    RefEinsum p = {.n = e.n, .n_out = e.n_out, .operands = e.operands};
    for (int32_t i = 0; i < e.n; i++) p.dims[i] = e.dims[i];
    for (uint32_t k = 0; k < e.operands; k++) {
        p.operand[k] = c->in[k];
        einsum_strides(&e, k, c->in[k], p.stride[k]);
    }
    return ref_einsum(&p, &out[0], c->scratch);
}

// The product's shape with the dimensions of 1 that a vector operand dropped.
static Tensor product_view(const Tensor *a, const Tensor *b, const Tensor *y) {
    Tensor v = *y;
    if (a->rank > 1 && b->rank > 1) return v;
    int32_t stack = y->rank - (a->rank > 1) - (b->rank > 1);
    v.rank = stack + 2;
    v.dims[stack] = a->rank > 1 ? y->dims[stack] : 1;
    v.dims[stack + 1] = b->rank > 1 ? y->dims[y->rank - 1] : 1;
    return v;
}

Err run_product(const OpCall *c, const RefMatMul *p, const Tensor *a, const Tensor *b,
                const Tensor *y) {
    Tensor left = run_matrix(a, true), right = run_matrix(b, false), to = product_view(a, b, y);
    return ref_matmul(p, &left, &right, &to, c->scratch);
}

static void clip(const FusedActivation *f, Tensor *y) {
    WORK_EACH (i, tensor_count(y)) {
        double v = tensor_get_f64(y, i);
        if (v < (double)f->a) tensor_set(y, i, (double)f->a);
        if (v > (double)f->b) tensor_set(y, i, (double)f->b);
    }
}

Err run_activation(const Node *n, Tensor *y) {
    static const RefUnary fns[] = {
        [FUSED_RELU] = REF_RELU,
        [FUSED_TANH] = REF_TANH,
        [FUSED_SIGMOID] = REF_SIGMOID,
        [FUSED_LEAKY_RELU] = REF_LEAKY_RELU,
        [FUSED_HARD_SIGMOID] = REF_HARD_SIGMOID,
    };
    FusedActivation f;
    TRY(fused_activation_read(n, &f));
    if (f.fn == FUSED_CLIP)
        clip(&f, y);
    else if (f.fn != FUSED_NONE)
        ref_unary(fns[f.fn], f.a, f.b, y, y);
    return ERR_OK;
}

Err run_fused_conv(const OpCall *c, Tensor *out) {
    TRY(run_conv(c, out));
    if (infer_input(c, 3) != NULL) ref_binary(REF_ADD, &out[0], c->in[3], &out[0]);
    return run_activation(c->node, &out[0]);
}

Err run_fused_gemm(const OpCall *c, Tensor *out) {
    TRY(run_gemm(c, out));
    return run_activation(c->node, &out[0]);
}

Err run_fused_matmul(const OpCall *c, Tensor *out) {
    const Tensor *a = c->in[0], *b = c->in[1];
    RefMatMul     p = {.trans_a = a->rank > 1 && attr_int(c->node, "transA", 0) != 0,
                       .trans_b = b->rank > 1 && attr_int(c->node, "transB", 0) != 0};
    Tensor        product;
    TRY(run_alloc_f64(c, &out[0], &product));
    TRY(run_product(c, &p, a, b, &product));
    ref_gemm_add((double)attr_float(c->node, "alpha", 1), &product, 0, NULL, &out[0]);
    return ERR_OK;
}

static const RefGateFn fns[RNN_FN_COUNT] = {
    [RNN_RELU] = REF_GATE_RELU,
    [RNN_TANH] = REF_GATE_TANH,
    [RNN_SIGMOID] = REF_GATE_SIGMOID,
    [RNN_AFFINE] = REF_GATE_AFFINE,
    [RNN_LEAKY_RELU] = REF_GATE_LEAKY_RELU,
    [RNN_THRESHOLDED_RELU] = REF_GATE_THRESHOLDED_RELU,
    [RNN_SCALED_TANH] = REF_GATE_SCALED_TANH,
    [RNN_HARD_SIGMOID] = REF_GATE_HARD_SIGMOID,
    [RNN_ELU] = REF_GATE_ELU,
    [RNN_SOFTSIGN] = REF_GATE_SOFTSIGN,
    [RNN_SOFTPLUS] = REF_GATE_SOFTPLUS,
};

static RefRnn params(const OpCall *c, const Rnn *r) {
    OpId   op = c->node->op;
    RefRnn p = {
        .kind = op == OP_LSTM  ? REF_LSTM
                : op == OP_GRU ? REF_GRU
                               : REF_RNN,
        .steps = r->steps,
        .batch = r->batch,
        .input = r->input,
        .hidden = r->hidden,
        .gates = r->gates,
        .directions = r->directions,
        .reversed = r->reversed,
        .batch_first = r->batch_first,
        .linear_before_reset = r->linear_before_reset,
        .input_forget = r->input_forget,
        .clip = (double)r->clip,
    };
    for (int d = 0; d < 2; d++)
        for (int f = 0; f < RNN_FNS; f++)
            p.gate[d][f] =
                (RefGate){fns[r->fn[d][f]], (double)r->alpha[d][f], (double)r->beta[d][f]};
    return p;
}

static RefRnn prepare(const OpCall *c, const Rnn *r, Tensor *out) {
    RefRnn p = params(c, r);
    p.x = c->in[0];
    p.w = c->in[1];
    p.r = c->in[2];
    p.b = infer_input(c, 3);
    p.lens = infer_input(c, 4);
    p.h0 = infer_input(c, 5);
    p.c0 = infer_input(c, 6);
    p.p = infer_input(c, 7);
    p.y = &out[0];
    if (c->node->n_out > 1) p.yh = &out[1];
    if (c->node->n_out > 2) p.yc = &out[2];
    return p;
}

Err run_rnn(const OpCall *c, Tensor *out) {
    Rnn r;
    TRY(rnn_read(c, &r));
    RefRnn p = prepare(c, &r, out);
    return ref_rnn(&p, c->scratch);
}

// plain[d, g h, i] = (bytes[d, i, g h] - zero) * scale, with scale per direction or per gate
// column.
static void dequantize_weights(const Tensor *bytes, const Tensor *scale, const Tensor *zero,
                               Tensor *plain) {
    int64_t from = bytes->dims[1], to = bytes->dims[2];
    float  *w = plain->data;
    for (int64_t d = 0; d < bytes->dims[0] && !work_stopped(); d++)
        for (int64_t j = 0; j < to && !work_stopped(); j++) {
            double s = tensor_get_f64(scale, scale->rank == 1 ? d : d * to + j);
            double z = tensor_get_f64(zero, zero->rank == 1 ? d : d * to + j);
            WORK_EACH (i, from)
                w[(d * to + j) * from + i] =
                    (float)((tensor_get_f64(bytes, (d * from + i) * to + j) - z) * s);
        }
}

Err run_lstm_dynamic(const OpCall *c, Tensor *out) {
    QuantizedRnn plain;
    Rnn          r;
    Tensor       x = *c->in[0];
    TRY(rnn_read_quantized(c, &plain));
    TRY(tensor_alloc(&plain.w, c->scratch));
    TRY(tensor_alloc(&plain.r, c->scratch));
    TRY(tensor_alloc(&x, c->scratch));
    dequantize_weights(c->in[1], c->in[8], c->in[9], &plain.w);
    dequantize_weights(c->in[2], c->in[10], c->in[11], &plain.r);
    TRY(ref_fake_quantize(c->in[0], &x, c->scratch));
    plain.in[0] = &x;
    TRY(rnn_read(&plain.call, &r));
    RefRnn p = prepare(&plain.call, &r, out);
    p.quantize_state = true;
    return ref_rnn(&p, c->scratch);
}
