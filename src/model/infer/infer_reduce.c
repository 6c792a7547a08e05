#include <inttypes.h>

#include "model/infer/infer.h"
#include "model/infer/infer_params.h"

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

Err infer_reduce_axes(const OpCall *c, bool along[TENSOR_MAX_RANK], bool *known) {
    const int32_t rank = c->in[0]->rank;
    int64_t       read[TENSOR_MAX_RANK];
    uint32_t      n = 0;
    *known = true;
    for (int32_t i = 0; i < TENSOR_MAX_RANK; i++) along[i] = false;
    if (axes_are_input(c->node)) {
        const Tensor *axes = infer_input(c, 1);
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
    TRY(infer_check_type(c->in[0], TYPES_NUMBER | (extreme ? dtype_bit(DT_BOOL) : 0), "data"));
    if (axes_are_input(c->node) && infer_input(c, 1) != NULL)
        TRY(infer_check_type(c->in[1], TYPES_INDEX, "axes"));
    TRY(infer_reduce_axes(c, along, &known));
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
    TRY(infer_check_type(c->in[0], TYPES_NUMBER, "data"));
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
    TRY(infer_check_type(c->in[0], TYPES_NUMBER, "x"));
    TRY(infer_check_type(c->in[1], TYPES_INDEX, "axis"));
    if (c->in[1]->rank > 1 || tensor_count(c->in[1]) != 1)
        return err_set(ERR_INVALID, "axis is not one number");
    if (c->in[1]->data != NULL) {
        TRY(infer_read_ints(c->in[1], &axis, 1, &n));
        TRY(infer_axis(axis, c->in[0]->rank, &plain));
    }
    return infer_same(c, out);
}

Err infer_softmax_axes(const OpCall *c, bool along[TENSOR_MAX_RANK]) {
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
    TRY(infer_check_type(c->in[0], TYPES_FLOAT, "input"));
    TRY(infer_softmax_axes(c, along));
    return infer_same(c, out);
}

Tensor infer_channels(const Tensor *x, bool spatial) {
    int64_t rest = 1;
    for (int32_t i = 2; i < x->rank; i++) rest *= x->dims[i];
    Tensor t = *x;
    t.rank = 3;
    t.dims[0] = x->rank > 0 ? x->dims[0] : 1;
    t.dims[1] = x->rank > 1 ? x->dims[1] : 1;
    t.dims[2] = rest;
    if (!spatial) {
        t.dims[1] *= rest;
        t.dims[2] = 1;
    }
    return t;
}

// Before operator set 14 the outputs told, and is_test agreed; a lone output is inference.
bool infer_batch_norm_trains(const Node *n) {
    return n->version >= 14 ? attr_int(n, "training_mode", 0) != 0 : n->n_out > 1;
}

// An input with one number for each of `count` channels.
static Err need_list(const Tensor *t, uint64_t types, int64_t count, const char *what) {
    TRY(infer_check_type(t, types, what));
    if (t->rank != 1 || t->dims[0] != count)
        return err_set(ERR_INVALID, "input %s is not a list of %" PRId64 " numbers", what, count);
    return ERR_OK;
}

static Err check_statistics(const OpCall *c, bool spatial) {
    static const char *const names[] = {"X", "scale", "B", "mean", "var"};
    const Tensor             x = infer_channels(c->in[0], spatial);
    for (uint32_t i = 1; i < 5; i++) {
        if (spatial) {
            TRY(need_list(c->in[i], TYPES_FLOAT, x.dims[1], names[i]));
            continue;
        }
        TRY(infer_check_type(c->in[i], TYPES_FLOAT, names[i]));
        if (tensor_count(c->in[i]) != x.dims[1])
            return err_set(ERR_INVALID, "input %s has not %" PRId64 " numbers", names[i],
                           x.dims[1]);
    }
    return ERR_OK;
}

Err infer_batch_norm(const OpCall *c, Tensor *out) {
    const Node *n = c->node;
    const bool  spatial = n->version >= 9 || attr_int(n, "spatial", 1) != 0;
    TRY(infer_check_type(c->in[0], TYPES_FLOAT, "X"));
    if (c->in[0]->rank < 1) return err_set(ERR_INVALID, "a scalar has no channels");
    TRY(check_statistics(c, spatial));
    TRY(infer_same(c, out));
    if (n->version >= 14 && n->n_out > 3)
        return err_set(ERR_INVALID, "has %u outputs, takes at most 3", n->n_out);
    for (uint32_t i = 1; i < n->n_out; i++) {
        out[i] = *c->in[i % 2 == 1 ? 3 : 4];
        out[i].data = NULL;
    }
    return ERR_OK;
}

Err infer_instance_norm(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    TRY(infer_check_type(x, TYPES_FLOAT, "input"));
    if (x->rank < 2) return err_set(ERR_INVALID, "rank %d has no channels", x->rank);
    TRY(need_list(c->in[1], dtype_bit(x->dtype), x->dims[1], "scale"));
    TRY(need_list(c->in[2], dtype_bit(x->dtype), x->dims[1], "B"));
    return infer_same(c, out);
}

Err infer_group_norm(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    const int64_t groups = attr_int(c->node, "num_groups", 0);
    TRY(infer_check_type(x, TYPES_FLOAT, "X"));
    if (x->rank < 2) return err_set(ERR_INVALID, "rank %d has no channels", x->rank);
    if (groups < 1 || x->dims[1] % groups != 0)
        return err_set(ERR_INVALID, "%" PRId64 " channels do not make %" PRId64 " groups",
                       x->dims[1], groups);
    const int64_t n = c->node->version < 21 ? groups : x->dims[1];
    TRY(need_list(c->in[1], dtype_bit(x->dtype), n, "scale"));
    TRY(need_list(c->in[2], dtype_bit(x->dtype), n, "bias"));
    return infer_same(c, out);
}

// A tensor of the type of x that broadcasts to its shape; NULL is fine.
static Err need_spread(const Tensor *t, const Tensor *x, const char *what) {
    if (t == NULL) return ERR_OK;
    Tensor shape = *x;
    TRY(infer_check_type(t, dtype_bit(x->dtype), what));
    TRY(infer_broadcast(t, &shape));
    if (!tensor_same_shape(&shape, x))
        return err_set(ERR_INVALID, "input %s does not broadcast to the normalised input", what);
    return ERR_OK;
}

// Mean and inverse deviation: the dimensions from axis on are 1, the type is the stash's.
static Err infer_stash(const OpCall *c, int32_t axis, uint32_t first, uint32_t n, Tensor *out) {
    const int64_t stash = attr_int(c->node, "stash_type", DT_F32);
    if (stash < 0 || stash >= DT_COUNT || !dtype_is_float((DType)stash))
        return err_set(ERR_INVALID, "stash_type %" PRId64 " is no float", stash);
    for (uint32_t i = first; i < n && i < c->node->n_out; i++) {
        out[i] = out[0];
        out[i].dtype = (DType)stash;
        for (int32_t k = axis; k < out[i].rank; k++) out[i].dims[k] = 1;
    }
    return ERR_OK;
}

Err infer_layer_norm(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    TRY(infer_check_type(c->in[0], TYPES_FLOAT, "X"));
    TRY(infer_axis(attr_int(c->node, "axis", -1), c->in[0]->rank, &axis));
    TRY(need_spread(c->in[1], c->in[0], "Scale"));
    TRY(need_spread(infer_input(c, 2), c->in[0], "B"));
    TRY(infer_same(c, out));
    return infer_stash(c, axis, 1, 3, out);
}

Err infer_skip_norm(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    TRY(infer_check_type(x, TYPES_FLOAT, "input"));
    if (x->rank < 1) return err_set(ERR_INVALID, "a scalar has no rows to normalise");
    TRY(need_spread(c->in[1], x, "skip"));
    TRY(need_spread(c->in[2], x, "gamma"));
    TRY(need_spread(infer_input(c, 3), x, "beta"));
    TRY(need_spread(infer_input(c, 4), x, "bias"));
    TRY(infer_same(c, out));
    TRY(infer_stash(c, x->rank - 1, 1, 3, out));
    if (c->node->n_out > 3) out[3] = out[0];
    return ERR_OK;
}

Err infer_norm_axes(const OpCall *c, bool along[TENSOR_MAX_RANK]) {
    static const int64_t usual[] = {0, 2, 3};
    uint32_t             n = 0;
    const int64_t       *axes = attr_ints(c->node, "axes", &n);
    int64_t              one = attr_int(c->node, "axis", -1);
    if (axes == NULL) axes = usual, n = 3;
    if (c->node->op == OP_LpNormalization) axes = &one, n = 1;
    for (int32_t i = 0; i < TENSOR_MAX_RANK; i++) along[i] = false;
    for (uint32_t i = 0; i < n; i++) {
        int32_t axis = 0;
        TRY(infer_axis(axes[i], c->in[0]->rank, &axis));
        along[axis] = true;
    }
    return ERR_OK;
}

Err infer_axes_norm(const OpCall *c, Tensor *out) {
    bool          along[TENSOR_MAX_RANK];
    const int64_t p = attr_int(c->node, "p", 2);
    TRY(infer_check_type(c->in[0], TYPES_FLOAT, "X"));
    TRY(infer_norm_axes(c, along));
    if (p != 1 && p != 2) return err_set(ERR_INVALID, "p is %" PRId64 ", not 1 or 2", p);
    return infer_same(c, out);
}

Err infer_lrn(const OpCall *c, Tensor *out) {
    TRY(infer_check_type(c->in[0], TYPES_FLOAT, "X"));
    if (c->in[0]->rank < 2) return err_set(ERR_INVALID, "rank %d has no channels", c->in[0]->rank);
    if (attr_int(c->node, "size", 0) < 1) return err_set(ERR_INVALID, "size is not positive");
    return infer_same(c, out);
}
