// Cutting and joining along axes: Slice, Split, Concat.
#include <inttypes.h>

#include "model/move.h"

static int64_t clamp(int64_t v, int64_t low, int64_t high) {
    return v < low ? low : v > high ? high : v;
}

// How many indices lie between the clamped ends. The step may be any number.
static int64_t slice_count(int64_t start, int64_t end, int64_t step) {
    int64_t  span = step > 0 ? end - start : start - end;
    uint64_t size = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if (span <= 0 || size == 0) return 0;
    return (int64_t)(((uint64_t)span - 1) / size) + 1;
}

static void slice_axis(int64_t start, int64_t end, int64_t step, int32_t axis, Tensor *out,
                       MoveSlice *s) {
    int64_t dim = out->dims[axis], back = step < 0 ? 1 : 0;
    start = clamp(start < 0 ? start + dim : start, 0, dim - back);
    end = clamp(end < 0 ? end + dim : end, -back, dim - back);
    out->dims[axis] = dim == 0 ? 0 : slice_count(start, end, step);
    s->start[axis] = out->dims[axis] > 0 ? start : 0;
    s->step[axis] = out->dims[axis] > 1 ? step : 1;
}

Err move_slice(const OpCall *c, Tensor *out, MoveSlice *s) {
    MoveList starts, ends, list, steps;
    int32_t  axes[TENSOR_MAX_RANK];
    uint32_t n = 0;
    TRY(infer_need(c->in[0], TYPES_TENSOR, "data"));
    TRY(move_list(c, 1, "starts", &starts));
    TRY(move_list(c, 2, "ends", &ends));
    TRY(move_list(c, 3, "axes", &list));
    TRY(move_list(c, 4, "steps", &steps));
    if (!starts.given || !ends.given) return err_set(ERR_INVALID, "gives no starts or no ends");
    *out = *c->in[0];
    out->data = NULL;
    if (!starts.known || !ends.known || !list.known || !steps.known) return move_unknown(out);
    TRY(move_axes(&list, out->rank, axes, &n));
    if (!list.given && starts.n < n) n = starts.n;
    if (starts.n != n || ends.n != n || (steps.given && steps.n != n))
        return err_set(ERR_INVALID, "starts, ends, axes and steps differ in length");
    for (int32_t i = 0; i < out->rank; i++) s->start[i] = 0, s->step[i] = 1;
    for (uint32_t i = 0; i < n; i++) {
        int64_t step = steps.given ? steps.v[i] : 1;
        if (step == 0) return err_set(ERR_INVALID, "a step is 0");
        slice_axis(starts.v[i], ends.v[i], step, axes[i], out, s);
    }
    return ERR_OK;
}

Err infer_slice(const OpCall *c, Tensor *out) {
    MoveSlice s;
    return move_slice(c, out, &s);
}

Err move_join(const Tensor *t, int32_t axis, Tensor *out) {
    if (t->dtype != out->dtype)
        return err_set(ERR_INVALID, "joins type %s and type %s", dtype_name(out->dtype),
                       dtype_name(t->dtype));
    if (t->rank != out->rank)
        return err_set(ERR_INVALID, "joins tensors of rank %d and %d", out->rank, t->rank);
    for (int32_t i = 0; i < t->rank; i++)
        if (i != axis && t->dims[i] != out->dims[i])
            return err_set(ERR_INVALID, "joins sizes %" PRId64 " and %" PRId64 " in dimension %d",
                           out->dims[i], t->dims[i], i);
    if (__builtin_add_overflow(out->dims[axis], t->dims[axis], &out->dims[axis]))
        return err_set(ERR_LIMIT, "the joined dimension is larger than can be counted");
    return ERR_OK;
}

Err move_concat(const OpCall *c, Tensor *out, int32_t *axis) {
    TRY(infer_need(c->in[0], TYPES_TENSOR, "data"));
    if (c->node->version >= 4 && !attr_has(c->node, "axis"))
        return err_set(ERR_INVALID, "gives no axis");
    TRY(infer_axis(attr_int(c->node, "axis", 1), c->in[0]->rank, axis));
    *out = *c->in[0];
    out->data = NULL;
    for (uint32_t i = 1; i < c->node->n_in; i++) {
        if (c->in[i] == NULL) return err_set(ERR_INVALID, "input %u is missing", i);
        TRY(move_join(c->in[i], *axis, out));
    }
    return ERR_OK;
}

Err infer_concat(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    return move_concat(c, out, &axis);
}

static Err split_given(const OpCall *c, const Tensor *sizes, int32_t axis, Tensor *out) {
    uint32_t       n = 0;
    const int64_t *attr = attr_ints(c->node, "split", &n);
    int64_t        total = 0, count = sizes != NULL ? tensor_count(sizes) : (int64_t)n;
    if (count < (int64_t)c->node->n_out)
        return err_set(ERR_INVALID, "gives %" PRId64 " sizes for %u outputs", count,
                       c->node->n_out);
    for (int64_t i = 0; i < count; i++) {
        int64_t v = sizes == NULL            ? attr[i]
                    : sizes->dtype == DT_I32 ? ((const int32_t *)sizes->data)[i]
                                             : ((const int64_t *)sizes->data)[i];
        if (v < 0 || v > c->in[0]->dims[axis] - total)
            return err_set(ERR_INVALID, "size %" PRId64 " of part %" PRId64 " does not fit", v, i);
        total += v;
        if (i < (int64_t)c->node->n_out) out[i].dims[axis] = v;
    }
    if (total == c->in[0]->dims[axis]) return ERR_OK;
    return err_set(ERR_INVALID, "the parts have %" PRId64 " of %" PRId64 " elements", total,
                   c->in[0]->dims[axis]);
}

// From operator set 18 on the last part may be smaller than the others.
static Err split_evenly(const OpCall *c, int32_t axis, Tensor *out) {
    int64_t parts = attr_int(c->node, "num_outputs", (int64_t)c->node->n_out);
    int64_t dim = c->in[0]->dims[axis];
    if (parts < (int64_t)c->node->n_out)
        return err_set(ERR_INVALID, "num_outputs is %" PRId64 " but there are %u outputs", parts,
                       c->node->n_out);
    if (dim % parts != 0 && c->node->version < 18)
        return err_set(ERR_INVALID, "%" PRId64 " elements do not split into %" PRId64, dim, parts);
    int64_t each = dim / parts + (dim % parts != 0), left = dim;
    for (uint32_t i = 0; i < c->node->n_out; i++) {
        out[i].dims[axis] = left < each ? left : each;
        left -= out[i].dims[axis];
    }
    return ERR_OK;
}

Err move_split(const OpCall *c, Tensor *out, int32_t *axis) {
    const Tensor *sizes = infer_in(c, 1);
    TRY(infer_need(c->in[0], TYPES_TENSOR, "data"));
    TRY(infer_axis(attr_int(c->node, "axis", 0), c->in[0]->rank, axis));
    if (sizes != NULL) TRY(infer_need(sizes, TYPES_INDEX, "split"));
    bool wait = sizes != NULL && !move_known(sizes);
    for (uint32_t i = 0; i < c->node->n_out; i++) {
        out[i] = *c->in[0];
        out[i].data = NULL;
        if (wait) out[i].rank = RANK_UNKNOWN;
    }
    if (wait) return ERR_OK;
    bool given = sizes != NULL || attr_has(c->node, "split");
    return given ? split_given(c, sizes, *axis, out) : split_evenly(c, *axis, out);
}

Err infer_split(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    return move_split(c, out, &axis);
}
