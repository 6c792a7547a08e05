#include "learn/dense.h"

#include <math.h>
#include <string.h>

void dense_init(Dense d, float *w, float gain, Rng *rng) {
    size_t n = (size_t)d.in * d.out;
    float  limit = gain * sqrtf(3.0f / (float)(d.in > 0 ? d.in : 1));
    for (size_t i = 0; i < n; i++) w[i] = limit * (2 * rng_unit(rng) - 1);
    memset(w + n, 0, d.out * sizeof *w);
}

void dense_forward(Dense d, const float *w, size_t rows, Mat x, MatOut y) {
    mat_set_rows(rows, d.out, w + (size_t)d.in * d.out, y);
    mat_mul(rows, d.out, d.in, x, mat(w, d.out), 1, y);
}

void dense_backward(Dense d, const float *w, float *gw, size_t rows, Mat x, Mat dy, MatOut dx) {
    if (gw != NULL) {
        mat_mul_tn(d.in, d.out, rows, x, dy, 1, mat_out(gw, d.out));
        mat_add_rows(rows, d.out, dy, gw + (size_t)d.in * d.out);
    }
    if (dx.at != NULL) mat_mul_nt(rows, d.in, d.out, dy, mat(w, d.out), 0, dx);
}
