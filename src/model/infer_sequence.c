// Sequences and optionals. A sequence's length is its one dimension; its elements are in its data.
#include <inttypes.h>

#include "base/number.h"
#include "model/move.h"

static Err need_sequence(const Tensor *t) { return infer_need(t, dtype_bit(DT_SEQ), "sequence"); }

static Err sequence_of(Tensor *out, DType kind, int64_t n) {
    *out = (Tensor){.dtype = kind, .rank = 1, .dims = {n}};
    return ERR_OK;
}

static Err anything(Tensor *out) {
    *out = (Tensor){.dtype = DT_NONE, .rank = RANK_UNKNOWN};
    return ERR_OK;
}

static const Tensor *element(const Tensor *sequence, int64_t i) {
    return &((const Tensor *)sequence->data)[i];
}

static Err like(const Tensor *t, Tensor *out) {
    *out = *t;
    out->data = NULL;
    return ERR_OK;
}

Err move_position(const OpCall *c, uint32_t input, int64_t n, int64_t end, int64_t *at) {
    int64_t v = *at;
    bool    known = true;
    TRY(move_int(c, input, &v, &known));
    if (!known) return err_set(ERR_INVALID, "the position is not known");
    if (v < -n || v >= end)
        return err_set(ERR_INVALID, "position %" PRId64 " is outside a sequence of %" PRId64, v, n);
    *at = v < 0 ? v + n : v;
    return ERR_OK;
}

Err infer_sequence_empty(const OpCall *c, Tensor *out) {
    DType type = DT_NONE;
    TRY(move_dtype(c->node, "dtype", DT_F32, TYPES_TENSOR, &type));
    return sequence_of(out, DT_SEQ, 0);
}

Err infer_sequence_construct(const OpCall *c, Tensor *out) {
    for (uint32_t i = 0; i < c->node->n_in; i++) {
        if (c->in[i] == NULL) return err_set(ERR_INVALID, "input %u is missing", i);
        TRY(infer_need(c->in[i], TYPES_TENSOR, "of a sequence"));
        if (c->in[i]->dtype != c->in[0]->dtype)
            return err_set(ERR_INVALID, "the elements have types %s and %s",
                           dtype_name(c->in[0]->dtype), dtype_name(c->in[i]->dtype));
    }
    return sequence_of(out, DT_SEQ, c->node->n_in);
}

Err infer_sequence_insert(const OpCall *c, Tensor *out) {
    const Tensor *s = c->in[0];
    int64_t       at = 0;
    bool          known = true;
    TRY(need_sequence(s));
    TRY(infer_need(c->in[1], TYPES_TENSOR, "tensor"));
    TRY(move_int(c, 2, &at, &known));
    if (s->data != NULL && s->dims[0] > 0 && element(s, 0)->dtype != c->in[1]->dtype)
        return err_set(ERR_INVALID, "a sequence of %s gets a tensor of %s",
                       dtype_name(element(s, 0)->dtype), dtype_name(c->in[1]->dtype));
    return sequence_of(out, DT_SEQ, s->dims[0] + 1);
}

Err infer_sequence_erase(const OpCall *c, Tensor *out) {
    int64_t at = 0;
    bool    known = true;
    TRY(need_sequence(c->in[0]));
    TRY(move_int(c, 1, &at, &known));
    if (c->in[0]->dims[0] == 0) return err_set(ERR_INVALID, "the sequence is empty");
    return sequence_of(out, DT_SEQ, c->in[0]->dims[0] - 1);
}

Err infer_sequence_at(const OpCall *c, Tensor *out) {
    const Tensor *s = c->in[0];
    int64_t       at = 0;
    bool          known = true;
    TRY(need_sequence(s));
    TRY(move_int(c, 1, &at, &known));
    if (!known || s->data == NULL) return anything(out);
    TRY(move_position(c, 1, s->dims[0], s->dims[0], &at));
    return like(element(s, at), out);
}

Err infer_sequence_length(const OpCall *c, Tensor *out) {
    TRY(need_sequence(c->in[0]));
    *out = (Tensor){.dtype = DT_I64};
    return ERR_OK;
}

// Counts the pieces of equal size, or checks that the given sizes use up the dimension.
static Err pieces_count(int64_t dim, MovePieces *p, Tensor *out) {
    const Tensor *sizes = p->sizes;
    if (sizes == NULL || sizes->rank == 0) {
        if (sizes != NULL) p->each = number_i64(sizes, 0);
        if (p->each < 1) return err_set(ERR_INVALID, "a piece has the size %" PRId64, p->each);
        p->sizes = NULL;
        p->n = dim / p->each + (dim % p->each != 0);
        return sequence_of(out, DT_SEQ, p->n);
    }
    int64_t left = dim;
    p->n = sizes->dims[0];
    for (int64_t i = 0; i < p->n; i++) {
        int64_t size = number_i64(sizes, i);
        if (size < 0 || size > left)
            return err_set(ERR_INVALID, "piece %" PRId64 " of size %" PRId64 " does not fit", i,
                           size);
        left -= size;
    }
    if (left != 0)
        return err_set(ERR_INVALID, "the pieces leave %" PRId64 " of %" PRId64, left, dim);
    return sequence_of(out, DT_SEQ, p->n);
}

Err move_pieces(const OpCall *c, Tensor *out, MovePieces *p) {
    const Tensor *x = c->in[0], *sizes = infer_in(c, 1);
    TRY(infer_need(x, TYPES_TENSOR, "input"));
    *p = (MovePieces){.each = 1, .sizes = sizes};
    TRY(infer_axis(attr_int(c->node, "axis", 0), x->rank, &p->axis));
    p->drop_axis = sizes == NULL && attr_int(c->node, "keepdims", 1) == 0;
    TRY(sequence_of(out, DT_SEQ, 0));
    if (sizes != NULL) {
        TRY(infer_need(sizes, TYPES_INDEX, "split"));
        if (sizes->rank > 1) return err_set(ERR_INVALID, "split has rank %d", sizes->rank);
        if (!move_known(sizes)) return move_unknown(out);
    }
    return pieces_count(x->dims[p->axis], p, out);
}

Err infer_split_to_sequence(const OpCall *c, Tensor *out) {
    MovePieces p;
    return move_pieces(c, out, &p);
}

static bool has_new_axis(const OpCall *c) { return attr_int(c->node, "new_axis", 0) != 0; }

Tensor move_stacked(const OpCall *c, int64_t i, int32_t axis) {
    Tensor t = *element(c->in[0], i);
    if (!has_new_axis(c)) return t;
    for (int32_t d = t.rank; d > axis; d--) t.dims[d] = t.dims[d - 1];
    t.dims[axis] = 1;
    t.rank++;
    return t;
}

Err move_stack(const OpCall *c, Tensor *out, int32_t *axis) {
    const Tensor *s = c->in[0];
    TRY(need_sequence(s));
    if (!attr_has(c->node, "axis")) return err_set(ERR_INVALID, "gives no axis");
    if (s->dims[0] == 0) return err_set(ERR_INVALID, "the sequence is empty");
    if (s->data == NULL) return anything(out);
    int32_t rank = element(s, 0)->rank + (has_new_axis(c) ? 1 : 0);
    TRY(move_rank(rank));
    TRY(infer_axis(attr_int(c->node, "axis", 0), rank, axis));
    Tensor first = move_stacked(c, 0, *axis);
    TRY(like(&first, out));
    for (int64_t i = 1; i < s->dims[0]; i++) {
        if (element(s, i)->rank != element(s, 0)->rank)
            return err_set(ERR_INVALID, "elements have ranks %d and %d", element(s, 0)->rank,
                           element(s, i)->rank);
        Tensor part = move_stacked(c, i, *axis);
        TRY(move_join(&part, *axis, out));
    }
    return ERR_OK;
}

Err infer_concat_from_sequence(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    return move_stack(c, out, &axis);
}

Err infer_optional(const OpCall *c, Tensor *out) {
    const Tensor *x = infer_in(c, 0);
    if (x == NULL && !attr_has(c->node, "type"))
        return err_set(ERR_INVALID, "has neither an input nor a type");
    if (x != NULL) TRY(infer_need(x, TYPES_TENSOR | dtype_bit(DT_SEQ), "element"));
    return sequence_of(out, DT_OPT, x != NULL);
}

Err infer_optional_get_element(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    if (x->dtype != DT_OPT) return like(x, out);
    if (x->dims[0] == 0) return err_set(ERR_INVALID, "the optional is empty");
    return x->data != NULL ? like(element(x, 0), out) : anything(out);
}

Err infer_optional_has_element(const OpCall *c, Tensor *out) {
    (void)c;
    *out = (Tensor){.dtype = DT_BOOL};
    return ERR_OK;
}
