// Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Expand.
#include <inttypes.h>

#include "model/infer/infer_params.h"

// Checks type and size of the input; out gets its type.
static Err check_data(const OpCall *c, Tensor *out) {
    size_t bytes = 0;
    TRY(infer_check_type(c->in[0], TYPES_TENSOR, "data"));
    *out = (Tensor){.dtype = c->in[0]->dtype};
    return tensor_measure(c->in[0], &bytes);
}

// The product of the known sizes; fails if it overflows.
static Err known_product(const Tensor *out, int64_t *product) {
    *product = 1;
    for (int32_t i = 0; i < out->rank; i++)
        if (out->dims[i] >= 0 && __builtin_mul_overflow(*product, out->dims[i], product))
            return err_set(ERR_LIMIT, "the new shape has more than 2^63 elements");
    return ERR_OK;
}

static Err reshape_to(const IntList *want, bool keep_zero, const Tensor *in, Tensor *out) {
    int64_t count = tensor_count(in);
    int32_t open = -1;
    out->rank = (int32_t)want->n;
    for (int32_t i = 0; i < out->rank; i++) {
        int64_t v = want->v[i];
        if (v < -1) return err_set(ERR_INVALID, "the new shape has a size of %" PRId64, v);
        if (v == -1 && open >= 0) return err_set(ERR_INVALID, "the new shape has two sizes of -1");
        if (v == -1) open = i;
        if (v == 0 && !keep_zero && i >= in->rank)
            return err_set(ERR_INVALID, "size %d of the new shape is 0, but the input has rank %d",
                           i, in->rank);
        out->dims[i] = v == 0 && !keep_zero ? in->dims[i] : v;
    }
    int64_t product = 1;
    TRY(known_product(out, &product));
    if (open >= 0 && (product == 0 || count % product != 0))
        return err_set(ERR_INVALID, "%" PRId64 " elements do not divide by %" PRId64, count,
                       product);
    if (open >= 0) out->dims[open] = count / product;
    if (open < 0 && product != count)
        return err_set(ERR_INVALID, "the new shape has %" PRId64 " elements, the data has %" PRId64,
                       product, count);
    return ERR_OK;
}

Err infer_reshape(const OpCall *c, Tensor *out) {
    IntList want;
    TRY(check_data(c, out));
    TRY(infer_int_list(c, 1, "shape", &want));
    if (!want.given) return err_set(ERR_INVALID, "shape is missing");
    if (!want.known) return infer_unknown_shape(out);
    TRY(infer_check_rank(want.n));
    return reshape_to(&want, attr_int(c->node, "allowzero", 0) != 0, c->in[0], out);
}

Err infer_flatten(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    int64_t       axis = attr_int(c->node, "axis", 1);
    TRY(check_data(c, out));
    if (axis < -x->rank || axis > x->rank)
        return err_set(ERR_INVALID, "axis %" PRId64 " is outside a tensor of rank %d", axis,
                       x->rank);
    if (axis < 0) axis += x->rank;
    out->rank = 2;
    out->dims[0] = out->dims[1] = 1;
    for (int32_t i = 0; i < x->rank; i++) out->dims[i < axis ? 0 : 1] *= x->dims[i];
    return ERR_OK;
}

Err infer_squeeze(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    IntList       list;
    int32_t       axes[TENSOR_MAX_RANK];
    uint32_t      n = 0, gone = 0;
    TRY(check_data(c, out));
    TRY(infer_int_list(c, 1, "axes", &list));
    if (!list.known) return infer_unknown_shape(out);
    TRY(infer_axes(&list, x->rank, axes, &n));
    for (uint32_t i = 0; i < n; i++) {
        if (x->dims[axes[i]] == 1) gone |= 1u << axes[i];
        if (x->dims[axes[i]] != 1 && list.given)
            return err_set(ERR_INVALID, "dimension %d has size %" PRId64 ", must be 1", axes[i],
                           x->dims[axes[i]]);
    }
    for (int32_t i = 0; i < x->rank; i++)
        if ((gone >> i & 1u) == 0) out->dims[out->rank++] = x->dims[i];
    return ERR_OK;
}

Err infer_unsqueeze(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    IntList       list;
    int32_t       axes[TENSOR_MAX_RANK];
    uint32_t      n = 0, fresh = 0;
    TRY(check_data(c, out));
    TRY(infer_int_list(c, 1, "axes", &list));
    if (!list.given) return err_set(ERR_INVALID, "axes are missing");
    if (!list.known) return infer_unknown_shape(out);
    TRY(infer_check_rank(x->rank + (int64_t)list.n));
    out->rank = x->rank + (int32_t)list.n;
    TRY(infer_axes(&list, out->rank, axes, &n));
    for (uint32_t i = 0; i < n; i++) fresh |= 1u << axes[i];
    for (int32_t i = 0, from = 0; i < out->rank; i++)
        out->dims[i] = (fresh >> i & 1u) != 0 ? 1 : x->dims[from++];
    return ERR_OK;
}

Err infer_transpose_perm(const OpCall *c, Tensor *out, int32_t *perm) {
    const Tensor *x = c->in[0];
    IntList       list;
    uint32_t      n = 0;
    TRY(check_data(c, out));
    TRY(infer_int_list(c, 1, "perm", &list));
    TRY(infer_axes(&list, x->rank, perm, &n));
    if (n != (uint32_t)x->rank)
        return err_set(ERR_INVALID, "perm has %u axes, the tensor rank %d", n, x->rank);
    out->rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) {
        if (!list.given) perm[i] = x->rank - 1 - i;
        out->dims[i] = x->dims[perm[i]];
    }
    return ERR_OK;
}

Err infer_transpose(const OpCall *c, Tensor *out) {
    int32_t perm[TENSOR_MAX_RANK];
    return infer_transpose_perm(c, out, perm);
}

Err infer_expand(const OpCall *c, Tensor *out) {
    IntList want;
    TRY(check_data(c, out));
    TRY(infer_int_list(c, 1, "shape", &want));
    if (!want.known) return infer_unknown_shape(out);
    TRY(infer_check_rank(want.n));
    for (uint32_t i = 0; i < want.n; i++)
        if (want.v[i] < 0)
            return err_set(ERR_INVALID, "the shape has a size of %" PRId64, want.v[i]);
    Tensor shape = tensor_of(out->dtype, (int32_t)want.n, want.v, NULL);
    TRY(infer_broadcast(c->in[0], out));
    return infer_broadcast(&shape, out);
}
