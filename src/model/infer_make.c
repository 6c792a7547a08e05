// Tensors made from sizes and rules: Shape, Size, ConstantOfShape, EyeLike, Range, OneHot, Trilu.
#include <inttypes.h>
#include <math.h>

#include "base/check.h"
#include "base/number.h"
#include "model/move.h"

static int64_t clamp(int64_t v, int64_t high) {
    if (v < 0) v += high;
    return v < 0 ? 0 : v > high ? high : v;
}

Err move_shape(const OpCall *c, Tensor *out, int32_t *first) {
    int32_t rank = c->in[0]->rank;
    int64_t start = clamp(attr_int(c->node, "start", 0), rank);
    int64_t end = clamp(attr_int(c->node, "end", rank), rank);
    *first = (int32_t)start;
    *out = (Tensor){.dtype = DT_I64, .rank = 1, .dims = {end > start ? end - start : 0}};
    return ERR_OK;
}

Err infer_shape(const OpCall *c, Tensor *out) {
    int32_t first = 0;
    return move_shape(c, out, &first);
}

Err infer_size(const OpCall *c, Tensor *out) {
    size_t bytes = 0;
    TRY(tensor_measure(c->in[0], &bytes));
    *out = (Tensor){.dtype = DT_I64};
    return ERR_OK;
}

Err infer_constant_of_shape(const OpCall *c, Tensor *out) {
    const Tensor *value = attr_tensor(c->node, "value");
    MoveList      shape;
    if (value != NULL) {
        TRY(infer_need(value, TYPES_TENSOR, "value"));
        if (tensor_count(value) != 1 || value->data == NULL)
            return err_set(ERR_INVALID, "value must have one element");
    }
    *out = (Tensor){.dtype = value != NULL ? value->dtype : DT_F32};
    TRY(move_list(c, 0, "shape", &shape));
    if (!shape.known) return move_unknown(out);
    return move_dims(&shape, out);
}

Err infer_eye_like(const OpCall *c, Tensor *out) {
    if (c->in[0]->rank != 2)
        return err_set(ERR_INVALID, "the input has rank %d, not 2", c->in[0]->rank);
    *out = *c->in[0];
    out->data = NULL;
    return move_dtype(c->node, "dtype", out->dtype, TYPES_NUMBER | dtype_bit(DT_BOOL), &out->dtype);
}

// How many steps of delta lead from start to limit, which is not reached.
static Err range_count(const Tensor *start, const Tensor *limit, const Tensor *delta, int64_t *n) {
    *n = 0;
    if (number_is_zero(delta, 0)) return err_set(ERR_INVALID, "delta is 0");
    if (dtype_is_float(start->dtype)) {
        double span = number_f64(limit, 0) - number_f64(start, 0);
        if (start->dtype == DT_F32) span = (double)(float)span;
        double count = ceil(span / number_f64(delta, 0));
        if (!(count < 0x1p62)) return err_set(ERR_LIMIT, "the range has no end in reach");
        if (count > 0) *n = (int64_t)count;
        return ERR_OK;
    }
    int64_t a = number_i64(start, 0), b = number_i64(limit, 0), d = number_i64(delta, 0);
    CHECK(d != 0);
    uint64_t span = d > 0 ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;
    uint64_t step = d > 0 ? (uint64_t)d : 0 - (uint64_t)d;
    if (step == 0 || (d > 0 ? b <= a : b >= a)) return ERR_OK;
    uint64_t count = (span - 1) / step + 1;
    if (count > INT64_MAX) return err_set(ERR_LIMIT, "the range is longer than can be counted");
    *n = (int64_t)count;
    return ERR_OK;
}

Err infer_range(const OpCall *c, Tensor *out) {
    static const char *const names[] = {"start", "limit", "delta"};
    bool                     known = true;
    for (uint32_t i = 0; i < 3; i++) {
        TRY(infer_need(c->in[i], TYPES_FLOAT | TYPES_SIGNED, names[i]));
        if (c->in[i]->dtype != c->in[0]->dtype)
            return err_set(ERR_INVALID, "start, limit and delta differ in type");
        if (c->in[i]->rank > 1 || tensor_count(c->in[i]) != 1)
            return err_set(ERR_INVALID, "%s must have one element", names[i]);
        known = known && c->in[i]->data != NULL;
    }
    *out = (Tensor){.dtype = c->in[0]->dtype, .rank = 1};
    if (!known) return move_unknown(out);
    return range_count(c->in[0], c->in[1], c->in[2], &out->dims[0]);
}

Err move_one_hot(const OpCall *c, Tensor *out, MoveOneHot *h) {
    const Tensor *at = c->in[0], *depth = c->in[1], *values = c->in[2];
    int32_t       axis = 0;
    TRY(infer_need(at, TYPES_NUMBER, "indices"));
    TRY(infer_need(depth, TYPES_NUMBER, "depth"));
    TRY(infer_need(values, TYPES_TENSOR, "values"));
    if (depth->rank > 1 || tensor_count(depth) != 1 || values->rank != 1 || values->dims[0] != 2)
        return err_set(ERR_INVALID, "needs one depth and two values");
    TRY(move_rank((int64_t)at->rank + 1));
    TRY(infer_axis(attr_int(c->node, "axis", -1), at->rank + 1, &axis));
    *out = (Tensor){.dtype = values->dtype, .rank = at->rank + 1};
    if (depth->data == NULL) return move_unknown(out);
    *h = (MoveOneHot){1, number_i64(depth, 0), 1};
    if (h->depth < 0) return err_set(ERR_INVALID, "depth is %" PRId64, h->depth);
    for (int32_t i = 0; i < at->rank; i++) {
        out->dims[i < axis ? i : i + 1] = at->dims[i];
        *(i < axis ? &h->outer : &h->inner) *= at->dims[i];
    }
    out->dims[axis] = h->depth;
    return ERR_OK;
}

Err infer_one_hot(const OpCall *c, Tensor *out) {
    MoveOneHot h;
    size_t     bytes = 0;
    TRY(tensor_measure(c->in[0], &bytes));
    return move_one_hot(c, out, &h);
}

Err infer_trilu(const OpCall *c, Tensor *out) {
    int64_t k = 0;
    bool    known = true;
    TRY(infer_need(c->in[0], TYPES_TENSOR, "input"));
    TRY(move_int(c, 1, &k, &known));
    if (c->in[0]->rank < 2)
        return err_set(ERR_INVALID, "the input has rank %d, needs 2", c->in[0]->rank);
    *out = *c->in[0];
    out->data = NULL;
    return ERR_OK;
}
