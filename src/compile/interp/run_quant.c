// Quantization, and operators on quantized tensors.
#include "base/tensor.h"
#include "compile/interp/run_ops.h"
#include "kernel/ref/ref_cast.h"
#include "model/params/quant.h"

static Err quant_params(const OpCall *c, RefQuant *p) {
    QuantLayout l;
    TRY(quant_layout(c->node, c->in[0], c->in[1], infer_input(c, 2), &l));
    *p = (RefQuant){.outer = l.outer,
                    .axis = l.axis,
                    .inner = l.inner,
                    .block = l.block,
                    .scale = c->in[1],
                    .zero = infer_input(c, 2)};
    return ERR_OK;
}

Err run_quantize(const OpCall *c, Tensor *out) {
    RefQuant p;
    TRY(quant_params(c, &p));
    ref_quantize(&p, c->in[0], &out[0]);
    return ERR_OK;
}

Err run_dequantize(const OpCall *c, Tensor *out) {
    RefQuant p;
    TRY(quant_params(c, &p));
    ref_dequantize(&p, c->in[0], &out[0]);
    return ERR_OK;
}

Err run_quantize_dynamic(const OpCall *c, Tensor *out) {
    float   scale = 0;
    uint8_t zero = 0;
    ref_quantize_dynamic(c->in[0], &out[0], &scale, &zero);
    if (c->node->n_out > 1) *(float *)out[1].data = scale;
    if (c->node->n_out > 2) *(uint8_t *)out[2].data = zero;
    return ERR_OK;
}

// Product of two quantized matrices, as integers in float64, unscaled.
static Err integer_product(const OpCall *c, const Tensor *a, const Tensor *a_zero, const Tensor *b,
                           const Tensor *b_zero, const Tensor *like, Tensor *sum) {
    RefMatMul p = {.a_zero = a_zero, .b_zero = b_zero};
    TRY(run_alloc_f64(c, like, sum));
    return run_product(c, &p, a, b, sum);
}

Err run_matmul_to_float(const OpCall *c, Tensor *out) {
    Tensor sum, a_scale = run_column(c->in[2], 0), b_scale = run_column(c->in[3], 0);
    TRY(integer_product(c, c->in[0], infer_input(c, 4), c->in[1], infer_input(c, 5), &out[0],
                        &sum));
    ref_scale_sums(&sum, &a_scale, &b_scale, infer_input(c, 6), &out[0]);
    return ERR_OK;
}

Err run_matmul_dynamic(const OpCall *c, Tensor *out) {
    float   scale = 0;
    uint8_t zero = 0;
    Tensor  a, sum, b_scale = run_column(c->in[2], 0);
    Tensor  a_scale = {.dtype = DT_F32, .data = &scale}, a_zero = {.dtype = DT_U8, .data = &zero};
    TRY(run_alloc(c, c->in[0], DT_U8, &a));
    ref_quantize_dynamic(c->in[0], &a, &scale, &zero);
    TRY(integer_product(c, &a, &a_zero, c->in[1], infer_input(c, 3), &out[0], &sum));
    ref_scale_sums(&sum, &a_scale, &b_scale, infer_input(c, 4), &out[0]);
    return ERR_OK;
}

// alpha * a_scale * b_scale * (ab + c), quantized if the output has a scale.
Err run_gemm_quant(const OpCall *c, Tensor *out) {
    float     factor = attr_float(c->node, "alpha", 1) * (float)tensor_get_f64(c->in[1], 0);
    RefMatMul p = {.trans_a = attr_int(c->node, "transA", 0) != 0,
                   .trans_b = attr_int(c->node, "transB", 0) != 0,
                   .a_zero = c->in[2],
                   .b_zero = c->in[5]};
    Tensor    sum, b_scale = run_column(c->in[4], 0), a_scale = {.dtype = DT_F32, .data = &factor};
    const Tensor *y_scale = infer_input(c, 7), *y_zero = infer_input(c, 8);
    uint64_t      none = 0;
    Tensor        no_zero = {.dtype = out[0].dtype, .data = &none};
    TRY(run_alloc_f64(c, &out[0], &sum));
    TRY(run_product(c, &p, c->in[0], c->in[3], &sum));
    ref_gemm_add(1, &sum, 1, infer_input(c, 6), &sum);
    if (y_scale == NULL)
        ref_scale_sums(&sum, &a_scale, &b_scale, NULL, &out[0]);
    else
        ref_requantize(&sum, &a_scale, &b_scale, y_scale, y_zero != NULL ? y_zero : &no_zero,
                       &out[0]);
    return ERR_OK;
}

static RefQuant per_tensor_scale(const OpCall *c, uint32_t scale, const Tensor *x) {
    return (RefQuant){.outer = 1,
                      .axis = 1,
                      .inner = tensor_count(x),
                      .scale = c->in[scale],
                      .zero = infer_input(c, scale + 1)};
}

Err run_qlinear(const OpCall *c, Tensor *out) {
    QLinear       q;
    Tensor        real[QLINEAR_OPERANDS], result;
    const Tensor *in[QLINEAR_OPERANDS];
    TRY(qlinear_read(c, &q));
    Node   node = qlinear_node(c->node, &q);
    OpCall inner = {.node = &node, .in = in, .scratch = c->scratch, .keep = c->keep};
    for (uint32_t i = 0; i < q.operands; i++) {
        const Tensor *x = c->in[q.first + 3 * i];
        RefQuant      p = per_tensor_scale(c, q.first + 3 * i + 1, x);
        TRY(run_alloc(c, x, DT_F32, &real[i]));
        ref_dequantize(&p, x, &real[i]);
        in[i] = &real[i];
    }
    TRY(run_alloc(c, &out[0], DT_F32, &result));
    TRY(run_op(q.inner)(&inner, &result));
    RefQuant p = per_tensor_scale(c, q.result, &result);
    ref_quantize(&p, &result, &out[0]);
    return ERR_OK;
}
