#include "kernel/ref_cumsum.h"

#include "kernel/fibers.h"
#include "kernel/wide.h"

// Integers wrap, so signed ones can be summed as unsigned ones are.
static void sum_block(Wide w, bool exclusive, WideBlock *b, int64_t n, double *real,
                      uint64_t *whole) {
    for (int64_t i = 0; i < n; i++) {
        if (w == WIDE_F64) {
            double before = *real;
            *real += b->f64[i];
            b->f64[i] = exclusive ? before : *real;
        } else {
            uint64_t before = *whole;
            *whole += b->u64[i];
            b->u64[i] = exclusive ? before : *whole;
        }
    }
}

void ref_cumsum(bool exclusive, bool reverse, int32_t axis, const Tensor *x, Tensor *y) {
    bool along[TENSOR_MAX_RANK] = {false};
    along[axis] = true;
    const Fibers  f = fibers_of(x, along);
    const Wide    w = dtype_is_float(x->dtype) ? WIDE_F64 : WIDE_U64;
    const int64_t stride = reverse ? -f.stride : f.stride;
    WideBlock     b;
    if (f.n == 0) return;
    for (Walk k = f.kept; walk_more(&k); walk_next(&k)) {
        const int64_t first = k.off[0] + (reverse ? (f.n - 1) * f.stride : 0);
        double        real = 0;
        uint64_t      whole = 0;
        for (int64_t i = 0, n; i < f.n; i += n) {
            n = f.n - i < WIDE_BLOCK ? f.n - i : WIDE_BLOCK;
            wide_load(w, x, first + i * stride, stride, n, &b);
            sum_block(w, exclusive, &b, n, &real, &whole);
            wide_store(w, &b, y, first + i * stride, stride, n);
        }
    }
}
