#include "model/infer.h"
#include "model/infer_math.h"

static bool axes_are_input(const Node *n) {
    return n->version >= (n->op == OP_ReduceSum ? 13 : 18);
}

static Err mark(const int64_t *axes, uint32_t n, int32_t rank, bool along[TENSOR_MAX_RANK]) {
    for (uint32_t i = 0; i < n; i++) {
        int32_t axis = 0;
        TRY(infer_axis(axes[i], rank, &axis));
        along[axis] = true;
    }
    return ERR_OK;
}

Err infer_reduce_along(const OpCall *c, bool along[TENSOR_MAX_RANK], bool *known) {
    const int32_t rank = c->in[0]->rank;
    int64_t       read[TENSOR_MAX_RANK];
    uint32_t      n = 0;
    *known = true;
    for (int32_t i = 0; i < TENSOR_MAX_RANK; i++) along[i] = false;
    if (axes_are_input(c->node)) {
        const Tensor *axes = infer_in(c, 1);
        *known = axes == NULL || axes->data != NULL || tensor_count(axes) == 0;
        if (!*known) return ERR_OK;
        if (axes != NULL) TRY(infer_read_ints(axes, read, TENSOR_MAX_RANK, &n));
        TRY(mark(read, n, rank, along));
    } else {
        const int64_t *axes = attr_ints(c->node, "axes", &n);
        TRY(mark(axes, n, rank, along));
    }
    if (n == 0 && attr_int(c->node, "noop_with_empty_axes", 0) == 0)
        for (int32_t i = 0; i < rank; i++) along[i] = true;
    return ERR_OK;
}

// Drops the marked dimensions of t, or leaves them as 1.
static void shrink(Tensor *t, const bool along[TENSOR_MAX_RANK], bool keep) {
    int32_t rank = 0;
    for (int32_t i = 0; i < t->rank; i++) {
        if (along[i] && !keep) continue;
        t->dims[rank++] = along[i] ? 1 : t->dims[i];
    }
    t->rank = rank;
}

Err infer_reduce(const OpCall *c, Tensor *out) {
    const OpId op = c->node->op;
    const bool extreme = op == OP_ReduceMax || op == OP_ReduceMin;
    bool       along[TENSOR_MAX_RANK], known = false;
    TRY(infer_need(c->in[0], TYPES_NUMBER | (extreme ? dtype_bit(DT_BOOL) : 0), "data"));
    if (axes_are_input(c->node) && infer_in(c, 1) != NULL)
        TRY(infer_need(c->in[1], TYPES_INDEX, "axes"));
    TRY(infer_reduce_along(c, along, &known));
    TRY(infer_same(c, out));
    if (known)
        shrink(&out[0], along, attr_int(c->node, "keepdims", 1) != 0);
    else
        out[0].rank = RANK_UNKNOWN;
    return ERR_OK;
}

Err infer_arg(const OpCall *c, Tensor *out) {
    bool    along[TENSOR_MAX_RANK] = {false};
    int32_t axis = 0;
    TRY(infer_need(c->in[0], TYPES_NUMBER, "data"));
    TRY(infer_axis(attr_int(c->node, "axis", 0), c->in[0]->rank, &axis));
    along[axis] = true;
    TRY(infer_same(c, out));
    out[0].dtype = DT_I64;
    shrink(&out[0], along, attr_int(c->node, "keepdims", 1) != 0);
    if (c->in[0]->dims[axis] == 0)
        return err_set(ERR_INVALID, "dimension %d is empty: no element is the largest", axis);
    return ERR_OK;
}

Err infer_cumsum(const OpCall *c, Tensor *out) {
    int64_t  axis = 0;
    uint32_t n = 0;
    int32_t  plain = 0;
    TRY(infer_need(c->in[0], TYPES_NUMBER, "x"));
    TRY(infer_need(c->in[1], TYPES_INDEX, "axis"));
    if (c->in[1]->rank > 1 || tensor_count(c->in[1]) != 1)
        return err_set(ERR_INVALID, "axis is not one number");
    if (c->in[1]->data != NULL) {
        TRY(infer_read_ints(c->in[1], &axis, 1, &n));
        TRY(infer_axis(axis, c->in[0]->rank, &plain));
    }
    return infer_same(c, out);
}

Err infer_softmax_along(const OpCall *c, bool along[TENSOR_MAX_RANK]) {
    const bool    old = c->node->version < 13;
    const int32_t rank = c->in[0]->rank;
    const int64_t given = attr_int(c->node, "axis", old ? 1 : -1);
    int32_t       axis = rank;
    if (!old || given != rank) TRY(infer_axis(given, rank, &axis));
    for (int32_t i = 0; i < TENSOR_MAX_RANK; i++) along[i] = i == axis || (old && i > axis);
    return ERR_OK;
}

Err infer_softmax(const OpCall *c, Tensor *out) {
    bool along[TENSOR_MAX_RANK];
    TRY(infer_need(c->in[0], TYPES_FLOAT, "input"));
    TRY(infer_softmax_along(c, along));
    return infer_same(c, out);
}
