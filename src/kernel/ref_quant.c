#include "kernel/ref_quant.h"

#include <math.h>

#include "base/number.h"
#include "kernel/walk.h"

// The factor is a float, as runtimes have it: a tie there is a tie here.
void ref_requantize(const Tensor *sum, const Tensor *a_scale, const Tensor *b_scale,
                    const Tensor *y_scale, const Tensor *y_zero, Tensor *y) {
    Walk w = walk_begin(y->rank, y->dims);
    walk_broadcast(&w, a_scale);
    walk_broadcast(&w, b_scale);
    walk_broadcast(&w, y_scale);
    walk_broadcast(&w, y_zero);
    for (; walk_more(&w); walk_next(&w)) {
        float factor = (float)number_f64(a_scale, w.off[0]) * (float)number_f64(b_scale, w.off[1]) /
                       (float)number_f64(y_scale, w.off[2]);
        float  scaled = (float)number_f64(sum, w.at) * factor;
        double v = nearbyint((double)scaled) + number_f64(y_zero, w.off[3]);
        number_set(y, w.at, v);
    }
}
