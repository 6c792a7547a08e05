#include "kernel/rows.h"

#include "base/check.h"

static int64_t dim_of(const Tensor *t, int32_t rank, int32_t i) {
    int32_t own = i - (rank - t->rank);
    return own < 0 ? 1 : t->dims[own];
}

// Whether dimension i can join the row: no operand may turn from constant to contiguous or back.
static bool joins(const Tensor *out, const Tensor *const *in, int32_t n_in, int32_t i,
                  const int64_t *step) {
    for (int32_t k = 0; k < n_in; k++)
        if (step[k] >= 0 && step[k] != (dim_of(in[k], out->rank, i) != 1)) return false;
    return true;
}

static int32_t row_of(Rows *r, const Tensor *out, const Tensor *const *in, int32_t n_in) {
    int32_t i = out->rank;
    for (; i > 0; i--) {
        if (out->dims[i - 1] == 1) continue;
        if (!joins(out, in, n_in, i - 1, r->step)) break;
        for (int32_t k = 0; k < n_in; k++) r->step[k] = dim_of(in[k], out->rank, i - 1) != 1;
        r->n *= out->dims[i - 1];
    }
    return i;
}

Rows rows_of(const Tensor *out, const Tensor *const *in, int32_t n_in) {
    CHECK(n_in <= WALK_MAX);
    Rows    r = {.n = 1, .step = {-1, -1, -1, -1}};
    int32_t outer = row_of(&r, out, in, n_in);
    r.walk = walk_begin(outer, out->dims);
    for (int32_t k = 0; k < n_in; k++) {
        int64_t own[TENSOR_MAX_RANK] = {0}, stride[TENSOR_MAX_RANK] = {0};
        walk_contiguous(in[k]->rank, in[k]->dims, own);
        for (int32_t i = 0; i < in[k]->rank; i++) {
            int32_t to = out->rank - in[k]->rank + i;
            if (to < outer && in[k]->dims[i] != 1) stride[to] = own[i];
        }
        walk_strides(&r.walk, stride);
        if (r.step[k] < 0) r.step[k] = 0;
    }
    if (r.n == 0) r.walk.count = 0;
    return r;
}
