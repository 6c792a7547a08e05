#include "model/move.h"

#include <inttypes.h>

#include "base/check.h"

bool move_known(const Tensor *t) { return t->data != NULL || tensor_count(t) == 0; }

Err move_unknown(Tensor *out) {
    out->rank = RANK_UNKNOWN;
    return ERR_OK;
}

Err move_rank(int64_t rank) {
    if (rank <= TENSOR_MAX_RANK) return ERR_OK;
    return err_set(ERR_UNSUPPORTED, "the result has rank %" PRId64 "; at most %d is handled", rank,
                   TENSOR_MAX_RANK);
}

Err move_dims(const MoveList *l, Tensor *out) {
    TRY(move_rank(l->n));
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->v[i] < 0) return err_set(ERR_INVALID, "the shape has the size %" PRId64, l->v[i]);
        out->dims[i] = l->v[i];
    }
    out->rank = (int32_t)l->n;
    return ERR_OK;
}

Err move_list(const OpCall *c, uint32_t input, const char *attr, MoveList *l) {
    *l = (MoveList){.known = true};
    const Tensor *t = infer_in(c, input);
    if (t != NULL) {
        l->given = true;
        l->known = move_known(t);
        TRY(infer_need(t, TYPES_INDEX, attr));
        return l->known ? infer_read_ints(t, l->v, MOVE_LIST, &l->n) : ERR_OK;
    }
    uint32_t       n = 0;
    const int64_t *v = attr_ints(c->node, attr, &n);
    if (v == NULL) {
        l->given = attr_has(c->node, attr);
        return ERR_OK;
    }
    if (n > MOVE_LIST)
        return err_set(ERR_UNSUPPORTED, "%s lists %u integers; at most %d are handled", attr, n,
                       MOVE_LIST);
    CHECK(v != NULL || n == 0);
    for (uint32_t i = 0; i < n; i++) l->v[i] = v[i];
    l->given = true;
    l->n = n;
    return ERR_OK;
}

Err move_int(const OpCall *c, uint32_t input, int64_t *v, bool *known) {
    const Tensor *t = infer_in(c, input);
    *known = true;
    if (t == NULL) return ERR_OK;
    TRY(infer_need(t, TYPES_INDEX, "that takes one integer"));
    if (t->rank > 1 || tensor_count(t) != 1)
        return err_set(ERR_INVALID, "input %u must hold one integer", input);
    *known = t->data != NULL;
    uint32_t n = 0;
    return *known ? infer_read_ints(t, v, 1, &n) : ERR_OK;
}

Err move_axes(const MoveList *l, int32_t rank, int32_t *axes, uint32_t *n) {
    uint32_t seen = 0;
    *n = l->given ? l->n : (uint32_t)rank;
    if (*n > (uint32_t)rank)
        return err_set(ERR_INVALID, "%u axes for a tensor of rank %d", *n, rank);
    for (uint32_t i = 0; i < *n; i++) {
        TRY(infer_axis(l->given ? l->v[i] : (int64_t)i, rank, &axes[i]));
        if ((seen >> axes[i] & 1u) != 0)
            return err_set(ERR_INVALID, "axis %d is named twice", axes[i]);
        seen |= 1u << axes[i];
    }
    return ERR_OK;
}

Err move_dtype(const Node *n, const char *attr, DType otherwise, uint64_t types, DType *out) {
    int64_t v = attr_int(n, attr, (int64_t)otherwise);
    if (v <= 0 || v >= DT_COUNT || (types >> v & 1u) == 0)
        return err_set(ERR_UNSUPPORTED, "%s %" PRId64 " (%s) is not supported", attr, v,
                       v > 0 && v < DT_COUNT ? dtype_name((DType)v) : "unknown");
    *out = (DType)v;
    return ERR_OK;
}
