// Sparse tensors become dense ones: nothing here computes on sparse numbers.
#include <inttypes.h>
#include <string.h>

#include "model/onnx_tensor.h"
#include "onnx.pb-c.h"

static Err dense_type(OnnxStore *s, const Onnx__SparseTensorProto *p, DType t, Tensor *out,
                      size_t *bytes) {
    if (p->n_dims > TENSOR_MAX_RANK)
        return err_set(ERR_UNSUPPORTED, "rank %zu is above %d", p->n_dims, TENSOR_MAX_RANK);
    *out = tensor_of(t, (int32_t)p->n_dims, p->dims, NULL);
    TRY(tensor_measure(out, bytes));
    if (*bytes > s->dense_left)
        return err_set(ERR_LIMIT, "would be %zu bytes when made dense, beyond the limit", *bytes);
    s->dense_left -= *bytes;
    out->data = arena_try(s->arena, 1, *bytes, TENSOR_ALIGN);
    return out->data != NULL ? ERR_OK : err_set(ERR_LIMIT, "no room for its %zu bytes", *bytes);
}

// Where value i goes: indices hold one linear place a value, or one row of coordinates.
static Err place(const Tensor *dense, const Tensor *indices, int64_t i, int64_t *at) {
    const int64_t *row = (const int64_t *)indices->data;
    int64_t        linear = 0;
    if (indices->rank == 1) linear = row[i];
    for (int32_t d = 0; indices->rank == 2 && d < dense->rank; d++) {
        int64_t x = row[i * dense->rank + d];
        if (x < 0 || x >= dense->dims[d])
            return err_set(ERR_INVALID, "index %" PRId64 " is outside of dimension %d", x, d);
        linear = linear * dense->dims[d] + x;
    }
    if (linear < 0 || linear >= tensor_count(dense))
        return err_set(ERR_INVALID, "index %" PRId64 " is outside of the tensor", linear);
    *at = linear;
    return ERR_OK;
}

static Err check_parts(const Tensor *values, const Tensor *indices, size_t rank) {
    if (values->rank != 1) return err_set(ERR_INVALID, "its values are not a list");
    bool linear = indices->rank == 1, rows = indices->rank == 2;
    if (indices->dtype != DT_I64 || (!linear && !rows) || indices->dims[0] != values->dims[0] ||
        (rows && (rank == 0 || (uint64_t)indices->dims[1] != rank)))
        return err_set(ERR_INVALID, "its indices do not go with its values and shape");
    return ERR_OK;
}

static void clear(const Tensor *t) {
    Str    *at = t->data;
    int64_t n = tensor_count(t);
    for (int64_t i = 0; t->dtype == DT_STR && i < n; i++) at[i] = (Str){"", 0};
}

static Err scatter(const Tensor *values, const Tensor *indices, Tensor *out) {
    size_t      width = dtype_size(out->dtype);
    const char *from = values->data;
    for (int64_t i = 0, at = 0; i < values->dims[0]; i++) {
        TRY(place(out, indices, i, &at));
        memcpy((char *)out->data + (size_t)at * width, from + (size_t)i * width, width);
    }
    return ERR_OK;
}

static Err make_dense(OnnxStore *s, const Onnx__SparseTensorProto *p, Tensor *out) {
    Tensor values, indices;
    size_t bytes = 0;
    TRY(onnx_tensor(s, p->values, &values));
    TRY(onnx_tensor(s, p->indices, &indices));
    TRY(check_parts(&values, &indices, p->n_dims));
    TRY(dense_type(s, p, values.dtype, out, &bytes));
    clear(out);
    return scatter(&values, &indices, out);
}

Err onnx_tensor_sparse(OnnxStore *s, const Onnx__SparseTensorProto *p, Tensor *out) {
    if (p->values == NULL || p->indices == NULL)
        return err_set(ERR_INVALID, "a sparse tensor lacks its values or indices");
    Err e = make_dense(s, p, out);
    return e == ERR_OK
               ? e
               : err_add(e, "sparse tensor '%s'", p->values->name != NULL ? p->values->name : "");
}
