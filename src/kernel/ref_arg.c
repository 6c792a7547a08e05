#include "kernel/ref_arg.h"

#include "kernel/fibers.h"
#include "kernel/wide.h"

// Whether v takes the place of the best so far.
#define BEATS(v, best, largest, last)                                                              \
    ((largest) ? (v) > (best) : (v) < (best)) || ((last) && (v) == (best)) ||                      \
        ((v) != (v) && (best) == (best))
#define BEST(T, member)                                                                            \
    static int64_t best_##member(bool largest, bool last, const Fibers *f, const Tensor *x,        \
                                 int64_t from) {                                                   \
        int64_t   at = 0;                                                                          \
        T         best = 0;                                                                        \
        WideBlock b;                                                                               \
        for (int64_t i = 0, n; i < f->n; i += n) {                                                 \
            n = f->n - i < WIDE_BLOCK ? f->n - i : WIDE_BLOCK;                                     \
            wide_load(wide_sum_of(x->dtype), x, from + i * f->stride, f->stride, n, &b);           \
            for (int64_t j = 0; j < n; j++)                                                        \
                if (i + j == 0 || BEATS(b.member[j], best, largest, last)) {                       \
                    best = b.member[j];                                                            \
                    at = i + j;                                                                    \
                }                                                                                  \
        }                                                                                          \
        return at;                                                                                 \
    }
BEST(double, f64)
BEST(int64_t, i64)
BEST(uint64_t, u64)

void ref_arg(bool largest, bool last, int32_t axis, const Tensor *x, Tensor *y) {
    bool along[TENSOR_MAX_RANK] = {false};
    along[axis] = true;
    const Fibers f = fibers_of(x, along);
    const Wide   w = wide_sum_of(x->dtype);
    int64_t     *to = y->data;
    for (Walk k = f.kept; walk_more(&k); walk_next(&k))
        to[k.at] = (w == WIDE_F64   ? best_f64
                    : w == WIDE_I64 ? best_i64
                                    : best_u64)(largest, last, &f, x, k.off[0]);
}
