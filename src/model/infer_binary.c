#include <inttypes.h>

#include "model/infer.h"
#include "model/infer_math.h"

static uint64_t types_of(OpId op) {
    switch (op) {
    case OP_And:
    case OP_Or:
    case OP_Xor: return dtype_bit(DT_BOOL);
    case OP_Equal: return TYPES_NUMBER | dtype_bit(DT_BOOL) | dtype_bit(DT_STR);
    case OP_BitShift: return TYPES_UNSIGNED;
    case OP_BitwiseAnd:
    case OP_BitwiseOr:
    case OP_BitwiseXor: return TYPES_INT;
    case OP_Sum:
    case OP_Mean:
    case OP_MsBiasGelu:
    case OP_MsFastGelu: return TYPES_FLOAT;
    default: return TYPES_NUMBER;
    }
}

static bool compares(OpId op) {
    return op == OP_Equal || op == OP_Greater || op == OP_GreaterOrEqual || op == OP_Less ||
           op == OP_LessOrEqual;
}

// Moves the dimensions of b so that the first one lies at `axis` of a tensor of rank `rank`.
static Err align(Tensor *b, int32_t rank, int64_t axis) {
    if (axis < 0 || axis > rank - b->rank)
        return err_set(ERR_INVALID, "axis %" PRId64 " leaves no room to broadcast rank %d to %d",
                       axis, b->rank, rank);
    for (int32_t i = b->rank; i < rank - (int32_t)axis; i++) b->dims[i] = 1;
    b->rank = rank - (int32_t)axis;
    return ERR_OK;
}

Err infer_second(const OpCall *c, Tensor *b) {
    const Node   *n = c->node;
    const Tensor *a = c->in[0];
    *b = *c->in[1];
    if (n->op == OP_PRelu)
        return n->version < 7 && b->rank == 1 && a->rank > 1 ? align(b, a->rank, 1) : ERR_OK;
    if (n->version >= 7 || attr_int(n, "broadcast", 0) == 0 || !attr_has(n, "axis")) return ERR_OK;
    int64_t axis = attr_int(n, "axis", 0);
    return align(b, a->rank, axis < 0 && axis >= -a->rank ? axis + a->rank : axis);
}

static Err check_types(const OpCall *c) {
    const OpId op = c->node->op;
    TRY(infer_need(c->in[0], types_of(op), "A"));
    TRY(infer_need(c->in[1], types_of(op), "B"));
    if (op != OP_Pow && c->in[0]->dtype != c->in[1]->dtype)
        return err_set(ERR_INVALID, "the operands have types %s and %s",
                       dtype_name(c->in[0]->dtype), dtype_name(c->in[1]->dtype));
    return ERR_OK;
}

static Err check_attrs(const OpCall *c) {
    const Node *n = c->node;
    if (n->op == OP_BitShift && !attr_is(n, "direction", "LEFT", false) &&
        !attr_is(n, "direction", "RIGHT", false))
        return err_set(ERR_INVALID, "direction is neither 'LEFT' nor 'RIGHT'");
    if (n->op == OP_Mod && dtype_is_float(c->in[0]->dtype) && attr_int(n, "fmod", 0) == 0)
        return err_set(ERR_INVALID, "the remainder of floats needs fmod = 1");
    return ERR_OK;
}

Err infer_binary(const OpCall *c, Tensor *out) {
    Tensor b, shape = {0};
    TRY(check_types(c));
    TRY(check_attrs(c));
    TRY(infer_second(c, &b));
    TRY(infer_broadcast(c->in[0], &shape));
    TRY(infer_broadcast(&b, &shape));
    if (c->node->op == OP_PRelu && !tensor_same_shape(c->in[0], &shape))
        return err_set(ERR_INVALID, "the slope does not broadcast to the shape of the input");
    shape.dtype = compares(c->node->op) ? DT_BOOL : c->in[0]->dtype;
    out[0] = shape;
    return ERR_OK;
}

Err infer_variadic(const OpCall *c, Tensor *out) {
    Tensor shape = {.dtype = c->in[0]->dtype};
    for (uint32_t i = 0; i < c->node->n_in; i++) {
        if (c->in[i] == NULL) return err_set(ERR_INVALID, "input %u is missing", i);
        TRY(infer_need(c->in[i], types_of(c->node->op), "data"));
        if (c->in[i]->dtype != shape.dtype)
            return err_set(ERR_INVALID, "the inputs have types %s and %s", dtype_name(shape.dtype),
                           dtype_name(c->in[i]->dtype));
        TRY(infer_broadcast(c->in[i], &shape));
    }
    out[0] = shape;
    return ERR_OK;
}

Err infer_where(const OpCall *c, Tensor *out) {
    Tensor shape = {.dtype = c->in[1]->dtype};
    TRY(infer_need(c->in[0], dtype_bit(DT_BOOL), "condition"));
    TRY(infer_need(c->in[1], TYPES_TENSOR, "X"));
    TRY(infer_need(c->in[2], dtype_bit(c->in[1]->dtype), "Y"));
    for (uint32_t i = 0; i < 3; i++) TRY(infer_broadcast(c->in[i], &shape));
    out[0] = shape;
    return ERR_OK;
}

Err infer_bias_gelu(const OpCall *c, Tensor *out) {
    TRY(infer_need(c->in[0], TYPES_FLOAT, "X"));
    Tensor        shape = *c->in[0];
    const Tensor *bias = infer_in(c, 1);
    if (bias != NULL) {
        TRY(infer_need(bias, dtype_bit(c->in[0]->dtype), "bias"));
        TRY(infer_broadcast(bias, &shape));
        if (!tensor_same_shape(&shape, c->in[0]))
            return err_set(ERR_INVALID, "the bias does not broadcast to the shape of the input");
    }
    return infer_same(c, out);
}
