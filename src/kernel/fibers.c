#include "kernel/fibers.h"

// Chosen neighbours from the last chosen dimension down make one run, for the tensor is dense.
static int32_t first_of_run(int32_t rank, const bool *along) {
    int32_t i = rank;
    while (i > 0 && !along[i - 1]) i--;
    while (i > 0 && along[i - 1]) i--;
    return i;
}

Fibers fibers_of(const Tensor *x, const bool along[TENSOR_MAX_RANK]) {
    Fibers  f = {.n = 1, .length = 1};
    int64_t own[TENSOR_MAX_RANK] = {0}, kept[2][TENSOR_MAX_RANK], runs[2][TENSOR_MAX_RANK];
    int32_t n_kept = 0, n_runs = 0, first = first_of_run(x->rank, along);
    walk_contiguous(x->rank, x->dims, own);
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
    f.kept = walk_begin(n_kept, kept[0]);
    walk_strides(&f.kept, kept[1]);
    f.runs = walk_begin(n_runs, runs[0]);
    walk_strides(&f.runs, runs[1]);
    if (f.n == 0) f.runs.count = 0;
    return f;
}
