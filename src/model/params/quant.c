#include "model/params/quant.h"

#include <inttypes.h>

#include "model/attr.h"
#include "model/infer/infer.h"

static bool is_one(const Tensor *t) { return t->rank == 0 || (t->rank == 1 && t->dims[0] == 1); }

static Err quant_count(const Tensor *t, int64_t count, const char *what) {
    if (is_one(t) || (t->rank == 1 && t->dims[0] == count)) return ERR_OK;
    return err_set(ERR_INVALID, "%s must have one element or be a list of %" PRId64, what, count);
}

Err quant_zero(const Tensor *t, DType type, int64_t count, const char *what) {
    if (t == NULL) return ERR_OK;
    if (t->dtype != type)
        return err_set(ERR_INVALID, "%s is %s, must be %s", what, dtype_name(t->dtype),
                       dtype_name(type));
    return quant_count(t, count, what);
}

Err quant_scale(const Tensor *t, int64_t count, const char *what) {
    if (t->dtype != DT_F32)
        return err_set(ERR_UNSUPPORTED, "%s is %s, must be float32", what, dtype_name(t->dtype));
    return quant_count(t, count, what);
}

// A block-wise scale has x's rank and one element per block along the axis.
static Err check_blocks(const Tensor *x, const Tensor *scale, int32_t axis, int64_t block) {
    bool fits = block > 0 && scale->rank == x->rank;
    for (int32_t i = 0; i < x->rank && fits; i++) {
        int64_t n = x->dims[i];
        if (i == axis) n = n / block + (n % block != 0);
        fits = scale->dims[i] == n;
    }
    return fits ? ERR_OK
                : err_set(ERR_INVALID, "the scale does not fit blocks of %" PRId64 " along axis %d",
                          block, axis);
}

static int64_t product(const int64_t *dims, int32_t from, int32_t to) {
    int64_t n = 1;
    for (int32_t i = from; i < to; i++)
        if (__builtin_mul_overflow(n, dims[i], &n)) return 0;
    return n;
}

Err quant_layout(const Node *n, const Tensor *x, const Tensor *scale, const Tensor *zero,
                 QuantLayout *out) {
    int32_t axis = 0;
    int64_t block = attr_int(n, "block_size", 0);
    if (zero != NULL && !tensor_same_shape(scale, zero) && !(is_one(scale) && is_one(zero)))
        return err_set(ERR_INVALID, "scale and zero point have different shapes");
    if (is_one(scale) && block == 0) {
        *out = (QuantLayout){.outer = 1, .axis = 1, .inner = product(x->dims, 0, x->rank)};
        return ERR_OK;
    }
    TRY(infer_axis(attr_int(n, "axis", 1), x->rank, &axis));
    if (block != 0)
        TRY(check_blocks(x, scale, axis, block));
    else if (scale->rank != 1 || scale->dims[0] != x->dims[axis])
        return err_set(ERR_INVALID,
                       "the scale must have %" PRId64 " elements, one per index of axis %d",
                       x->dims[axis], axis);
    *out = (QuantLayout){.outer = product(x->dims, 0, axis),
                         .axis = x->dims[axis],
                         .inner = product(x->dims, axis + 1, x->rank),
                         .block = block != 0 ? block : -1};
    return ERR_OK;
}

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

static Err check_operand(const OpCall *c, uint32_t at, DType type) {
    const Tensor *x = infer_input(c, at), *scale = infer_input(c, at + 1);
    if (x == NULL || scale == NULL)
        return err_set(ERR_INVALID, "an operand or its scale is missing");
    TRY(infer_check_type(x, dtype_bit(type), "X"));
    TRY(quant_scale(scale, 1, "a scale"));
    return quant_zero(infer_input(c, at + 2), type, 1, "a zero point");
}

// Concat has the output's scale first, then any number of operands; the others have it last.
static Err find_inputs(const OpCall *c, QLinear *q) {
    uint32_t n = c->node->n_in;
    if (q->inner == OP_Concat) {
        q->first = 2;
        q->operands = (n - 2) / 3;
        if (n < 5 || (n - 2) % 3 != 0 || q->operands > QLINEAR_OPERANDS)
            return err_set(ERR_INVALID, "has %u inputs, needs 2 and 3 per operand", n);
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
    const Tensor *x = infer_input(c, q->first), *scale = infer_input(c, q->result);
    if (x == NULL || scale == NULL) return err_set(ERR_INVALID, "an operand or scale is missing");
    TRY(infer_check_type(x, TYPES_BYTE, "X"));
    for (uint32_t i = 0; i < q->operands; i++) TRY(check_operand(c, q->first + 3 * i, x->dtype));
    TRY(quant_scale(scale, 1, "the output's scale"));
    return quant_zero(infer_input(c, q->result + 1), x->dtype, 1, "the output's zero point");
}

Node qlinear_node(const Node *n, const QLinear *q) {
    Node inner = *n;
    inner.op = q->inner;
    inner.version = q->version;
    inner.n_in = q->operands;
    inner.n_out = 1;
    return inner;
}
