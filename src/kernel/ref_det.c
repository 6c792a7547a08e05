#include "kernel/ref_det.h"

#include <math.h>

#include "base/number.h"

static void swap_rows(double *m, int64_t n, int64_t a, int64_t b) {
    for (int64_t i = 0; i < n; i++) {
        double keep = m[a * n + i];
        m[a * n + i] = m[b * n + i];
        m[b * n + i] = keep;
    }
}

// Gauss's elimination; the largest of a column is its pivot.
static double determinant(double *m, int64_t n) {
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(m[i * n + k]) > fabs(m[pivot * n + k])) pivot = i;
        if (pivot != k) {
            swap_rows(m, n, pivot, k);
            det = -det;
        }
        det *= m[k * n + k];
        if (m[k * n + k] == 0) return det;
        for (int64_t i = k + 1; i < n; i++) {
            double factor = m[i * n + k] / m[k * n + k];
            for (int64_t j = k; j < n; j++) m[i * n + j] -= factor * m[k * n + j];
        }
    }
    return det;
}

void ref_det(const Tensor *x, Tensor *y, double *room) {
    const int64_t n = x->dims[x->rank - 1];
    for (int64_t k = 0; k < tensor_count(y); k++) {
        for (int64_t i = 0; i < n * n; i++) room[i] = number_f64(x, k * n * n + i);
        number_set(y, k, determinant(room, n));
    }
}
