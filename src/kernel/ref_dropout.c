#include "kernel/ref_dropout.h"

#include "base/number.h"
#include "kernel/mersenne.h"

void ref_dropout(double ratio, uint32_t seed, const Tensor *x, Tensor *y, Tensor *mask) {
    Mersenne m;
    mersenne_seed(&m, seed);
    for (int64_t i = 0; i < tensor_count(x); i++) {
        const bool stays = ratio == 0 || mersenne_unit(&m) >= ratio;
        number_set(y, i, stays ? number_f64(x, i) / (1 - ratio) : 0);
        if (mask != NULL) number_set(mask, i, stays);
    }
}
