#include "learn/float_vec.h"

#include <math.h>
#include <string.h>

#include "base/err.h"

FloatVec float_vec_new(Arena *a, size_t n) {
    return (FloatVec){arena_alloc(a, n, sizeof(float), 64), n};
}

FloatVec float_vec_part(FloatVec b, size_t from, size_t n) {
    CHECK(from <= b.n && n <= b.n - from);
    return (FloatVec){b.at + from, n};
}

void float_vec_zero(FloatVec b) { memset(b.at, 0, b.n * sizeof *b.at); }

void float_vec_copy(FloatVec to, FloatVec from) {
    CHECK(to.n == from.n);
    memcpy(to.at, from.at, to.n * sizeof *to.at);
}

void float_vec_blend(FloatVec to, FloatVec from, float tau) {
    CHECK(to.n == from.n);
    for (size_t i = 0; i < to.n; i++) to.at[i] += tau * (from.at[i] - to.at[i]);
}

void float_vec_add(FloatVec to, FloatVec from) {
    CHECK(to.n == from.n);
    for (size_t i = 0; i < to.n; i++) to.at[i] += from.at[i];
}

void float_vec_scale(FloatVec b, float by) {
    for (size_t i = 0; i < b.n; i++) b.at[i] *= by;
}

// Four interleaved sums, in the same order on every machine.
double float_vec_norm(FloatVec b) {
    double sum[4] = {0};
    for (size_t i = 0; i < b.n; i++) sum[i & 3] += (double)b.at[i] * (double)b.at[i];
    return sqrt((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

double float_vec_clip(FloatVec b, double max) {
    double norm = float_vec_norm(b);
    if (norm > max) float_vec_scale(b, (float)(max / norm));
    return norm;
}

bool float_vec_finite(FloatVec b) {
    for (size_t i = 0; i < b.n; i++)
        if (!isfinite(b.at[i])) return false;
    return true;
}
