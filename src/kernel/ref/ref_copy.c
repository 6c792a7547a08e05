#include "kernel/ref/ref_copy.h"

#include <inttypes.h>
#include <string.h>

#include "base/tensor.h"
#include "base/work_stop.h"
#include "kernel/nd_iter.h"

// Element sizes with a specialised loop.
#define SIZES X(1) X(2) X(4) X(8) X(16)

RefStrided ref_strided(const Tensor *t) {
    RefStrided s = {.data = t->data};
    nd_iter_contiguous(t->rank, t->dims, s.stride);
    return s;
}

// Copies n elements; steps in bytes. A constant size makes each memcpy one instruction.
static void copy_piece(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n,
                       size_t size) {
    switch (size) {
#define X(bytes)                                                                                   \
    case bytes:                                                                                    \
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, bytes);     \
        return;
        SIZES;
#undef X
    default:
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, size);
    }
}

static void copy_line(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n,
                      size_t size) {
    if (to_step == (int64_t)size && from_step == to_step) {
        work_copy(to, from, (size_t)n * size);
        return;
    }
    for (int64_t i = 0, part; i < n && !work_stopped(); i += part) {
        part = n - i < WORK_BLOCK ? n - i : WORK_BLOCK;
        copy_piece(to + i * to_step, to_step, from + i * from_step, from_step, part, size);
    }
}

// Merges the last dimensions while both sides are contiguous across them.
static int32_t join_dims(int32_t rank, int64_t *dims, RefStrided *a, RefStrided *b) {
    while (rank > 1 && a->stride[rank - 2] == a->stride[rank - 1] * dims[rank - 1] &&
           b->stride[rank - 2] == b->stride[rank - 1] * dims[rank - 1]) {
        dims[rank - 2] *= dims[rank - 1];
        a->stride[rank - 2] = a->stride[rank - 1];
        b->stride[rank - 2] = b->stride[rank - 1];
        rank--;
    }
    return rank;
}

void ref_copy(int32_t rank, const int64_t *dims, size_t size, RefStrided to, RefStrided from) {
    int64_t own[TENSOR_MAX_RANK] = {1}, bytes = (int64_t)size;
    for (int32_t i = 0; i < rank; i++)
        if ((own[i] = dims[i]) == 0) return;
    int32_t last = rank > 0 ? join_dims(rank, own, &to, &from) - 1 : 0;
    NdIter  w = nd_iter_begin(last, own);
    nd_iter_strides(&w, to.stride);
    nd_iter_strides(&w, from.stride);
    for (; nd_iter_more(&w); nd_iter_next(&w))
        copy_line((char *)to.data + (to.start + w.off[0]) * bytes, to.stride[last] * bytes,
                  (const char *)from.data + (from.start + w.off[1]) * bytes,
                  from.stride[last] * bytes, own[last], size);
}

// Part of one line of ref_take. from is NULL if an outer pick is negative.
static void take_piece(char *to, const char *from, const int64_t *pick, const void *fill, int64_t n,
                       size_t size) {
    switch (size) {
#define X(bytes)                                                                                   \
    case bytes:                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                            \
            memcpy(to + i * bytes, from != NULL && pick[i] >= 0 ? from + pick[i] * bytes : fill,   \
                   bytes);                                                                         \
        return;
        SIZES;
#undef X
    default: break;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * (int64_t)size,
               from != NULL && pick[i] >= 0 ? from + pick[i] * (int64_t)size : fill, size);
}

static void take_line(char *to, const char *from, const int64_t *pick, const void *fill, int64_t n,
                      size_t size) {
    for (int64_t i = 0, part; i < n && !work_stopped(); i += part) {
        part = n - i < WORK_BLOCK ? n - i : WORK_BLOCK;
        take_piece(to + i * (int64_t)size, from, pick + i, fill, part, size);
    }
}

void ref_take(const Tensor *x, int64_t *const *pick, const void *fill, Tensor *y) {
    int64_t stride[TENSOR_MAX_RANK] = {0}, size = (int64_t)dtype_size(x->dtype);
    if (y->rank == 0) {
        memcpy(y->data, x->data, (size_t)size);
        return;
    }
    int32_t last = y->rank - 1;
    nd_iter_contiguous(x->rank, x->dims, stride);
    if (y->dims[last] == 0) return;
    for (NdIter w = nd_iter_begin(last, y->dims); nd_iter_more(&w); nd_iter_next(&w)) {
        int64_t at = 0;
        bool    inside = true;
        for (int32_t i = 0; i < last; i++) {
            int64_t p = pick[i][w.index[i]];
            if (p < 0) inside = false;
            at += p * stride[i];
        }
        take_line((char *)y->data + w.at * y->dims[last] * size,
                  inside ? (const char *)x->data + at * size : NULL, pick[last], fill,
                  y->dims[last], (size_t)size);
    }
}

static int64_t reflect(int64_t i, int64_t n) {
    if (n == 1) return 0;
    int64_t period = 2 * (n - 1), r = i % period;
    if (r < 0) r += period;
    return r < n ? r : period - r;
}

static int64_t wrap(int64_t i, int64_t n) {
    int64_t r = i % n;
    return r < 0 ? r + n : r;
}

void ref_take_pad(RefPad mode, RefPadAxis a, int64_t *pick, int64_t n) {
    for (int64_t i = 0; i < n && !work_stopped(); i++) {
        int64_t at = i - a.begin;
        bool    inside = at >= 0 && at < a.kept;
        if (!inside && mode == REF_PAD_CONSTANT) {
            pick[i] = -1;
            continue;
        }
        if (!inside && mode == REF_PAD_EDGE) at = at < 0 ? 0 : a.kept - 1;
        if (!inside && mode == REF_PAD_REFLECT) at = reflect(at, a.kept);
        if (!inside && mode == REF_PAD_WRAP) at = wrap(at, a.kept);
        pick[i] = at + a.drop;
    }
}

void ref_take_tile(int64_t dim, int64_t *pick, int64_t n) {
    WORK_EACH (i, n) pick[i] = i % dim;
}

Err ref_reverse(const Tensor *x, const Tensor *lens, bool batch_first, Tensor *y) {
    int64_t batch = x->dims[batch_first ? 0 : 1], time = x->dims[batch_first ? 1 : 0], inner = 1;
    for (int32_t i = 2; i < x->rank; i++) inner *= x->dims[i];
    int64_t bytes = inner * (int64_t)dtype_size(x->dtype);
    for (int64_t b = 0; b < batch && !work_stopped(); b++) {
        int64_t n = tensor_get_i64(lens, b);
        if (n < 0 || n > time)
            return err_set(ERR_INVALID,
                           "length %" PRId64 " of sequence %" PRId64 " is outside 0 to %" PRId64, n,
                           b, time);
        for (int64_t t = 0; t < time && bytes > 0 && !work_stopped(); t++) {
            int64_t s = t < n ? n - 1 - t : t;
            int64_t to = batch_first ? b * time + t : t * batch + b;
            int64_t from = batch_first ? b * time + s : s * batch + b;
            work_copy((char *)y->data + to * bytes, (const char *)x->data + from * bytes,
                      (size_t)bytes);
        }
    }
    return ERR_OK;
}

void ref_fill(const void *element, Tensor *y) {
    size_t size = dtype_size(y->dtype);
    WORK_EACH (i, tensor_count(y)) memcpy((char *)y->data + i * (int64_t)size, element, size);
}

void ref_eye(int64_t k, Tensor *y) {
    int64_t rows = y->dims[0], cols = y->dims[1];
    for (int64_t r = 0; r < rows && !work_stopped(); r++)
        WORK_EACH (i, cols)
            if (i - r == k) tensor_set(y, r * cols + i, 1);
}

void ref_range(const Tensor *start, const Tensor *delta, Tensor *y) {
    int64_t n = tensor_count(y);
    if (dtype_is_float(y->dtype)) {
        double a = tensor_get_f64(start, 0), d = tensor_get_f64(delta, 0);
        WORK_EACH (i, n) tensor_set(y, i, a + (double)i * d);
        return;
    }
    uint64_t at = (uint64_t)tensor_get_i64(start, 0), step = (uint64_t)tensor_get_i64(delta, 0);
    WORK_EACH (i, n) {
        switch (y->dtype) {
        case DT_I64: ((int64_t *)y->data)[i] = (int64_t)at; break;
        default: tensor_set(y, i, (double)(int64_t)at);
        }
        at += step;
    }
}

void ref_triangle(const Tensor *x, bool upper, int64_t k, Tensor *y) {
    int64_t rows = x->dims[x->rank - 2], cols = x->dims[x->rank - 1], count = tensor_count(x);
    int64_t size = (int64_t)dtype_size(x->dtype);
    WORK_EACH (i, count) {
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
    for (int64_t o = 0; o < h->outer && !work_stopped(); o++)
        WORK_EACH (i, h->inner) {
            int64_t at = tensor_get_i64(indices, o * h->inner + i);
            if (at < 0 && h->from_end) at += h->depth;
            if (at < 0 || at >= h->depth) continue;
            memcpy((char *)y->data + ((o * h->depth + at) * h->inner + i) * size, on, (size_t)size);
        }
}
