#include "learn/noise.h"

#include "learn/activation.h"

// Marsaglia's polar method.
float noise_normal(Rng *rng) {
    float u, s;
    do {
        u = 2 * rng_unit(rng) - 1;
        float v = 2 * rng_unit(rng) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s < 1e-30f);
    return u * __builtin_sqrtf(-2 * repro_log(s) / s);
}

void noise_add(Rng *rng, float sigma, size_t n, float *actions) {
    for (size_t i = 0; i < n; i++) {
        float a = actions[i] + sigma * noise_normal(rng);
        actions[i] = a > 1 ? 1 : a < -1 ? -1 : a;
    }
}
