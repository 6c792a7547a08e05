#include "kernel/walk.h"

#include "base/check.h"

Walk walk_begin(int32_t rank, const int64_t *dims) {
    Walk w = {.rank = rank, .count = 1};
    for (int32_t i = 0; i < rank; i++) {
        w.dims[i] = dims[i];
        w.count *= dims[i];
    }
    return w;
}

void walk_strides(Walk *w, const int64_t *stride) {
    CHECK(w->n < WALK_MAX);
    for (int32_t i = 0; i < w->rank; i++) w->stride[w->n][i] = stride[i];
    w->n++;
}

void walk_contiguous(int32_t rank, const int64_t *dims, int64_t *stride) {
    int64_t step = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= dims[i];
    }
}

void walk_broadcast(Walk *w, const Tensor *operand) {
    int64_t own[TENSOR_MAX_RANK] = {0}, stride[TENSOR_MAX_RANK] = {0};
    walk_contiguous(operand->rank, operand->dims, own);
    for (int32_t i = 0; i < operand->rank; i++)
        if (operand->dims[i] != 1) stride[w->rank - operand->rank + i] = own[i];
    walk_strides(w, stride);
}

Walk walk_along(const Tensor *indices, const Tensor *of, int32_t axis, int64_t *step) {
    int64_t stride[TENSOR_MAX_RANK] = {0};
    walk_contiguous(of->rank, of->dims, stride);
    *step = stride[axis];
    stride[axis] = 0;
    Walk w = walk_begin(indices->rank, indices->dims);
    walk_strides(&w, stride);
    return w;
}

void walk_next(Walk *w) {
    w->at++;
    for (int32_t i = w->rank - 1; i >= 0; i--) {
        for (int32_t k = 0; k < w->n; k++) w->off[k] += w->stride[k][i];
        if (++w->index[i] < w->dims[i]) return;
        w->index[i] = 0;
        for (int32_t k = 0; k < w->n; k++) w->off[k] -= w->stride[k][i] * w->dims[i];
    }
}
