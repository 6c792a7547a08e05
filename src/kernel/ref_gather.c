#include "kernel/ref_gather.h"

#include <inttypes.h>
#include <string.h>

#include "kernel/ref_gather_at.h"
#include "kernel/walk.h"

Err ref_gather_at(const Tensor *indices, int64_t i, int64_t dim, int64_t *at) {
    int64_t v = indices->dtype == DT_I32 ? ((const int32_t *)indices->data)[i]
                                         : ((const int64_t *)indices->data)[i];
    if (v < -dim || v >= dim)
        return err_set(ERR_INVALID, "index %" PRId64 " is outside a dimension of %" PRId64, v, dim);
    *at = v < 0 ? v + dim : v;
    return ERR_OK;
}

Err ref_gather_tuple(const Tensor *indices, int64_t i, const int64_t *dims, const int64_t *stride,
                     int64_t *at) {
    int64_t parts = indices->dims[indices->rank - 1];
    *at = 0;
    for (int64_t k = 0; k < parts; k++) {
        int64_t p = 0;
        TRY(ref_gather_at(indices, i * parts + k, dims[k], &p));
        *at += p * stride[k];
    }
    return ERR_OK;
}

static int64_t product(const int64_t *dims, int32_t n) {
    int64_t p = 1;
    for (int32_t i = 0; i < n; i++) p *= dims[i];
    return p;
}

Err ref_gather(const Tensor *x, const Tensor *indices, int32_t axis, Tensor *y) {
    int64_t outer = product(x->dims, axis), dim = x->dims[axis], n = tensor_count(indices);
    int64_t bytes = product(x->dims + axis + 1, x->rank - axis - 1) * (int64_t)dtype_size(x->dtype);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < n; i++) {
            int64_t at = 0;
            TRY(ref_gather_at(indices, i, dim, &at));
            if (bytes > 0)
                memcpy((char *)y->data + (o * n + i) * bytes,
                       (const char *)x->data + (o * dim + at) * bytes, (size_t)bytes);
        }
    return ERR_OK;
}

Err ref_gather_elements(const Tensor *x, const Tensor *indices, int32_t axis, Tensor *y) {
    int64_t along = 0, size = (int64_t)dtype_size(x->dtype);
    for (Walk w = walk_along(indices, x, axis, &along); walk_more(&w); walk_next(&w)) {
        int64_t at = 0;
        TRY(ref_gather_at(indices, w.at, x->dims[axis], &at));
        memcpy((char *)y->data + w.at * size,
               (const char *)x->data + (w.off[0] + at * along) * size, (size_t)size);
    }
    return ERR_OK;
}

Err ref_gather_nd(const Tensor *x, const Tensor *indices, int32_t batch, Tensor *y) {
    int64_t stride[TENSOR_MAX_RANK] = {0}, size = (int64_t)dtype_size(x->dtype);
    int32_t last = indices->rank - 1, used = batch + (int32_t)indices->dims[last];
    int64_t batches = product(x->dims, batch), each = product(x->dims + batch, x->rank - batch);
    int64_t tuples = product(indices->dims + batch, last - batch);
    int64_t bytes = product(x->dims + used, x->rank - used) * size;
    walk_contiguous(x->rank, x->dims, stride);
    for (int64_t i = 0; i < batches * tuples; i++) {
        int64_t at = 0;
        TRY(ref_gather_tuple(indices, i, x->dims + batch, stride + batch, &at));
        if (bytes > 0)
            memcpy((char *)y->data + i * bytes,
                   (const char *)x->data + (i / tuples * each + at) * size, (size_t)bytes);
    }
    return ERR_OK;
}
