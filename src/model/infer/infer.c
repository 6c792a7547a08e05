#include "model/infer/infer.h"

#include <inttypes.h>

#include "base/err.h"
#include "model/infer/infer_params.h"

const Tensor *infer_input(const OpCall *c, uint32_t i) {
    return i < c->node->n_in ? c->in[i] : NULL;
}

Err infer_present(const OpCall *c, uint32_t i) {
    if (infer_input(c, i) != NULL) return ERR_OK;
    return err_set(ERR_INVALID, "input %u is missing", i);
}

Tensor infer_like(const Tensor *t) {
    Tensor like = *t;
    like.data = NULL;
    return like;
}

Err infer_node(const OpCall *c, Tensor *out) {
    const OpInfo *op = op_info(c->node->op);
    Err           e = op->infer(c, out);
    for (uint32_t i = 0; e == ERR_OK && i < c->node->n_out; i++) {
        size_t bytes = 0;
        out[i].data = NULL;
        if (tensor_known(&out[i])) e = tensor_measure(&out[i], &bytes);
    }
    return e == ERR_OK ? e : op_failed(c->node, e);
}

Err infer_axis(int64_t axis, int32_t rank, int32_t *out) {
    if (axis < -rank || axis >= rank)
        return err_set(ERR_INVALID, "axis %" PRId64 " is outside a tensor of rank %d", axis, rank);
    *out = (int32_t)(axis < 0 ? axis + rank : axis);
    return ERR_OK;
}

Err infer_broadcast(const Tensor *a, Tensor *out) {
    int32_t rank = a->rank > out->rank ? a->rank : out->rank;
    Tensor  joined = *out;
    joined.rank = rank;
    for (int32_t i = 1; i <= rank; i++) {
        int64_t x = i <= a->rank ? a->dims[a->rank - i] : 1;
        int64_t y = i <= out->rank ? out->dims[out->rank - i] : 1;
        if (x != y && x != 1 && y != 1)
            return err_set(ERR_INVALID,
                           "shapes do not broadcast: %" PRId64 " against %" PRId64
                           " in dimension %d from the end",
                           x, y, i);
        joined.dims[rank - i] = x == 1 ? y : x;
    }
    *out = joined;
    return ERR_OK;
}

Err infer_check_broadcast(const Tensor *t, const Tensor *to, const char *what) {
    Tensor shape = *to;
    TRY(infer_broadcast(t, &shape));
    if (tensor_same_shape(&shape, to)) return ERR_OK;
    char from[128], wanted[128];
    tensor_shape_text(t, from, sizeof from);
    tensor_shape_text(to, wanted, sizeof wanted);
    return err_set(ERR_INVALID, "input %s of shape %s does not broadcast to %s", what, from,
                   wanted);
}

Err infer_read_ints(const Tensor *t, int64_t *out, uint32_t max, uint32_t *n) {
    if (t->rank > 1 || (t->dtype != DT_I64 && t->dtype != DT_I32))
        return err_set(ERR_INVALID, "a list of integers has type %s and rank %d",
                       dtype_name(t->dtype), t->rank);
    int64_t count = tensor_count(t);
    if (count > (int64_t)max)
        return err_set(ERR_INVALID, "a list of %" PRId64 " integers; at most %u are supported",
                       count, max);
    for (int64_t i = 0; i < count; i++)
        out[i] = t->dtype == DT_I64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
    *n = (uint32_t)count;
    return ERR_OK;
}

Err infer_check_type(const Tensor *t, uint64_t types, const char *what) {
    if ((types & dtype_bit(t->dtype)) != 0) return ERR_OK;
    return err_set(ERR_UNSUPPORTED, "type %s of input %s is not supported", dtype_name(t->dtype),
                   what);
}

Err infer_same(const OpCall *c, Tensor *out) {
    out[0] = infer_like(c->in[0]);
    return ERR_OK;
}

Err infer_control_flow(const OpCall *c, Tensor *out) {
    (void)out;
    return err_set(ERR_UNSUPPORTED, "%s is inferred with its enclosing graph only",
                   op_info(c->node->op)->name);
}

bool infer_has_data(const Tensor *t) { return t->data != NULL || tensor_count(t) == 0; }

Err infer_unknown_shape(Tensor *out) {
    out->rank = RANK_UNKNOWN;
    return ERR_OK;
}

Err infer_check_rank(int64_t rank) {
    if (rank <= TENSOR_MAX_RANK) return ERR_OK;
    return err_set(ERR_INVALID, "the result has rank %" PRId64 "; at most %d is supported", rank,
                   TENSOR_MAX_RANK);
}

Err infer_dims(const IntList *l, Tensor *out) {
    TRY(infer_check_rank(l->n));
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->v[i] < 0) return err_set(ERR_INVALID, "the shape has a size of %" PRId64, l->v[i]);
        out->dims[i] = l->v[i];
    }
    out->rank = (int32_t)l->n;
    return ERR_OK;
}

Err infer_int_list(const OpCall *c, uint32_t input, const char *attr, IntList *l) {
    *l = (IntList){.known = true};
    const Tensor *t = infer_input(c, input);
    if (t != NULL) {
        l->given = true;
        l->known = infer_has_data(t);
        TRY(infer_check_type(t, TYPES_INDEX, attr));
        return l->known ? infer_read_ints(t, l->v, INT_LIST_MAX, &l->n) : ERR_OK;
    }
    uint32_t       n = 0;
    const int64_t *v = attr_ints(c->node, attr, &n);
    if (v == NULL) {
        l->given = attr_has(c->node, attr);
        return ERR_OK;
    }
    if (n > INT_LIST_MAX)
        return err_set(ERR_UNSUPPORTED, "%s lists %u integers; at most %d are supported", attr, n,
                       INT_LIST_MAX);
    for (uint32_t i = 0; i < n; i++) l->v[i] = v[i];
    l->given = true;
    l->n = n;
    return ERR_OK;
}

Err infer_int_input(const OpCall *c, uint32_t input, int64_t *v, bool *known) {
    const Tensor *t = infer_input(c, input);
    *known = true;
    if (t == NULL) return ERR_OK;
    TRY(infer_check_type(t, TYPES_INDEX, "with one integer"));
    if (t->rank > 1 || tensor_count(t) != 1)
        return err_set(ERR_INVALID, "input %u must hold one integer", input);
    *known = t->data != NULL;
    uint32_t n = 0;
    return *known ? infer_read_ints(t, v, 1, &n) : ERR_OK;
}

Err infer_axes(const IntList *l, int32_t rank, int32_t *axes, uint32_t *n) {
    uint32_t seen = 0;
    *n = l->given ? l->n : (uint32_t)rank;
    if (*n > (uint32_t)rank)
        return err_set(ERR_INVALID, "%u axes for a tensor of rank %d", *n, rank);
    for (uint32_t i = 0; i < *n; i++) {
        TRY(infer_axis(l->given ? l->v[i] : (int64_t)i, rank, &axes[i]));
        if ((seen >> axes[i] & 1u) != 0)
            return err_set(ERR_INVALID, "axis %d is repeated", axes[i]);
        seen |= 1u << axes[i];
    }
    return ERR_OK;
}

Err infer_dtype_attr(const Node *n, const char *attr, DType otherwise, uint64_t types, DType *out) {
    int64_t v = attr_int(n, attr, (int64_t)otherwise);
    if (v <= 0 || v >= DT_COUNT || (types >> v & 1u) == 0)
        return err_set(ERR_UNSUPPORTED, "%s %" PRId64 " (%s) is not supported", attr, v,
                       v > 0 && v < DT_COUNT ? dtype_name((DType)v) : "unknown");
    *out = (DType)v;
    return ERR_OK;
}
