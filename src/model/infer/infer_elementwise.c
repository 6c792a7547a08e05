// Element-wise operators: unary, binary with broadcasting, variadic, Where, Cast.
#include <inttypes.h>
#include <string.h>

#include "model/infer/infer.h"
#include "model/infer/infer_params.h"

static uint64_t unary_types(OpId op) {
    switch (op) {
    case OP_Abs:
    case OP_Sign:
    case OP_Erf:
    case OP_Shrink: return TYPES_NUMBER;
    case OP_Neg:
    case OP_Relu: return TYPES_FLOAT | TYPES_SIGNED;
    case OP_Not: return dtype_bit(DT_BOOL);
    case OP_BitwiseNot: return TYPES_INT;
    default: return TYPES_FLOAT;
    }
}

Err infer_unary(const OpCall *c, Tensor *out) {
    TRY(infer_check_type(c->in[0], unary_types(c->node->op), "X"));
    const char *how = attr_str(c->node, "approximate", "none");
    if (c->node->op == OP_Gelu && strcmp(how, "none") != 0 && strcmp(how, "tanh") != 0)
        return err_set(ERR_INVALID, "approximate is neither 'none' nor 'tanh'");
    return infer_same(c, out);
}

Err infer_detect(const OpCall *c, Tensor *out) {
    TRY(infer_check_type(c->in[0], TYPES_FLOAT, "X"));
    TRY(infer_same(c, out));
    out[0].dtype = DT_BOOL;
    return ERR_OK;
}

// Checks an optional input of one element.
static Err check_scalar(const OpCall *c, uint32_t i, uint64_t types, const char *what) {
    const Tensor *t = infer_input(c, i);
    if (t == NULL) return ERR_OK;
    TRY(infer_check_type(t, types, what));
    if (tensor_count(t) != 1) return err_set(ERR_INVALID, "input %s must have one element", what);
    return ERR_OK;
}

Err infer_clip(const OpCall *c, Tensor *out) {
    TRY(infer_check_type(c->in[0], TYPES_NUMBER, "input"));
    TRY(check_scalar(c, 1, dtype_bit(c->in[0]->dtype), "min"));
    TRY(check_scalar(c, 2, dtype_bit(c->in[0]->dtype), "max"));
    return infer_same(c, out);
}

Err infer_dropout(const OpCall *c, Tensor *out) {
    TRY(infer_check_type(c->in[0], TYPES_FLOAT, "data"));
    TRY(check_scalar(c, 1, TYPES_FLOAT, "ratio"));
    TRY(check_scalar(c, 2, dtype_bit(DT_BOOL), "training_mode"));
    TRY(infer_same(c, out));
    if (c->node->n_out < 2) return ERR_OK;
    out[1] = out[0];
    if (c->node->version >= 10) out[1].dtype = DT_BOOL;
    return ERR_OK;
}

static uint64_t binary_types(OpId op) {
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

static bool is_comparison(OpId op) {
    return op == OP_Equal || op == OP_Greater || op == OP_GreaterOrEqual || op == OP_Less ||
           op == OP_LessOrEqual;
}

// Appends dimensions of 1 to b so that its first one lies at `axis` of a tensor of rank `rank`.
static Err align(Tensor *b, int32_t rank, int64_t axis) {
    if (axis < 0 || axis > rank - b->rank)
        return err_set(ERR_INVALID, "axis %" PRId64 " leaves no room to broadcast rank %d to %d",
                       axis, b->rank, rank);
    for (int32_t i = b->rank; i < rank - (int32_t)axis; i++) b->dims[i] = 1;
    b->rank = rank - (int32_t)axis;
    return ERR_OK;
}

Err infer_second_operand(const OpCall *c, Tensor *b) {
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
    TRY(infer_check_type(c->in[0], binary_types(op), "A"));
    TRY(infer_check_type(c->in[1], binary_types(op), "B"));
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
        return err_set(ERR_INVALID, "Mod of floats needs fmod = 1");
    return ERR_OK;
}

Err infer_binary(const OpCall *c, Tensor *out) {
    Tensor b, shape = {0};
    TRY(check_types(c));
    TRY(check_attrs(c));
    TRY(infer_second_operand(c, &b));
    TRY(infer_broadcast(c->in[0], &shape));
    TRY(infer_broadcast(&b, &shape));
    if (c->node->op == OP_PRelu && !tensor_same_shape(c->in[0], &shape))
        return err_set(ERR_INVALID, "the slope does not broadcast to the shape of the input");
    shape.dtype = is_comparison(c->node->op) ? DT_BOOL : c->in[0]->dtype;
    out[0] = shape;
    return ERR_OK;
}

Err infer_variadic(const OpCall *c, Tensor *out) {
    Tensor shape = {.dtype = c->in[0]->dtype};
    for (uint32_t i = 0; i < c->node->n_in; i++) {
        TRY(infer_present(c, i));
        TRY(infer_check_type(c->in[i], binary_types(c->node->op), "data"));
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
    TRY(infer_check_type(c->in[0], dtype_bit(DT_BOOL), "condition"));
    TRY(infer_check_type(c->in[1], TYPES_TENSOR, "X"));
    TRY(infer_check_type(c->in[2], dtype_bit(c->in[1]->dtype), "Y"));
    for (uint32_t i = 0; i < 3; i++) TRY(infer_broadcast(c->in[i], &shape));
    out[0] = shape;
    return ERR_OK;
}

Err infer_bias_gelu(const OpCall *c, Tensor *out) {
    TRY(infer_check_type(c->in[0], TYPES_FLOAT, "X"));
    const Tensor *bias = infer_input(c, 1);
    if (bias != NULL) {
        TRY(infer_check_type(bias, dtype_bit(c->in[0]->dtype), "bias"));
        TRY(infer_check_broadcast(bias, c->in[0], "bias"));
    }
    return infer_same(c, out);
}

#define TYPES_CAST (TYPES_NUMBER | dtype_bit(DT_BOOL) | dtype_bit(DT_STR))

// Before operator set 6 the target type is a name.
static const struct TypeName {
    const char *name;
    DType       type;
} type_names[] = {
    {"FLOAT", DT_F32}, {"DOUBLE", DT_F64}, {"FLOAT16", DT_F16}, {"BFLOAT16", DT_BF16},
    {"INT8", DT_I8},   {"INT16", DT_I16},  {"INT32", DT_I32},   {"INT64", DT_I64},
    {"UINT8", DT_U8},  {"UINT16", DT_U16}, {"UINT32", DT_U32},  {"UINT64", DT_U64},
    {"BOOL", DT_BOOL}, {"STRING", DT_STR},
};

static Err type_by_name(const char *name, DType *to) {
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++)
        if (strcmp(type_names[i].name, name) == 0) {
            *to = type_names[i].type;
            return ERR_OK;
        }
    return err_set(ERR_UNSUPPORTED, "a cast to type '%.20s' is not supported", name);
}

static Err cast_target(const OpCall *c, DType *to) {
    if (c->node->op == OP_CastLike) {
        TRY(infer_check_type(c->in[1], TYPES_CAST, "target_type"));
        *to = c->in[1]->dtype;
        return ERR_OK;
    }
    const char *name = attr_str(c->node, "to", NULL);
    if (name != NULL) return type_by_name(name, to);
    int64_t number = attr_int(c->node, "to", DT_NONE);
    if (number < 0 || number >= DT_COUNT || (TYPES_CAST & dtype_bit((DType)number)) == 0)
        return err_set(ERR_UNSUPPORTED, "a cast to type number %" PRId64 " is not supported",
                       number);
    *to = (DType)number;
    return ERR_OK;
}

Err infer_cast(const OpCall *c, Tensor *out) {
    DType to = DT_NONE;
    TRY(infer_check_type(c->in[0], TYPES_CAST, "input"));
    TRY(cast_target(c, &to));
    TRY(infer_same(c, out));
    out[0].dtype = to;
    return ERR_OK;
}
