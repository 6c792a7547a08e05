#include "kernel/ref/ref_gather.h"

#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/fp.h"
#include "base/work_stop.h"
#include "kernel/nd_iter.h"
#include "kernel/ref/ref_int.h"

// Element i of the indices, checked against dim; negative ones count from its end.
static Err index_at(const Tensor *indices, int64_t i, int64_t dim, int64_t *at) {
    int64_t v = indices->dtype == DT_I32 ? ((const int32_t *)indices->data)[i]
                                         : ((const int64_t *)indices->data)[i];
    if (v < -dim || v >= dim)
        return err_set(ERR_INVALID, "index %" PRId64 " is outside a dimension of %" PRId64, v, dim);
    *at = v < 0 ? v + dim : v;
    return ERR_OK;
}

// Tuple i of the indices (their last dimension holds the tuples): the element where x[tuple]
// starts. dims and stride start at the first dimension the tuple indexes.
static Err index_tuple(const Tensor *indices, int64_t i, const int64_t *dims, const int64_t *stride,
                       int64_t *at) {
    int64_t parts = indices->dims[indices->rank - 1];
    *at = 0;
    for (int64_t k = 0; k < parts; k++) {
        int64_t p = 0;
        TRY(index_at(indices, i * parts + k, dims[k], &p));
        *at += p * stride[k];
    }
    return ERR_OK;
}

Err ref_gather(const Tensor *x, const Tensor *indices, int32_t axis, Tensor *y) {
    int64_t outer = ref_product(x->dims, axis), dim = x->dims[axis], n = tensor_count(indices);
    int64_t bytes =
        ref_product(x->dims + axis + 1, x->rank - axis - 1) * (int64_t)dtype_size(x->dtype);
    for (int64_t o = 0; o < outer && !work_stopped(); o++)
        WORK_EACH (i, n) {
            int64_t at = 0;
            TRY(index_at(indices, i, dim, &at));
            if (bytes > 0)
                work_copy((char *)y->data + (o * n + i) * bytes,
                          (const char *)x->data + (o * dim + at) * bytes, (size_t)bytes);
        }
    return ERR_OK;
}

// The rows of indices along their last dimension. Index v of element j of row rows.at selects
// element rows.off[0] + j * step + v * along.
typedef struct IndexRows {
    NdIter  rows;
    int64_t n, step, along;
} IndexRows;

static IndexRows index_rows(const Tensor *indices, const Tensor *of, int32_t axis) {
    Tensor    first = *indices;
    IndexRows r = {.n = 1};
    if (first.rank > 0) {
        r.n = first.dims[first.rank - 1];
        r.step = axis != first.rank - 1;
        first.dims[first.rank - 1] = r.n > 0;
    }
    r.rows = nd_iter_along(&first, of, axis, &r.along);
    return r;
}

Err ref_gather_elements(const Tensor *x, const Tensor *indices, int32_t axis, Tensor *y) {
    int64_t   size = (int64_t)dtype_size(x->dtype);
    IndexRows r = index_rows(indices, x, axis);
    for (; nd_iter_more(&r.rows); nd_iter_next(&r.rows)) {
        char       *to = (char *)y->data + r.rows.at * r.n * size;
        const char *from = (const char *)x->data + r.rows.off[0] * size;
        WORK_EACH (j, r.n) {
            int64_t at = 0;
            TRY(index_at(indices, r.rows.at * r.n + j, x->dims[axis], &at));
            const char *element = from + (j * r.step + at * r.along) * size;
            if (size == 4)
                memcpy(to + j * 4, element, 4);
            else
                memcpy(to + j * size, element, (size_t)size);
        }
    }
    return ERR_OK;
}

Err ref_gather_nd(const Tensor *x, const Tensor *indices, int32_t batch, Tensor *y) {
    int64_t stride[TENSOR_MAX_RANK] = {0}, size = (int64_t)dtype_size(x->dtype);
    int32_t last = indices->rank - 1, used = batch + (int32_t)indices->dims[last];
    int64_t batches = ref_product(x->dims, batch),
            each = ref_product(x->dims + batch, x->rank - batch);
    int64_t tuples = ref_product(indices->dims + batch, last - batch);
    int64_t bytes = ref_product(x->dims + used, x->rank - used) * size;
    nd_iter_contiguous(x->rank, x->dims, stride);
    for (int64_t i = 0; i < batches * tuples && !work_stopped(); i++) {
        int64_t at = 0;
        TRY(index_tuple(indices, i, x->dims + batch, stride + batch, &at));
        if (bytes > 0)
            work_copy((char *)y->data + i * bytes,
                      (const char *)x->data + (i / tuples * each + at) * size, (size_t)bytes);
    }
    return ERR_OK;
}

// Per type: load and store conversions. Integers wrap, so they are added as unsigned.
#define SAME(v) (v)
#define TYPES                                                                                      \
    X(U8, uint8_t, uint8_t, uint64_t, SAME, (uint8_t))                                             \
    X(I8, int8_t, int8_t, uint64_t, SAME, (int8_t))                                                \
    X(U16, uint16_t, uint16_t, uint64_t, SAME, (uint16_t))                                         \
    X(I16, int16_t, int16_t, uint64_t, SAME, (int16_t))                                            \
    X(U32, uint32_t, uint32_t, uint64_t, SAME, (uint32_t))                                         \
    X(I32, int32_t, int32_t, uint64_t, SAME, (int32_t))                                            \
    X(U64, uint64_t, uint64_t, uint64_t, SAME, (uint64_t))                                         \
    X(I64, int64_t, int64_t, uint64_t, SAME, (int64_t))                                            \
    X(F32, float, float, float, SAME, SAME)                                                        \
    X(F64, double, double, double, SAME, SAME)                                                     \
    X(F16, uint16_t, float, float, half_to_f32, half_from_f32)                                     \
    X(BF16, uint16_t, float, float, bf16_to_f32, bf16_from_f32)

// T: stored type, C: compared type, A: type of sums and products. NaN wins comparisons.
#define X(id, T, C, A, get, put)                                                                   \
    static void combine_##id(RefScatter how, void *y, const void *u) {                             \
        T *to = y, raw;                                                                            \
        memcpy(&raw, u, sizeof raw);                                                               \
        C a = get(*to), b = get(raw);                                                              \
        switch (how) {                                                                             \
        case REF_SCATTER_SET: *to = raw; return;                                                   \
        case REF_SCATTER_ADD: *to = put((A)a + (A)b); return;                                      \
        case REF_SCATTER_MUL: *to = put((A)a * (A)b); return;                                      \
        case REF_SCATTER_MAX: *to = a > b || a != a ? *to : raw; return;                           \
        case REF_SCATTER_MIN: *to = a < b || a != a ? *to : raw; return;                           \
        }                                                                                          \
    }
TYPES
#undef X

typedef void CombineFn(RefScatter how, void *y, const void *u);

static CombineFn *combine_of(DType t) {
    switch (t) {
#define X(id, T, C, A, get, put)                                                                   \
    case DT_##id: return combine_##id;
        TYPES;
#undef X
    default: return NULL;
    }
}

static void combine(RefScatter how, DType t, void *y, const void *u, int64_t n) {
    size_t size = dtype_size(t);
    if (how == REF_SCATTER_ADD && t == DT_F32) {
        WORK_EACH (i, n) ((float *)y)[i] += ((const float *)u)[i];
        return;
    }
    if (how == REF_SCATTER_SET) {
        if (n > 0) memcpy(y, u, (size_t)n * size);
        return;
    }
    CombineFn *one = combine_of(t);
    CHECK(one != NULL);
    for (int64_t i = 0; i < n && !work_stopped(); i++)
        one(how, (char *)y + i * (int64_t)size, (const char *)u + i * (int64_t)size);
}

Err ref_scatter_elements(RefScatter how, const Tensor *indices, const Tensor *updates, int32_t axis,
                         Tensor *y) {
    int64_t   size = (int64_t)dtype_size(y->dtype);
    IndexRows r = index_rows(indices, y, axis);
    for (; nd_iter_more(&r.rows); nd_iter_next(&r.rows)) {
        const char *from = (const char *)updates->data + r.rows.at * r.n * size;
        char       *to = (char *)y->data + r.rows.off[0] * size;
        WORK_EACH (j, r.n) {
            int64_t at = 0;
            TRY(index_at(indices, r.rows.at * r.n + j, y->dims[axis], &at));
            combine(how, y->dtype, to + (j * r.step + at * r.along) * size, from + j * size, 1);
        }
    }
    return ERR_OK;
}

Err ref_scatter_nd(RefScatter how, const Tensor *indices, const Tensor *updates, Tensor *y) {
    int64_t stride[TENSOR_MAX_RANK] = {0}, size = (int64_t)dtype_size(y->dtype);
    int32_t last = indices->rank - 1, used = (int32_t)indices->dims[last];
    int64_t tuples = ref_product(indices->dims, last);
    int64_t each = ref_product(y->dims + used, y->rank - used);
    nd_iter_contiguous(y->rank, y->dims, stride);
    for (int64_t i = 0; i < tuples && !work_stopped(); i++) {
        int64_t at = 0;
        TRY(index_tuple(indices, i, y->dims, stride, &at));
        combine(how, y->dtype, (char *)y->data + at * size,
                (const char *)updates->data + i * each * size, each);
    }
    return ERR_OK;
}
