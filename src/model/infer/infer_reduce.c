// Reductions, Softmax and normalisations.
#include <inttypes.h>

#include "model/infer/infer.h"
#include "model/infer/infer_params.h"

static bool axes_are_input(const Node *n) {
    return n->version >= (n->op == OP_ReduceSum ? 13 : 18);
}

// Sets along[axis] for each of the n axes and clears the others.
static Err mark_axes(const int64_t *axes, uint32_t n, int32_t rank, bool along[TENSOR_MAX_RANK]) {
    for (int32_t i = 0; i < TENSOR_MAX_RANK; i++) along[i] = false;
    for (uint32_t i = 0; i < n; i++) {
        int32_t axis = 0;
        TRY(infer_axis(axes[i], rank, &axis));
        along[axis] = true;
    }
    return ERR_OK;
}

Err infer_reduce_axes(const OpCall *c, bool along[TENSOR_MAX_RANK], bool *known) {
    const int32_t rank = c->in[0]->rank;
    const Tensor *input = axes_are_input(c->node) ? infer_input(c, 1) : NULL;
    int64_t       read[TENSOR_MAX_RANK] = {0};
    uint32_t      n = 0;
    *known = input == NULL || infer_has_data(input);
    if (!*known) return ERR_OK;
    if (input != NULL) TRY(infer_read_ints(input, read, TENSOR_MAX_RANK, &n));
    const int64_t *axes = axes_are_input(c->node) ? read : attr_ints(c->node, "axes", &n);
    TRY(mark_axes(axes, n, rank, along));
    if (n == 0 && attr_int(c->node, "noop_with_empty_axes", 0) == 0)
        for (int32_t i = 0; i < rank; i++) along[i] = true;
    return ERR_OK;
}

// Removes the reduced dimensions of t, or keeps them as 1.
static void reduce_dims(Tensor *t, const bool along[TENSOR_MAX_RANK], bool keep) {
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
        reduce_dims(&out[0], along, attr_int(c->node, "keepdims", 1) != 0);
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
    reduce_dims(&out[0], along, attr_int(c->node, "keepdims", 1) != 0);
    if (c->in[0]->dims[axis] == 0)
        return err_set(ERR_INVALID,
                       "dimension %d is empty: there is no largest or smallest element", axis);
    return ERR_OK;
}

Err infer_cumsum(const OpCall *c, Tensor *out) {
    int64_t  axis = 0;
    uint32_t n = 0;
    int32_t  plain = 0;
    TRY(infer_check_type(c->in[0], TYPES_NUMBER, "x"));
    TRY(infer_check_type(c->in[1], TYPES_INDEX, "axis"));
    if (c->in[1]->rank > 1 || tensor_count(c->in[1]) != 1)
        return err_set(ERR_INVALID, "axis must have one element");
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

// Before operator set 14 more than one output meant training.
bool infer_batch_norm_trains(const Node *n) {
    return n->version >= 14 ? attr_int(n, "training_mode", 0) != 0 : n->n_out > 1;
}

// Checks an input with one element per channel.
static Err check_list(const Tensor *t, uint64_t types, int64_t count, const char *what) {
    TRY(infer_check_type(t, types, what));
    if (t->rank != 1 || t->dims[0] != count)
        return err_set(ERR_INVALID, "input %s must be a list of %" PRId64 " elements", what, count);
    return ERR_OK;
}

static Err check_statistics(const OpCall *c, bool spatial) {
    static const char *const names[] = {"X", "scale", "B", "mean", "var"};
    const Tensor             x = infer_channels(c->in[0], spatial);
    for (uint32_t i = 1; i < 5; i++) {
        if (spatial) {
            TRY(check_list(c->in[i], TYPES_FLOAT, x.dims[1], names[i]));
            continue;
        }
        TRY(infer_check_type(c->in[i], TYPES_FLOAT, names[i]));
        if (tensor_count(c->in[i]) != x.dims[1])
            return err_set(ERR_INVALID, "input %s must have %" PRId64 " elements", names[i],
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
        out[i] = infer_like(c->in[i % 2 == 1 ? 3 : 4]);
    }
    return ERR_OK;
}

Err infer_instance_norm(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    TRY(infer_check_type(x, TYPES_FLOAT, "input"));
    if (x->rank < 2) return err_set(ERR_INVALID, "rank %d has no channels", x->rank);
    TRY(check_list(c->in[1], dtype_bit(x->dtype), x->dims[1], "scale"));
    TRY(check_list(c->in[2], dtype_bit(x->dtype), x->dims[1], "B"));
    return infer_same(c, out);
}

Err infer_group_norm(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    const int64_t groups = attr_int(c->node, "num_groups", 0);
    TRY(infer_check_type(x, TYPES_FLOAT, "X"));
    if (x->rank < 2) return err_set(ERR_INVALID, "rank %d has no channels", x->rank);
    if (groups < 1 || x->dims[1] % groups != 0)
        return err_set(ERR_INVALID, "%" PRId64 " channels do not divide into %" PRId64 " groups",
                       x->dims[1], groups);
    const int64_t n = c->node->version < 21 ? groups : x->dims[1];
    TRY(check_list(c->in[1], dtype_bit(x->dtype), n, "scale"));
    TRY(check_list(c->in[2], dtype_bit(x->dtype), n, "bias"));
    return infer_same(c, out);
}

// Checks an optional input of x's type that broadcasts to x's shape.
static Err check_spread(const Tensor *t, const Tensor *x, const char *what) {
    if (t == NULL) return ERR_OK;
    TRY(infer_check_type(t, dtype_bit(x->dtype), what));
    return infer_check_broadcast(t, x, what);
}

// Mean and inverse standard deviation: stash_type, with 1 for the dimensions from axis on.
static Err infer_stash(const OpCall *c, int32_t axis, uint32_t first, uint32_t n, Tensor *out) {
    const int64_t stash = attr_int(c->node, "stash_type", DT_F32);
    if (stash < 0 || stash >= DT_COUNT || !dtype_is_float((DType)stash))
        return err_set(ERR_INVALID, "stash_type %" PRId64 " is not a float type", stash);
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
    TRY(check_spread(c->in[1], c->in[0], "Scale"));
    TRY(check_spread(infer_input(c, 2), c->in[0], "B"));
    TRY(infer_same(c, out));
    return infer_stash(c, axis, 1, 3, out);
}

Err infer_skip_norm(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    TRY(infer_check_type(x, TYPES_FLOAT, "input"));
    if (x->rank < 1) return err_set(ERR_INVALID, "a scalar has no last axis to normalise");
    TRY(check_spread(c->in[1], x, "skip"));
    TRY(check_spread(c->in[2], x, "gamma"));
    TRY(check_spread(infer_input(c, 3), x, "beta"));
    TRY(check_spread(infer_input(c, 4), x, "bias"));
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
    return mark_axes(axes, n, c->in[0]->rank, along);
}

Err infer_axes_norm(const OpCall *c, Tensor *out) {
    bool          along[TENSOR_MAX_RANK];
    const int64_t p = attr_int(c->node, "p", 2);
    TRY(infer_check_type(c->in[0], TYPES_FLOAT, "X"));
    TRY(infer_norm_axes(c, along));
    if (p != 1 && p != 2) return err_set(ERR_INVALID, "p is %" PRId64 ", must be 1 or 2", p);
    return infer_same(c, out);
}

Err infer_lrn(const OpCall *c, Tensor *out) {
    TRY(infer_check_type(c->in[0], TYPES_FLOAT, "X"));
    if (c->in[0]->rank < 2) return err_set(ERR_INVALID, "rank %d has no channels", c->in[0]->rank);
    if (attr_int(c->node, "size", 0) < 1) return err_set(ERR_INVALID, "size must be positive");
    return infer_same(c, out);
}
