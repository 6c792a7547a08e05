// Gathering and scattering by index, and selection by value: Gather*, Scatter*, NonZero, Compress,
// Unique, TopK, NonMaxSuppression.
#include <inttypes.h>

#include "model/infer/infer_params.h"
#include "model/infer/selection.h"

static Err gather_start(const OpCall *c) {
    TRY(infer_check_type(c->in[0], TYPES_TENSOR, "data"));
    return infer_check_type(c->in[1], TYPES_INDEX, "indices");
}

static void append(Tensor *out, const int64_t *dims, int32_t n) {
    for (int32_t i = 0; i < n; i++) out->dims[out->rank++] = dims[i];
}

Err infer_gather(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *at = c->in[1];
    int32_t       axis = 0;
    TRY(gather_start(c));
    TRY(infer_axis(attr_int(c->node, "axis", 0), x->rank, &axis));
    TRY(infer_check_rank((int64_t)x->rank - 1 + at->rank));
    *out = (Tensor){.dtype = x->dtype};
    append(out, x->dims, axis);
    append(out, at->dims, at->rank);
    append(out, x->dims + axis + 1, x->rank - axis - 1);
    return ERR_OK;
}

// The indices may be smaller than the data, and larger only along the axis.
static Err check_elements(const Tensor *x, const Tensor *at, int32_t axis) {
    if (at->rank != x->rank)
        return err_set(ERR_INVALID, "indices have rank %d, the data has rank %d", at->rank,
                       x->rank);
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis && at->dims[i] > x->dims[i])
            return err_set(ERR_INVALID,
                           "indices have size %" PRId64 " in dimension %d, the data %" PRId64,
                           at->dims[i], i, x->dims[i]);
    return ERR_OK;
}

Err infer_gather_elements(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    TRY(gather_start(c));
    TRY(infer_axis(attr_int(c->node, "axis", 0), c->in[0]->rank, &axis));
    TRY(check_elements(c->in[0], c->in[1], axis));
    *out = tensor_of(c->in[0]->dtype, c->in[1]->rank, c->in[1]->dims, NULL);
    return ERR_OK;
}

Err infer_gather_nd(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *at = c->in[1];
    int64_t       batch = attr_int(c->node, "batch_dims", 0);
    TRY(gather_start(c));
    if (batch < 0 || batch >= x->rank || batch >= at->rank)
        return err_set(ERR_INVALID, "batch_dims %" PRId64 " does not fit ranks %d and %d", batch,
                       x->rank, at->rank);
    int32_t b = (int32_t)batch, last = at->rank - 1;
    for (int32_t i = 0; i < b; i++)
        if (x->dims[i] != at->dims[i])
            return err_set(ERR_INVALID, "batch dimension %d differs: %" PRId64 " and %" PRId64, i,
                           x->dims[i], at->dims[i]);
    if (at->dims[last] < 1 || at->dims[last] > x->rank - b)
        return err_set(ERR_INVALID,
                       "an index has %" PRId64 " coordinates, the data has %d dimensions",
                       at->dims[last], x->rank - b);
    int32_t used = b + (int32_t)at->dims[last];
    TRY(infer_check_rank((int64_t)last + x->rank - used));
    *out = (Tensor){.dtype = x->dtype};
    append(out, at->dims, last);
    append(out, x->dims + used, x->rank - used);
    return ERR_OK;
}

// Checks types and the reduction; the output has the shape of the data.
static Err scatter_start(const OpCall *c, Tensor *out) {
    static const char *const reductions[] = {"none", "add", "mul", "max", "min"};
    int                      reduction = 0;
    TRY(gather_start(c));
    TRY(attr_enum(c->node, "reduction", reductions, 5, &reduction));
    if (reduction != 0) TRY(infer_check_type(c->in[0], TYPES_NUMBER, "data to reduce"));
    if (c->in[2]->dtype != c->in[0]->dtype)
        return err_set(ERR_INVALID, "updates have type %s, the data has type %s",
                       dtype_name(c->in[2]->dtype), dtype_name(c->in[0]->dtype));
    *out = infer_like(c->in[0]);
    return ERR_OK;
}

Err infer_scatter_elements(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    TRY(scatter_start(c, out));
    TRY(infer_axis(attr_int(c->node, "axis", 0), out->rank, &axis));
    if (!tensor_same_shape(c->in[1], c->in[2]))
        return err_set(ERR_INVALID, "indices and updates differ in shape");
    return check_elements(c->in[0], c->in[1], axis);
}

Err infer_scatter_nd(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *at = c->in[1], *updates = c->in[2];
    TRY(scatter_start(c, out));
    int32_t last = at->rank - 1;
    if (x->rank < 1 || last < 0 || at->dims[last] < 1 || at->dims[last] > x->rank)
        return err_set(ERR_INVALID, "the indices do not fit data of rank %d", x->rank);
    int32_t used = (int32_t)at->dims[last];
    Tensor  want = {.dtype = x->dtype};
    TRY(infer_check_rank((int64_t)last + x->rank - used));
    append(&want, at->dims, last);
    append(&want, x->dims + used, x->rank - used);
    if (tensor_same_shape(&want, updates)) return ERR_OK;
    char need[128], got[128];
    tensor_shape_text(&want, need, sizeof need);
    tensor_shape_text(updates, got, sizeof got);
    return err_set(ERR_INVALID, "updates have shape %s, the indices need %s", got, need);
}

static Err measure_inputs(const OpCall *c) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < c->node->n_in; i++)
        if (c->in[i] != NULL) TRY(tensor_measure(c->in[i], &bytes));
    return ERR_OK;
}

static void vector(Tensor *out, DType type, int64_t n) {
    *out = (Tensor){.dtype = type, .rank = 1, .dims = {n}};
}

Err infer_nonzero(const OpCall *c, Tensor *out) {
    Selection s;
    TRY(infer_check_type(c->in[0], TYPES_NUMBER | dtype_bit(DT_BOOL), "X"));
    TRY(measure_inputs(c));
    int32_t rank = c->in[0]->rank > 0 ? c->in[0]->rank : 1;
    *out = (Tensor){.dtype = DT_I64, .rank = 2, .dims = {rank}};
    if (!infer_has_data(c->in[0])) return infer_unknown_shape(out);
    TRY(selection_nonzero(c, c->in[0], &s));
    out->dims[1] = s.n;
    return ERR_OK;
}

// The input's shape and its axis, or without an axis the flattened input.
static Err flat_or_axis(const OpCall *c, Tensor *out, int32_t *axis) {
    const Tensor *x = c->in[0];
    *axis = 0;
    vector(out, x->dtype, tensor_count(x));
    if (!attr_has(c->node, "axis")) return ERR_OK;
    *out = infer_like(x);
    return infer_axis(attr_int(c->node, "axis", 0), x->rank, axis);
}

Err infer_compress(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *condition = c->in[1];
    Selection     s;
    int32_t       axis = 0;
    TRY(infer_check_type(x, TYPES_TENSOR, "input"));
    TRY(infer_check_type(condition, dtype_bit(DT_BOOL), "condition"));
    TRY(measure_inputs(c));
    if (condition->rank != 1) return err_set(ERR_INVALID, "the condition must have rank 1");
    TRY(flat_or_axis(c, out, &axis));
    if (!infer_has_data(condition)) return infer_unknown_shape(out);
    TRY(selection_nonzero(c, condition, &s));
    if (s.n > 0 && s.at[s.n - 1] >= out->dims[axis])
        return err_set(ERR_INVALID, "the condition selects index %" PRId64 " of %" PRId64,
                       s.at[s.n - 1], out->dims[axis]);
    out->dims[axis] = s.n;
    return ERR_OK;
}

Err infer_unique(const OpCall *c, Tensor *out) {
    const Tensor   *x = c->in[0];
    UniqueSelection u;
    int32_t         axis = 0;
    TRY(infer_check_type(x, TYPES_NUMBER | dtype_bit(DT_BOOL) | dtype_bit(DT_STR), "X"));
    TRY(measure_inputs(c));
    TRY(flat_or_axis(c, &out[0], &axis));
    bool known = infer_has_data(x);
    if (known) TRY(selection_unique(c, &u));
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
    TRY(infer_check_type(x, TYPES_NUMBER, "X"));
    TRY(infer_axis(attr_int(c->node, "axis", -1), x->rank, &axis));
    TRY(infer_int_input(c, 1, &k, &known));
    if (known && (k < 0 || k > x->dims[axis]))
        return err_set(ERR_INVALID, "K is %" PRId64 " but dimension %d has size %" PRId64, k, axis,
                       x->dims[axis]);
    for (uint32_t i = 0; i < c->node->n_out; i++) {
        out[i] = infer_like(x);
        out[i].dtype = i == 0 ? x->dtype : DT_I64;
        out[i].dims[axis] = k;
        if (!known) out[i].rank = RANK_UNKNOWN;
    }
    return ERR_OK;
}

Err infer_nms(const OpCall *c, Tensor *out) {
    const Tensor *boxes = c->in[0], *scores = c->in[1];
    Selection     s;
    bool          known = true;
    TRY(measure_inputs(c));
    TRY(infer_check_type(boxes, dtype_bit(DT_F32), "boxes"));
    TRY(infer_check_type(scores, dtype_bit(DT_F32), "scores"));
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[2] != 4 ||
        scores->dims[0] != boxes->dims[0] || scores->dims[2] != boxes->dims[1])
        return err_set(ERR_INVALID,
                       "boxes must be batch x boxes x 4, scores batch x classes x boxes");
    for (uint32_t i = 0; i < c->node->n_in; i++) {
        if (c->in[i] == NULL) continue;
        if (i >= 2 && (tensor_count(c->in[i]) != 1 || !dtype_is_number(c->in[i]->dtype)))
            return err_set(ERR_INVALID, "input %u must have one element", i);
        known = known && infer_has_data(c->in[i]);
    }
    *out = (Tensor){.dtype = DT_I64, .rank = 2, .dims = {0, 3}};
    if (!known) return infer_unknown_shape(out);
    TRY(selection_nms(c, &s));
    out->dims[0] = s.n;
    return ERR_OK;
}
