#include "learn/adam.h"

#include <math.h>

#include "base/err.h"
#include "learn/multiversion.h"

MULTIVERSION_BODY adam_all_body(size_t n, const float *restrict k, float *restrict w,
                                const float *restrict g, float *restrict m, float *restrict v) {
    for (size_t i = 0; i < n; i++) {
        m[i] = k[0] * m[i] + k[1] * g[i];
        v[i] = k[2] * v[i] + k[3] * g[i] * g[i];
        w[i] = k[4] * w[i] - k[5] * m[i] / (__builtin_sqrtf(v[i]) * k[6] + k[7]);
    }
}
MULTIVERSION(static, adam_all,
             (size_t n, const float *k, float *w, const float *g, float *m, float *v),
             (n, k, w, g, m, v))

// Not pow(): its last bit differs between machines.
static double power(double base, uint64_t n) {
    double result = 1;
    while (n > 0) {
        if (n & 1) result *= base;
        base *= base;
        n >>= 1;
    }
    return result;
}

void adam_step(const AdamOptions *o, uint64_t step, FloatVec w, FloatVec gradient, FloatVec m,
               FloatVec v) {
    CHECK(step > 0 && w.n == gradient.n && w.n == m.n && w.n == v.n);
    double bias1 = 1 - power((double)o->beta1, step);
    double bias2 = 1 - power((double)o->beta2, step);
    float  k[] = {o->beta1,
                  1 - o->beta1,
                  o->beta2,
                  1 - o->beta2,
                  1 - o->rate * o->decay,
                  (float)((double)o->rate / bias1),
                  (float)(1 / sqrt(bias2)),
                  o->epsilon};
    adam_all(w.n, k, w.at, gradient.at, m.at, v.at);
}
