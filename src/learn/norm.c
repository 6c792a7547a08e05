#include "learn/norm.h"

#include <math.h>

static const float EPSILON = 1e-5f;

void norm_init(Norm l, float *w) {
    for (uint32_t i = 0; i < l.n; i++) {
        w[i] = 1;
        w[l.n + i] = 0;
    }
}

// The cache has x' [rows][n], then 1 / deviation [rows].
static float row_forward(size_t n, const float *x, float *flat) {
    double mean = 0, spread = 0;
    for (size_t i = 0; i < n; i++) mean += (double)x[i];
    mean /= (double)(n > 0 ? n : 1);
    for (size_t i = 0; i < n; i++) {
        double off = (double)x[i] - mean;
        spread += off * off;
    }
    float scale = (float)(1 / sqrt(spread / (double)(n > 0 ? n : 1) + (double)EPSILON));
    for (size_t i = 0; i < n; i++) flat[i] = (x[i] - (float)mean) * scale;
    return scale;
}

void norm_forward(Norm l, const float *w, size_t rows, const float *x, float *y, float *cache) {
    float *scale = cache + rows * l.n;
    for (size_t r = 0; r < rows; r++) {
        float *flat = cache + r * l.n;
        scale[r] = row_forward(l.n, x + r * l.n, flat);
        for (uint32_t i = 0; i < l.n; i++) y[r * l.n + i] = w[i] * flat[i] + w[l.n + i];
    }
}

// With d = gain dy: dx = scale (d - mean d - x' mean(d x')).
static void row_backward(size_t n, const float *gain, const float *dy, const float *flat,
                         float scale, float *dx) {
    float mean = 0, along = 0, share = 1.0f / (float)(n > 0 ? n : 1);
    for (size_t i = 0; i < n; i++) {
        mean += gain[i] * dy[i];
        along += gain[i] * dy[i] * flat[i];
    }
    for (size_t i = 0; i < n; i++)
        dx[i] = scale * (gain[i] * dy[i] - share * (mean + flat[i] * along));
}

void norm_backward(Norm l, const float *w, float *gw, size_t rows, const float *dy, float *dx,
                   const float *cache) {
    const float *scale = cache + rows * l.n;
    for (size_t r = 0; r < rows; r++) {
        const float *flat = cache + r * l.n, *d = dy + r * l.n;
        for (uint32_t i = 0; gw != NULL && i < l.n; i++) {
            gw[i] += d[i] * flat[i];
            gw[l.n + i] += d[i];
        }
        if (dx != NULL) row_backward(l.n, w, d, flat, scale[r], dx + r * l.n);
    }
}
