// Generated tensors: Shape, Size, ConstantOfShape, EyeLike, Range, OneHot, Trilu, random values.
#include <inttypes.h>
#include <math.h>

#include "base/err.h"
#include "base/tensor.h"
#include "model/infer/infer_params.h"

static int64_t clamp(int64_t v, int64_t high) {
    if (v < 0) v += high;
    return v < 0 ? 0 : v > high ? high : v;
}

Err infer_shape_start(const OpCall *c, Tensor *out, int32_t *first) {
    int32_t rank = c->in[0]->rank;
    int64_t start = clamp(attr_int(c->node, "start", 0), rank);
    int64_t end = clamp(attr_int(c->node, "end", rank), rank);
    *first = (int32_t)start;
    *out = (Tensor){.dtype = DT_I64, .rank = 1, .dims = {end > start ? end - start : 0}};
    return ERR_OK;
}

Err infer_shape(const OpCall *c, Tensor *out) {
    int32_t first = 0;
    return infer_shape_start(c, out, &first);
}

Err infer_size(const OpCall *c, Tensor *out) {
    size_t bytes = 0;
    TRY(tensor_measure(c->in[0], &bytes));
    *out = (Tensor){.dtype = DT_I64};
    return ERR_OK;
}

Err infer_constant_of_shape(const OpCall *c, Tensor *out) {
    const Tensor *value = attr_tensor(c->node, "value");
    IntList       shape;
    if (value != NULL) {
        TRY(infer_check_type(value, TYPES_TENSOR, "value"));
        if (tensor_count(value) != 1 || value->data == NULL)
            return err_set(ERR_INVALID, "value must have one element");
    }
    *out = (Tensor){.dtype = value != NULL ? value->dtype : DT_F32};
    TRY(infer_int_list(c, 0, "shape", &shape));
    if (!shape.known) return infer_unknown_shape(out);
    return infer_dims(&shape, out);
}

Err infer_eye_like(const OpCall *c, Tensor *out) {
    if (c->in[0]->rank != 2)
        return err_set(ERR_INVALID, "the input has rank %d, must be 2", c->in[0]->rank);
    *out = infer_like(c->in[0]);
    return infer_dtype_attr(c->node, "dtype", out->dtype, TYPES_NUMBER | dtype_bit(DT_BOOL),
                            &out->dtype);
}

// The number of steps of delta from start to limit, which is excluded.
static Err range_count(const Tensor *start, const Tensor *limit, const Tensor *delta, int64_t *n) {
    *n = 0;
    if (tensor_is_zero(delta, 0)) return err_set(ERR_INVALID, "delta is 0");
    if (dtype_is_float(start->dtype)) {
        double span = tensor_get_f64(limit, 0) - tensor_get_f64(start, 0);
        if (start->dtype == DT_F32) span = (double)(float)span;
        double count = ceil(span / tensor_get_f64(delta, 0));
        if (!(count < 0x1p62)) return err_set(ERR_LIMIT, "the range has more than 2^62 elements");
        if (count > 0) *n = (int64_t)count;
        return ERR_OK;
    }
    int64_t a = tensor_get_i64(start, 0), b = tensor_get_i64(limit, 0),
            d = tensor_get_i64(delta, 0);
    CHECK(d != 0);
    uint64_t span = d > 0 ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;
    uint64_t step = d > 0 ? (uint64_t)d : 0 - (uint64_t)d;
    if (step == 0 || (d > 0 ? b <= a : b >= a)) return ERR_OK;
    uint64_t count = (span - 1) / step + 1;
    if (count > INT64_MAX) return err_set(ERR_LIMIT, "the range has more than 2^63 elements");
    *n = (int64_t)count;
    return ERR_OK;
}

Err infer_range(const OpCall *c, Tensor *out) {
    static const char *const names[] = {"start", "limit", "delta"};
    bool                     known = true;
    for (uint32_t i = 0; i < 3; i++) {
        TRY(infer_check_type(c->in[i], TYPES_FLOAT | TYPES_SIGNED, names[i]));
        if (c->in[i]->dtype != c->in[0]->dtype)
            return err_set(ERR_INVALID, "start, limit and delta differ in type");
        if (c->in[i]->rank > 1 || tensor_count(c->in[i]) != 1)
            return err_set(ERR_INVALID, "%s must have one element", names[i]);
        known = known && c->in[i]->data != NULL;
    }
    *out = (Tensor){.dtype = c->in[0]->dtype, .rank = 1};
    if (!known) return infer_unknown_shape(out);
    return range_count(c->in[0], c->in[1], c->in[2], &out->dims[0]);
}

Err infer_one_hot_params(const OpCall *c, Tensor *out, OneHotParams *h) {
    const Tensor *at = c->in[0], *depth = c->in[1], *values = c->in[2];
    int32_t       axis = 0;
    TRY(infer_check_type(at, TYPES_NUMBER, "indices"));
    TRY(infer_check_type(depth, TYPES_NUMBER, "depth"));
    TRY(infer_check_type(values, TYPES_TENSOR, "values"));
    if (depth->rank > 1 || tensor_count(depth) != 1 || values->rank != 1 || values->dims[0] != 2)
        return err_set(ERR_INVALID, "depth must have one element and values two");
    TRY(infer_check_rank((int64_t)at->rank + 1));
    TRY(infer_axis(attr_int(c->node, "axis", -1), at->rank + 1, &axis));
    *out = (Tensor){.dtype = values->dtype, .rank = at->rank + 1};
    if (depth->data == NULL) return infer_unknown_shape(out);
    *h = (OneHotParams){1, tensor_get_i64(depth, 0), 1};
    if (h->depth < 0) return err_set(ERR_INVALID, "depth is %" PRId64, h->depth);
    for (int32_t i = 0; i < at->rank; i++) {
        out->dims[i < axis ? i : i + 1] = at->dims[i];
        *(i < axis ? &h->outer : &h->inner) *= at->dims[i];
    }
    out->dims[axis] = h->depth;
    return ERR_OK;
}

Err infer_one_hot(const OpCall *c, Tensor *out) {
    OneHotParams h;
    size_t       bytes = 0;
    TRY(tensor_measure(c->in[0], &bytes));
    return infer_one_hot_params(c, out, &h);
}

Err infer_trilu(const OpCall *c, Tensor *out) {
    int64_t k = 0;
    bool    known = true;
    TRY(infer_check_type(c->in[0], TYPES_TENSOR, "input"));
    TRY(infer_int_input(c, 1, &k, &known));
    if (c->in[0]->rank < 2)
        return err_set(ERR_INVALID, "the input has rank %d, must be at least 2", c->in[0]->rank);
    *out = infer_like(c->in[0]);
    return ERR_OK;
}

Err infer_random(const OpCall *c, Tensor *out) {
    IntList shape;
    *out = (Tensor){0};
    TRY(infer_dtype_attr(c->node, "dtype", DT_F32, TYPES_FLOAT, &out->dtype));
    TRY(infer_int_list(c, 0, "shape", &shape));
    if (!shape.given) return err_set(ERR_INVALID, "shape is missing");
    return infer_dims(&shape, out);
}

static Err like(const OpCall *c, uint64_t types, Tensor *out) {
    *out = infer_like(c->in[0]);
    return infer_dtype_attr(c->node, "dtype", out->dtype, types, &out->dtype);
}

Err infer_random_like(const OpCall *c, Tensor *out) { return like(c, TYPES_FLOAT, out); }

Err infer_bernoulli(const OpCall *c, Tensor *out) {
    TRY(infer_check_type(c->in[0], TYPES_FLOAT, "input"));
    return like(c, TYPES_NUMBER | dtype_bit(DT_BOOL), out);
}

Err infer_multinomial(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    int64_t       samples = attr_int(c->node, "sample_size", 1);
    TRY(infer_check_type(x, TYPES_FLOAT, "input"));
    if (x->rank != 2 || x->dims[1] < 1)
        return err_set(ERR_INVALID, "the input must be batch x classes");
    if (samples < 0) return err_set(ERR_INVALID, "sample_size is %" PRId64, samples);
    *out = (Tensor){.rank = 2, .dims = {x->dims[0], samples}};
    return infer_dtype_attr(c->node, "dtype", DT_I32, TYPES_INDEX, &out->dtype);
}
