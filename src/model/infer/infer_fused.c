// com.microsoft's convolutions and matrix products with a fused activation, scale or sum. Their
// shapes are those of ONNX's own operators.
#include <string.h>

#include "model/attr.h"
#include "model/infer/infer.h"
#include "model/infer/infer_params.h"

static Err infer_as(const OpCall *c, OpId op, int32_t version, uint32_t n_in,
                    const Tensor *const *in, Tensor *out) {
    Node   node = *c->node;
    OpCall call = {.node = &node, .in = in, .scratch = c->scratch};
    node.op = op;
    node.version = version;
    node.n_in = n_in < node.n_in ? n_in : node.n_in;
    return op_info(op)->infer(&call, out);
}

Err infer_fused_conv(const OpCall *c, Tensor *out) {
    const Tensor   *sum = infer_input(c, 3);
    FusedActivation f;
    TRY(fused_activation_read(c->node, &f));
    TRY(infer_as(c, OP_Conv, 11, 3, c->in, out));
    if (sum != NULL && (sum->dtype != out->dtype || !tensor_same_shape(sum, out)))
        return err_set(ERR_INVALID, "Z must have the type and shape of the output");
    return ERR_OK;
}

Err infer_fused_gemm(const OpCall *c, Tensor *out) {
    FusedActivation f;
    TRY(fused_activation_read(c->node, &f));
    return infer_as(c, OP_Gemm, 13, 3, c->in, out);
}

static Tensor transposed(const Tensor *t, bool swap) {
    Tensor v = *t;
    if (!swap || t->rank < 2) return v;
    v.dims[t->rank - 1] = t->dims[t->rank - 2];
    v.dims[t->rank - 2] = t->dims[t->rank - 1];
    return v;
}

Err infer_fused_matmul(const OpCall *c, Tensor *out) {
    Tensor        a = transposed(c->in[0], attr_int(c->node, "transA", 0) != 0);
    Tensor        b = transposed(c->in[1], attr_int(c->node, "transB", 0) != 0);
    const Tensor *in[2] = {&a, &b};
    if (attr_int(c->node, "transBatchA", 0) != 0 || attr_int(c->node, "transBatchB", 0) != 0)
        return err_set(ERR_UNSUPPORTED, "transBatchA and transBatchB are not supported");
    TRY(infer_check_type(&a, TYPES_FLOAT, "A"));
    return infer_as(c, OP_MatMul, 13, 2, in, out);
}

typedef struct Row {
    const char *name;
    FusedFn     fn;
    float       a, b;  // defaults
} Row;

static const Row rows[] = {
    {"", FUSED_NONE, 0, 0},
    {"Relu", FUSED_RELU, 0, 0},
    {"Tanh", FUSED_TANH, 0, 0},
    {"Sigmoid", FUSED_SIGMOID, 0, 0},
    {"LeakyRelu", FUSED_LEAKY_RELU, 0.01F, 0},
    {"HardSigmoid", FUSED_HARD_SIGMOID, 0.2F, 0.5F},
    {"Clip", FUSED_CLIP, -3.402823466e38F, 3.402823466e38F},
};

// FusedConv has them as a list, FusedGemm as two attributes.
Err fused_activation_read(const Node *n, FusedActivation *out) {
    const char  *name = attr_str(n, "activation", "");
    uint32_t     have = 0;
    const float *params = attr_floats(n, "activation_params", &have);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        *out = (FusedActivation){rows[i].fn, attr_float(n, "activation_alpha", rows[i].a),
                                 attr_float(n, "activation_beta", rows[i].b)};
        if (have > 0) out->a = params[0];
        if (have > 1) out->b = params[1];
        return ERR_OK;
    }
    return err_set(ERR_UNSUPPORTED, "activation '%.32s' is not supported", name);
}
