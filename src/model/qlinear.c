#include "model/qlinear.h"

#include "model/attr.h"
#include "model/infer.h"
#include "model/quant.h"

typedef struct Row {
    OpId    op, inner;
    int32_t version;
} Row;

static const Row rows[] = {
    {OP_MsQLinearAdd, OP_Add, 13},
    {OP_MsQLinearMul, OP_Mul, 13},
    {OP_MsQLinearSigmoid, OP_Sigmoid, 13},
    {OP_MsQLinearLeakyRelu, OP_LeakyRelu, 16},
    {OP_MsQLinearAveragePool, OP_AveragePool, 11},
    {OP_MsQLinearGlobalAveragePool, OP_GlobalAveragePool, 1},
    {OP_MsQLinearSoftmax, OP_Softmax, 13},
    {OP_MsQLinearConcat, OP_Concat, 13},
};

#define TYPES_BYTE (dtype_bit(DT_U8) | dtype_bit(DT_I8))

static Err check_operand(const OpCall *c, uint32_t at, DType type) {
    const Tensor *x = infer_in(c, at), *scale = infer_in(c, at + 1);
    if (x == NULL || scale == NULL)
        return err_set(ERR_INVALID, "an operand or its scale is missing");
    TRY(infer_need(x, dtype_bit(type), "X"));
    TRY(quant_scale(scale, 1, "a scale"));
    return quant_zero(infer_in(c, at + 2), type, 1, "a zero point");
}

// Concat has its result first and any number of operands; the others have one or two, then it.
static Err find_inputs(const OpCall *c, QLinear *q) {
    uint32_t n = c->node->n_in;
    if (q->inner == OP_Concat) {
        q->first = 2;
        q->operands = (n - 2) / 3;
        if (n < 5 || (n - 2) % 3 != 0 || q->operands > QLINEAR_OPERANDS)
            return err_set(ERR_INVALID, "has %u inputs, needs 2 and 3 for each operand", n);
        return ERR_OK;
    }
    q->operands = q->inner == OP_Add || q->inner == OP_Mul ? 2 : 1;
    q->result = 3 * q->operands;
    return ERR_OK;
}

Err qlinear_read(const OpCall *c, QLinear *q) {
    const Node *n = c->node;
    *q = (QLinear){.inner = OP_COUNT};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == n->op) *q = (QLinear){.inner = rows[i].inner, .version = rows[i].version};
    if (n->op == OP_MsQLinearSoftmax && attr_int(n, "opset", 13) < 13) q->version = 11;
    if (attr_int(n, "channels_last", 0) != 0)
        return err_set(ERR_UNSUPPORTED, "channels_last is not supported");
    TRY(find_inputs(c, q));
    const Tensor *x = infer_in(c, q->first), *scale = infer_in(c, q->result);
    if (x == NULL || scale == NULL) return err_set(ERR_INVALID, "an operand or scale is missing");
    TRY(infer_need(x, TYPES_BYTE, "X"));
    for (uint32_t i = 0; i < q->operands; i++) TRY(check_operand(c, q->first + 3 * i, x->dtype));
    TRY(quant_scale(scale, 1, "the output's scale"));
    return quant_zero(infer_in(c, q->result + 1), x->dtype, 1, "the output's zero point");
}

Node qlinear_node(const Node *n, const QLinear *q) {
    Node inner = *n;
    inner.op = q->inner;
    inner.version = q->version;
    inner.n_in = q->operands;
    inner.n_out = 1;
    return inner;
}
