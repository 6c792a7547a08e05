// Choosing elements by their numbers: NonZero, Compress, Unique, TopK, NonMaxSuppression.
#include <inttypes.h>

#include "model/move.h"
#include "model/select.h"

static Err measure(const OpCall *c) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < c->node->n_in; i++)
        if (c->in[i] != NULL) TRY(tensor_measure(c->in[i], &bytes));
    return ERR_OK;
}

static void vector(Tensor *out, DType type, int64_t n) {
    *out = (Tensor){.dtype = type, .rank = 1, .dims = {n}};
}

Err infer_nonzero(const OpCall *c, Tensor *out) {
    Selected s;
    TRY(infer_need(c->in[0], TYPES_NUMBER | dtype_bit(DT_BOOL), "X"));
    TRY(measure(c));
    int32_t rank = c->in[0]->rank > 0 ? c->in[0]->rank : 1;
    *out = (Tensor){.dtype = DT_I64, .rank = 2, .dims = {rank}};
    if (!move_known(c->in[0])) return move_unknown(out);
    TRY(select_nonzero(c, c->in[0], &s));
    out->dims[1] = s.n;
    return ERR_OK;
}

Err infer_compress(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *condition = c->in[1];
    Selected      s;
    int32_t       axis = 0;
    TRY(infer_need(x, TYPES_TENSOR, "input"));
    TRY(infer_need(condition, dtype_bit(DT_BOOL), "condition"));
    TRY(measure(c));
    if (condition->rank != 1) return err_set(ERR_INVALID, "the condition must have rank 1");
    vector(out, x->dtype, tensor_count(x));
    if (attr_has(c->node, "axis")) {
        TRY(infer_axis(attr_int(c->node, "axis", 0), x->rank, &axis));
        *out = *x;
        out->data = NULL;
    }
    if (!move_known(condition)) return move_unknown(out);
    TRY(select_nonzero(c, condition, &s));
    if (s.n > 0 && s.at[s.n - 1] >= out->dims[axis])
        return err_set(ERR_INVALID, "the condition chooses %" PRId64 " of %" PRId64, s.at[s.n - 1],
                       out->dims[axis]);
    out->dims[axis] = s.n;
    return ERR_OK;
}

Err infer_unique(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    SelectUnique  u;
    int32_t       axis = 0;
    TRY(infer_need(x, TYPES_NUMBER | dtype_bit(DT_BOOL) | dtype_bit(DT_STR), "X"));
    TRY(measure(c));
    vector(&out[0], x->dtype, tensor_count(x));
    if (attr_has(c->node, "axis")) {
        TRY(infer_axis(attr_int(c->node, "axis", 0), x->rank, &axis));
        out[0] = *x;
        out[0].data = NULL;
    }
    bool known = move_known(x);
    if (known) TRY(select_unique(c, &u));
    for (uint32_t i = 1; i < c->node->n_out; i++)
        vector(&out[i], DT_I64, !known ? 0 : i == 2 ? u.inverse.n : u.first.n);
    if (known) out[0].dims[axis] = u.first.n;
    for (uint32_t i = 0; i < c->node->n_out && !known; i++) out[i].rank = RANK_UNKNOWN;
    return ERR_OK;
}

Err infer_topk(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    int64_t       k = attr_int(c->node, "k", -1);
    int32_t       axis = 0;
    bool          known = true;
    TRY(infer_need(x, TYPES_NUMBER, "X"));
    TRY(infer_axis(attr_int(c->node, "axis", -1), x->rank, &axis));
    TRY(move_int(c, 1, &k, &known));
    if (known && (k < 0 || k > x->dims[axis]))
        return err_set(ERR_INVALID, "K is %" PRId64 " but dimension %d has size %" PRId64, k, axis,
                       x->dims[axis]);
    for (uint32_t i = 0; i < c->node->n_out; i++) {
        out[i] = *x;
        out[i].data = NULL;
        out[i].dtype = i == 0 ? x->dtype : DT_I64;
        out[i].dims[axis] = k;
        if (!known) out[i].rank = RANK_UNKNOWN;
    }
    return ERR_OK;
}

Err infer_boxes(const OpCall *c, Tensor *out) {
    const Tensor *boxes = c->in[0], *scores = c->in[1];
    Selected      s;
    bool          known = true;
    TRY(measure(c));
    TRY(infer_need(boxes, dtype_bit(DT_F32), "boxes"));
    TRY(infer_need(scores, dtype_bit(DT_F32), "scores"));
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[2] != 4 ||
        scores->dims[0] != boxes->dims[0] || scores->dims[2] != boxes->dims[1])
        return err_set(ERR_INVALID, "boxes must be batches x boxes x 4, scores batches x classes x "
                                    "boxes");
    for (uint32_t i = 0; i < c->node->n_in; i++) {
        if (c->in[i] == NULL) continue;
        if (i >= 2 && (tensor_count(c->in[i]) != 1 || !dtype_is_number(c->in[i]->dtype)))
            return err_set(ERR_INVALID, "input %u must be one number", i);
        known = known && move_known(c->in[i]);
    }
    *out = (Tensor){.dtype = DT_I64, .rank = 2, .dims = {0, 3}};
    if (!known) return move_unknown(out);
    TRY(select_boxes(c, &s));
    out->dims[0] = s.n;
    return ERR_OK;
}
