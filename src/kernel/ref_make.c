#include "kernel/ref_make.h"

#include <string.h>

#include "base/number.h"

void ref_fill(const void *element, Tensor *y) {
    size_t size = dtype_size(y->dtype);
    for (int64_t i = 0; i < tensor_count(y); i++)
        memcpy((char *)y->data + i * (int64_t)size, element, size);
}

void ref_eye(int64_t k, Tensor *y) {
    int64_t rows = y->dims[0], cols = y->dims[1];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < cols; i++)
            if (i - r == k) number_set(y, r * cols + i, 1);
}

void ref_range(const Tensor *start, const Tensor *delta, Tensor *y) {
    int64_t n = tensor_count(y);
    if (dtype_is_float(y->dtype)) {
        double a = number_f64(start, 0), d = number_f64(delta, 0);
        for (int64_t i = 0; i < n; i++) number_set(y, i, a + (double)i * d);
        return;
    }
    uint64_t at = (uint64_t)number_i64(start, 0), step = (uint64_t)number_i64(delta, 0);
    for (int64_t i = 0; i < n; i++, at += step) {
        switch (y->dtype) {
        case DT_I64: ((int64_t *)y->data)[i] = (int64_t)at; break;
        default: number_set(y, i, (double)(int64_t)at);
        }
    }
}

void ref_triangle(const Tensor *x, bool upper, int64_t k, Tensor *y) {
    int64_t rows = x->dims[x->rank - 2], cols = x->dims[x->rank - 1], count = tensor_count(x);
    int64_t size = (int64_t)dtype_size(x->dtype);
    for (int64_t i = 0; i < count; i++) {
        int64_t row = i / cols % rows, col = i % cols;
        bool    keep = upper ? col - row >= k : col - row <= k;
        if (keep)
            memcpy((char *)y->data + i * size, (const char *)x->data + i * size, (size_t)size);
    }
}

void ref_one_hot(const RefOneHot *h, const Tensor *indices, const Tensor *values, Tensor *y) {
    int64_t     size = (int64_t)dtype_size(y->dtype);
    const char *off = values->data, *on = off + size;
    ref_fill(off, y);
    for (int64_t o = 0; o < h->outer; o++)
        for (int64_t i = 0; i < h->inner; i++) {
            int64_t at = number_i64(indices, o * h->inner + i);
            if (at < 0 && h->from_end) at += h->depth;
            if (at < 0 || at >= h->depth) continue;
            memcpy((char *)y->data + ((o * h->depth + at) * h->inner + i) * size, on, (size_t)size);
        }
}
