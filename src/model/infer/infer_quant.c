// Quantisation, and operators on quantised tensors that are float operators inside.
#include "model/infer/infer.h"
#include "model/params/quant.h"

#define TYPES_QUANT (dtype_bit(DT_U8) | dtype_bit(DT_I8) | dtype_bit(DT_U16) | dtype_bit(DT_I16))
#define TYPES_SCALE (dtype_bit(DT_F32) | dtype_bit(DT_F16) | dtype_bit(DT_BF16))

static Tensor like_as(const Tensor *x, DType t) {
    Tensor y = infer_like(x);
    y.dtype = t;
    return y;
}

// The zero point's type, else output_dtype, else uint8.
static Err quantized_type(const OpCall *c, DType *out) {
    const Tensor *zero = infer_input(c, 2);
    int64_t       asked = attr_int(c->node, "output_dtype", 0);
    if (asked < 0 || asked >= DT_COUNT) return err_set(ERR_UNSUPPORTED, "output_dtype is unknown");
    Tensor y = {.dtype = zero != NULL ? zero->dtype : asked != 0 ? (DType)asked : DT_U8};
    if (zero != NULL && asked != 0 && (DType)asked != zero->dtype)
        return err_set(ERR_INVALID, "output_dtype is not the type of the zero point");
    *out = y.dtype;
    return infer_check_type(&y, TYPES_QUANT, "y_zero_point");
}

Err infer_quantize(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *scale = c->in[1];
    QuantLayout   layout;
    DType         type;
    TRY(infer_check_type(x, TYPES_SCALE | dtype_bit(DT_I32), "x"));
    TRY(infer_check_type(scale, TYPES_SCALE, "y_scale"));
    TRY(quantized_type(c, &type));
    TRY(quant_layout(c->node, x, scale, infer_input(c, 2), &layout));
    *out = like_as(x, type);
    return ERR_OK;
}

Err infer_dequantize(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *scale = c->in[1], *zero = infer_input(c, 2);
    QuantLayout   layout;
    TRY(infer_check_type(x, TYPES_QUANT | dtype_bit(DT_I32), "x"));
    TRY(infer_check_type(scale, TYPES_SCALE, "x_scale"));
    if (zero != NULL) TRY(infer_check_type(zero, dtype_bit(x->dtype), "x_zero_point"));
    TRY(quant_layout(c->node, x, scale, zero, &layout));
    int64_t asked = attr_int(c->node, "output_dtype", 0);
    Tensor  y = {.dtype = asked > 0 && asked < DT_COUNT ? (DType)asked : scale->dtype};
    TRY(infer_check_type(&y, TYPES_SCALE, "output_dtype"));
    *out = like_as(x, y.dtype);
    return ERR_OK;
}

Err infer_quantize_dynamic(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    TRY(infer_check_type(x, dtype_bit(DT_F32), "x"));
    out[0] = like_as(x, DT_U8);
    if (c->node->n_out > 1) out[1] = (Tensor){.dtype = DT_F32};
    if (c->node->n_out > 2) out[2] = (Tensor){.dtype = DT_U8};
    return ERR_OK;
}

Err infer_qlinear(const OpCall *c, Tensor *out) {
    QLinear       q;
    Tensor        real[QLINEAR_OPERANDS];
    const Tensor *in[QLINEAR_OPERANDS];
    TRY(qlinear_read(c, &q));
    Node   node = qlinear_node(c->node, &q);
    OpCall inner = {.node = &node, .in = in, .scratch = c->scratch};
    for (uint32_t i = 0; i < q.operands; i++) {
        real[i] = like_as(c->in[q.first + 3 * i], DT_F32);
        in[i] = &real[i];
    }
    TRY(op_info(q.inner)->infer(&inner, out));
    out->dtype = c->in[q.first]->dtype;
    return ERR_OK;
}
