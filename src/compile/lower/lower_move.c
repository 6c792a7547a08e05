// Operators that move elements (one strided copy each), gathers, reductions, views and
// concatenations.
#include <string.h>

#include "base/tensor.h"
#include "compile/lower/lower.h"
#include "kernel/normalize.h"
#include "kernel/strided_copy.h"
#include "model/infer/infer_params.h"

static bool can_copy(DType t) {
    size_t size = dtype_size(t);
    return t != DT_STR && (size == 1 || size == 2 || size == 4 || size == 8);
}

static void add_move(Ir *ir, const Node *n, uint32_t i, StridedCopy s) {
    lower_add(ir, n, i, IR_COPY, 1, &s, sizeof s);
}

static OpCall call_for(const Ir *ir, const Node *n, const Tensor **in) {
    for (uint32_t i = 0; i < n->n_in && i < 8; i++) in[i] = lower_type(ir, n, i);
    return (OpCall){.node = n, .in = in};
}

// Parameter inputs (all but the first) must be constants.
static bool params_are_const(const Ir *ir, const Node *n) {
    for (uint32_t i = 1; i < n->n_in; i++) {
        const Tensor *t = lower_type(ir, n, i);
        if (t != NULL && tensor_count(t) > 0 && t->data == NULL) return false;
    }
    return n->n_in <= 8;
}

bool lower_transpose(Ir *ir, const Node *n) {
    const Tensor *in[8] = {0};
    OpCall        c = call_for(ir, n, in);
    Tensor        out;
    int32_t       perm[TENSOR_MAX_RANK];
    if (!can_copy(in[0]->dtype) || infer_transpose_perm(&c, &out, perm) != ERR_OK) return false;
    add_move(ir, n, 0,
             strided_copy_permute(in[0]->rank, in[0]->dims, perm, dtype_size(in[0]->dtype)));
    return true;
}

// Row-major strides of a shape.
static void strides_of(const Tensor *t, int64_t *steps) {
    int64_t s = 1;
    for (int32_t i = t->rank; i-- > 0;) {
        steps[i] = s;
        s *= t->dims[i];
    }
}

bool lower_slice(Ir *ir, const Node *n) {
    const Tensor *in[8] = {0};
    OpCall        c = call_for(ir, n, in);
    Tensor        out;
    SliceParams   s;
    int64_t       to[TENSOR_MAX_RANK], from[TENSOR_MAX_RANK], at = 0;
    if (!can_copy(in[0]->dtype) || !params_are_const(ir, n) ||
        infer_slice_params(&c, &out, &s) != ERR_OK)
        return false;
    if (!tensor_known(&out)) return false;
    strides_of(&out, to);
    strides_of(in[0], from);
    for (int32_t i = 0; i < out.rank; i++) {
        at += s.start[i] * from[i];
        from[i] *= s.step[i];
    }
    StridedCopy m = strided_copy_make(out.rank, out.dims, dtype_size(out.dtype), to, from);
    m.from_at += at;
    add_move(ir, n, 0, m);
    return true;
}

bool lower_split(Ir *ir, const Node *n) {
    const Tensor *in[8] = {0};
    OpCall        c = call_for(ir, n, in);
    int32_t       axis = 0;
    int64_t       to[TENSOR_MAX_RANK], from[TENSOR_MAX_RANK], at = 0;
    Tensor       *out = arena_new(ir->arena, Tensor, n->n_out);
    if (!can_copy(in[0]->dtype) || !params_are_const(ir, n) ||
        infer_split_axis(&c, out, &axis) != ERR_OK)
        return false;
    strides_of(in[0], from);
    for (uint32_t i = 0; i < n->n_out; i++)
        if (!tensor_known(&out[i]) || n->out[i] == NO_VALUE) return false;
    for (uint32_t i = 0; i < n->n_out; i++) {
        strides_of(&out[i], to);
        StridedCopy m =
            strided_copy_make(out[i].rank, out[i].dims, dtype_size(in[0]->dtype), to, from);
        m.from_at += at;
        at += out[i].dims[axis] * from[axis];
        add_move(ir, n, i, m);
    }
    return true;
}

bool lower_expand(Ir *ir, const Node *n) {
    const Tensor *x = lower_type(ir, n, 0), *y = &ir->shaped->values[n->out[0]];
    int64_t       to[TENSOR_MAX_RANK], own[TENSOR_MAX_RANK], from[TENSOR_MAX_RANK];
    if (!can_copy(x->dtype) || !params_are_const(ir, n)) return false;
    strides_of(y, to);
    strides_of(x, own);
    for (int32_t i = 0; i < y->rank; i++) {
        int32_t k = i - (y->rank - x->rank);
        from[i] = k < 0 || x->dims[k] == 1 ? 0 : own[k];
    }
    add_move(ir, n, 0, strided_copy_make(y->rank, y->dims, dtype_size(x->dtype), to, from));
    return true;
}

// DepthToSpace is a permutation of [n, channel groups..., h, w] with 6 dimensions.
bool lower_depth_to_space(Ir *ir, const Node *n) {
    const Tensor *x = lower_type(ir, n, 0);
    int64_t       b = attr_int(n, "blocksize", 1), c = x->dims[1] / (b * b);
    bool          crd = attr_is(n, "mode", "CRD", false);
    int64_t       dcr_dims[6] = {x->dims[0], b, b, c, x->dims[2], x->dims[3]};
    int64_t       crd_dims[6] = {x->dims[0], c, b, b, x->dims[2], x->dims[3]};
    int32_t       dcr_perm[6] = {0, 3, 4, 1, 5, 2}, crd_perm[6] = {0, 1, 4, 2, 5, 3};
    if (!can_copy(x->dtype)) return false;
    add_move(ir, n, 0,
             strided_copy_permute(6, crd ? crd_dims : dcr_dims, crd ? crd_perm : dcr_perm,
                                  dtype_size(x->dtype)));
    return true;
}

static bool indexes_fit(const Tensor *index, int64_t size) {
    for (int64_t i = 0; index->data != NULL && i < tensor_count(index); i++) {
        int64_t k = tensor_get_i64(index, i);
        if (k < -size || k >= size) return false;
    }
    return true;
}

// Gather. Constant indexes are checked here, computed ones at run time.
bool lower_gather(Ir *ir, const Node *n) {
    const Tensor *x = lower_type(ir, n, 0), *index = lower_type(ir, n, 1);
    int32_t       axis = 0;
    if (infer_axis(attr_int(n, "axis", 0), x->rank, &axis) != ERR_OK || !can_copy(x->dtype))
        return false;
    if (!indexes_fit(index, x->dims[axis])) return false;
    Gather g = {.outer = 1,
                .axis = (size_t)x->dims[axis],
                .count = (size_t)tensor_count(index),
                .bytes = dtype_size(x->dtype),
                .wide = index->dtype == DT_I64};
    for (int32_t i = 0; i < axis; i++) g.outer *= (size_t)x->dims[i];
    for (int32_t i = axis + 1; i < x->rank; i++) g.bytes *= (size_t)x->dims[i];
    IrLayer *l = lower_add(ir, n, 0, IR_GATHER, 2, &g, sizeof g);
    l->in[1] = lower_in(ir, n, 1);
    return true;
}

static bool reduce_op(OpId op, ReduceOp *out) {
    switch (op) {
    case OP_ReduceSum: *out = REDUCE_SUM; return true;
    case OP_ReduceMean: *out = REDUCE_MEAN; return true;
    case OP_ReduceMax: *out = REDUCE_MAX; return true;
    case OP_ReduceMin: *out = REDUCE_MIN; return true;
    case OP_ReduceProd: *out = REDUCE_PROD; return true;
    case OP_ReduceSumSquare: *out = REDUCE_SUM_SQUARE; return true;
    case OP_ReduceL1: *out = REDUCE_L1; return true;
    case OP_ReduceL2: *out = REDUCE_L2; return true;
    case OP_ReduceLogSum: *out = REDUCE_LOG_SUM; return true;
    case OP_ReduceLogSumExp: *out = REDUCE_LOG_SUM_EXP; return true;
    default: return false;
    }
}

bool lower_reduce(Ir *ir, const Node *n) {
    const Tensor *in[8] = {0};
    OpCall        c = call_for(ir, n, in);
    bool          along[TENSOR_MAX_RANK] = {false}, known = false;
    Reduce        f = {0};
    if (!lower_is_float(ir, n, 0) || !params_are_const(ir, n) || !reduce_op(n->op, &f.op))
        return false;
    if (infer_reduce_axes(&c, along, &known) != ERR_OK || !known) return false;
    if (!lower_collapse(in[0], along, &f.outer, &f.n, &f.inner)) return false;
    lower_add(ir, n, 0, IR_REDUCE, 1, &f, sizeof f);
    return true;
}

// Operators that change the shape only.

uint32_t lower_reshaped(Ir *ir, const Node *n, uint32_t value, Tensor type) {
    const char *name = ir->values[value].name;
    if (ir_is_const(ir, value)) {
        type.data = ir_type(ir, value)->data;
        return ir_const(ir, name, type);
    }
    uint32_t out = ir_computed(ir, name, type);
    IrLayer *l = ir_layer(ir, IR_VIEW, n, 1, 1);
    l->in[0] = value;
    l->out[0] = out;
    return out;
}

// Dropout is the identity unless it is in training mode.
static bool drops(const Ir *ir, const Node *n) {
    if (n->version < 7) return attr_int(n, "is_test", 0) == 0;
    uint32_t train = lower_in(ir, n, 2);
    if (train == IR_NONE) return false;
    return !ir_is_const(ir, train) || *(const unsigned char *)ir_type(ir, train)->data != 0;
}

bool lower_view(Ir *ir, const Node *n) {
    if (!lower_single_output(n) || (n->op == OP_Dropout && drops(ir, n))) return false;
    lower_add(ir, n, 0, IR_VIEW, 1, NULL, 0);
    return true;
}

bool lower_concat(Ir *ir, const Node *n) {
    const Tensor *first = lower_type(ir, n, 0);
    if (first->dtype == DT_STR || n->version < 4) return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (lower_in(ir, n, i) == IR_NONE) return false;
    IrLayer *l = lower_add(ir, n, 0, IR_CONCAT, n->n_in, NULL, 0);
    for (uint32_t i = 1; i < n->n_in; i++) l->in[i] = lower_in(ir, n, i);
    return true;
}
