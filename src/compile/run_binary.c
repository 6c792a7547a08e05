#include <string.h>

#include "base/number.h"
#include "compile/run.h"
#include "kernel/ref_binary.h"
#include "kernel/ref_cast.h"
#include "kernel/ref_where.h"
#include "model/infer_math.h"

static RefBinary function_of(const Node *n) {
    switch (n->op) {
    case OP_Add:
    case OP_Sum:
    case OP_Mean: return REF_ADD;
    case OP_Sub: return REF_SUB;
    case OP_Mul: return REF_MUL;
    case OP_Div: return REF_DIV;
    case OP_Pow: return REF_POW;
    case OP_PRelu: return REF_PRELU;
    case OP_Max: return REF_MAX;
    case OP_Min: return REF_MIN;
    case OP_And:
    case OP_BitwiseAnd: return REF_AND;
    case OP_Or:
    case OP_BitwiseOr: return REF_OR;
    case OP_Xor:
    case OP_BitwiseXor: return REF_XOR;
    case OP_Equal: return REF_EQUAL;
    case OP_Greater: return REF_GREATER;
    case OP_GreaterOrEqual: return REF_GREATER_EQ;
    case OP_Less: return REF_LESS;
    case OP_LessOrEqual: return REF_LESS_EQ;
    case OP_Mod: return attr_int(n, "fmod", 0) != 0 ? REF_FMOD : REF_MOD;
    case OP_BitShift: return attr_is(n, "direction", "LEFT", false) ? REF_SHL : REF_SHR;
    default: return REF_BINARY_COUNT;
    }
}

Err run_binary(const OpCall *c, Tensor *out) {
    Tensor b;
    TRY(infer_second(c, &b));
    if (b.dtype == DT_STR)
        ref_equal_str(c->in[0], &b, &out[0]);
    else
        ref_binary(function_of(c->node), c->in[0], &b, &out[0]);
    return ERR_OK;
}

// A number of type t in *room.
static Tensor scalar(DType t, double v, uint64_t *room) {
    Tensor s = tensor_of(t, 0, NULL, room);
    number_set(&s, 0, v);
    return s;
}

Err run_variadic(const OpCall *c, Tensor *out) {
    const RefBinary f = function_of(c->node);
    const uint32_t  n = c->node->n_in;
    const Tensor   *so_far = c->in[0];
    uint64_t        room = 0;
    if (n == 1) return run_same(c, out);
    for (uint32_t i = 1; i < n; i++) {
        ref_binary(f, so_far, c->in[i], &out[0]);
        so_far = &out[0];
    }
    if (c->node->op == OP_Mean) {
        Tensor count = scalar(out[0].dtype, n, &room);
        ref_binary(REF_DIV, &out[0], &count, &out[0]);
    }
    return ERR_OK;
}

Err run_where(const OpCall *c, Tensor *out) {
    ref_where(c->in[0], c->in[1], c->in[2], &out[0]);
    return ERR_OK;
}

static Err print_all(const OpCall *c, Tensor *out) {
    Str *to = out[0].data;
    for (int64_t i = 0; i < tensor_count(&out[0]); i++) {
        char   text[REF_CAST_TEXT];
        size_t n = ref_cast_print(c->in[0], i, text);
        char  *copy = arena_try(c->keep, 1, n, 1);
        if (copy == NULL) return err_set(ERR_LIMIT, "no room for the text of a number");
        memcpy(copy, text, n);
        to[i] = (Str){copy, n};
    }
    return ERR_OK;
}

Err run_cast(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    if (x->dtype == DT_STR && out[0].dtype == DT_STR) return run_same(c, out);
    if (out[0].dtype == DT_STR) return print_all(c, out);
    if (x->dtype != DT_STR) {
        ref_cast(x, &out[0]);
        return ERR_OK;
    }
    for (int64_t i = 0; i < tensor_count(x); i++)
        TRY(ref_cast_read(((const Str *)x->data)[i], &out[0], i));
    return ERR_OK;
}
