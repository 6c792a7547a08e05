#include "kernel/nd_iter.h"

#include "base/err.h"
#include "base/work_stop.h"

enum { LOOK_EVERY = 256 };  // elements between two looks at the stop flag

NdIter nd_iter_begin(int32_t rank, const int64_t *dims) {
    NdIter w = {.rank = rank, .count = 1};
    for (int32_t i = 0; i < rank; i++) {
        w.dims[i] = dims[i];
        w.count *= dims[i];
    }
    return w;
}

void nd_iter_strides(NdIter *w, const int64_t *stride) {
    CHECK(w->n < ND_ITER_MAX);
    for (int32_t i = 0; i < w->rank; i++) w->stride[w->n][i] = stride[i];
    w->n++;
}

void nd_iter_contiguous(int32_t rank, const int64_t *dims, int64_t *stride) {
    int64_t step = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= dims[i];
    }
}

void nd_iter_broadcast(NdIter *w, const Tensor *operand) {
    int64_t own[TENSOR_MAX_RANK] = {0}, stride[TENSOR_MAX_RANK] = {0};
    nd_iter_contiguous(operand->rank, operand->dims, own);
    for (int32_t i = 0; i < operand->rank; i++)
        if (operand->dims[i] != 1) stride[w->rank - operand->rank + i] = own[i];
    nd_iter_strides(w, stride);
}

NdIter nd_iter_along(const Tensor *indices, const Tensor *of, int32_t axis, int64_t *step) {
    int64_t stride[TENSOR_MAX_RANK] = {0};
    nd_iter_contiguous(of->rank, of->dims, stride);
    *step = stride[axis];
    stride[axis] = 0;
    NdIter w = nd_iter_begin(indices->rank, indices->dims);
    nd_iter_strides(&w, stride);
    return w;
}

void nd_iter_next(NdIter *w) {
    w->at++;
    if ((w->at & (LOOK_EVERY - 1)) == 0 && work_stopped()) {
        w->at = w->count;  // the offsets stay valid
        return;
    }
    for (int32_t i = w->rank - 1; i >= 0; i--) {
        for (int32_t k = 0; k < w->n; k++) w->off[k] += w->stride[k][i];
        if (++w->index[i] < w->dims[i]) return;
        w->index[i] = 0;
        for (int32_t k = 0; k < w->n; k++) w->off[k] -= w->stride[k][i] * w->dims[i];
    }
}

// First dimension of the innermost run: the tensor is dense, so adjacent chosen dimensions that end
// with the last chosen one form one strided run.
static int32_t first_of_run(int32_t rank, const bool *along) {
    int32_t i = rank;
    while (i > 0 && !along[i - 1]) i--;
    while (i > 0 && along[i - 1]) i--;
    return i;
}

AxisIter axis_iter_of(const Tensor *x, const bool along[TENSOR_MAX_RANK]) {
    AxisIter f = {.n = 1, .length = 1};
    int64_t  own[TENSOR_MAX_RANK] = {0}, kept[2][TENSOR_MAX_RANK], runs[2][TENSOR_MAX_RANK];
    int32_t  n_kept = 0, n_runs = 0, first = first_of_run(x->rank, along);
    nd_iter_contiguous(x->rank, x->dims, own);
    for (int32_t i = 0; i < x->rank; i++) {
        if (!along[i]) {
            kept[0][n_kept] = x->dims[i];
            kept[1][n_kept++] = own[i];
            continue;
        }
        f.length *= x->dims[i];
        if (i >= first) {
            f.n *= x->dims[i];
            f.stride = own[i];
        } else {
            runs[0][n_runs] = x->dims[i];
            runs[1][n_runs++] = own[i];
        }
    }
    f.kept = nd_iter_begin(n_kept, kept[0]);
    nd_iter_strides(&f.kept, kept[1]);
    f.runs = nd_iter_begin(n_runs, runs[0]);
    nd_iter_strides(&f.runs, runs[1]);
    if (f.n == 0) f.runs.count = 0;
    return f;
}

static int64_t dim_of(const Tensor *t, int32_t rank, int32_t i) {
    int32_t own = i - (rank - t->rank);
    return own < 0 ? 1 : t->dims[own];
}

// Whether dimension i can join the row: each operand must stay contiguous or stay constant.
static bool joins(const Tensor *out, const Tensor *const *in, int32_t n_in, int32_t i,
                  const int64_t *step) {
    for (int32_t k = 0; k < n_in; k++)
        if (step[k] >= 0 && step[k] != (dim_of(in[k], out->rank, i) != 1)) return false;
    return true;
}

static int32_t row_of(BroadcastIter *r, const Tensor *out, const Tensor *const *in, int32_t n_in) {
    int32_t i = out->rank;
    for (; i > 0; i--) {
        if (out->dims[i - 1] == 1) continue;
        if (!joins(out, in, n_in, i - 1, r->step)) break;
        for (int32_t k = 0; k < n_in; k++) r->step[k] = dim_of(in[k], out->rank, i - 1) != 1;
        r->n *= out->dims[i - 1];
    }
    return i;
}

BroadcastIter broadcast_iter_of(const Tensor *out, const Tensor *const *in, int32_t n_in) {
    CHECK(n_in <= ND_ITER_MAX);
    BroadcastIter r = {.n = 1, .step = {-1, -1, -1, -1}};
    int32_t       outer = row_of(&r, out, in, n_in);
    r.rows = nd_iter_begin(outer, out->dims);
    for (int32_t k = 0; k < n_in; k++) {
        int64_t own[TENSOR_MAX_RANK] = {0}, stride[TENSOR_MAX_RANK] = {0};
        nd_iter_contiguous(in[k]->rank, in[k]->dims, own);
        for (int32_t i = 0; i < in[k]->rank; i++) {
            int32_t to = out->rank - in[k]->rank + i;
            if (to < outer && in[k]->dims[i] != 1) stride[to] = own[i];
        }
        nd_iter_strides(&r.rows, stride);
        if (r.step[k] < 0) r.step[k] = 0;
    }
    if (r.n == 0) r.rows.count = 0;
    return r;
}
