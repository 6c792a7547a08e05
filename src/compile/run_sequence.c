// Sequences and optionals. Elements live in the call's keep arena, so a list of them is enough.
#include <string.h>

#include "base/number.h"
#include "compile/run.h"
#include "kernel/ref_move.h"
#include "model/move.h"

static void copy_elements(Tensor *to, const Tensor *from, int64_t n) {
    if (n > 0) memcpy(to, from, (size_t)n * sizeof *to);
}

static Err copy_bytes(const Tensor *from, Tensor *out) {
    size_t bytes = 0;
    TRY(tensor_measure(out, &bytes));
    if (bytes > 0) memcpy(out->data, from->data, bytes);
    return ERR_OK;
}

Err run_sequence_empty(const OpCall *c, Tensor *out) {
    (void)c;
    (void)out;
    return ERR_OK;
}

Err run_sequence_construct(const OpCall *c, Tensor *out) {
    Tensor *elements = out->data;
    for (uint32_t i = 0; i < c->node->n_in; i++) TRY(run_keep(c, c->in[i], &elements[i]));
    return ERR_OK;
}

Err run_sequence_insert(const OpCall *c, Tensor *out) {
    const Tensor *from = c->in[0]->data;
    Tensor       *to = out->data;
    int64_t       n = c->in[0]->dims[0], at = n;
    TRY(move_position(c, 2, n, n + 1, &at));
    copy_elements(to, from, at);
    copy_elements(to + at + 1, from + at, n - at);
    return run_keep(c, c->in[1], &to[at]);
}

Err run_sequence_erase(const OpCall *c, Tensor *out) {
    const Tensor *from = c->in[0]->data;
    Tensor       *to = out->data;
    int64_t       n = c->in[0]->dims[0], at = n - 1;
    TRY(move_position(c, 1, n, n, &at));
    copy_elements(to, from, at);
    copy_elements(to + at, from + at + 1, n - at - 1);
    return ERR_OK;
}

Err run_sequence_at(const OpCall *c, Tensor *out) {
    int64_t n = c->in[0]->dims[0], at = 0;
    TRY(move_position(c, 1, n, n, &at));
    return copy_bytes(&((const Tensor *)c->in[0]->data)[at], out);
}

Err run_sequence_length(const OpCall *c, Tensor *out) {
    *(int64_t *)out->data = c->in[0]->dims[0];
    return ERR_OK;
}

// One piece, in memory of its own.
static Err make_piece(const OpCall *c, const MovePieces *p, RefSide from, int64_t size,
                      Tensor *piece) {
    Tensor t = *c->in[0];
    t.dims[p->axis] = size;
    TRY(tensor_room(&t, c->keep));
    ref_move(t.rank, t.dims, dtype_size(t.dtype), ref_side(&t), from);
    if (p->drop_axis) {
        for (int32_t i = p->axis; i + 1 < t.rank; i++) t.dims[i] = t.dims[i + 1];
        t.rank--;
    }
    *piece = t;
    return ERR_OK;
}

Err run_split_to_sequence(const OpCall *c, Tensor *out) {
    Tensor     shape, *pieces = out->data;
    MovePieces p;
    TRY(move_pieces(c, &shape, &p));
    RefSide from = ref_side(c->in[0]);
    int64_t left = c->in[0]->dims[p.axis];
    for (int64_t i = 0; i < p.n; i++) {
        int64_t size = p.sizes != NULL ? number_i64(p.sizes, i) : left < p.each ? left : p.each;
        TRY(make_piece(c, &p, from, size, &pieces[i]));
        from.start += size * from.stride[p.axis];
        left -= size;
    }
    return ERR_OK;
}

Err run_concat_from_sequence(const OpCall *c, Tensor *out) {
    Tensor  shape;
    int32_t axis = 0;
    TRY(move_stack(c, &shape, &axis));
    RefSide to = ref_side(out);
    for (int64_t i = 0; i < c->in[0]->dims[0]; i++) {
        Tensor part = move_stacked(c, i, axis);
        ref_move(part.rank, part.dims, dtype_size(part.dtype), to, ref_side(&part));
        to.start += part.dims[axis] * to.stride[axis];
    }
    return ERR_OK;
}

Err run_optional(const OpCall *c, Tensor *out) {
    const Tensor *x = infer_in(c, 0);
    return x != NULL ? run_keep(c, x, out->data) : ERR_OK;
}

Err run_optional_get_element(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    return copy_bytes(x->dtype == DT_OPT ? x->data : x, out);
}

Err run_optional_has_element(const OpCall *c, Tensor *out) {
    const Tensor *x = infer_in(c, 0);
    *(uint8_t *)out->data = x != NULL && (x->dtype != DT_OPT || x->dims[0] > 0);
    return ERR_OK;
}
