#include "kernel/ref_random.h"

#include <math.h>

#include "base/number.h"

void ref_uniform(Rng r, double low, double high, Tensor *y) {
    for (int64_t i = 0; i < tensor_count(y); i++)
        number_set(y, i, low + (high - low) * rng_unit64(&r));
}

void ref_normal(Rng r, double mean, double scale, Tensor *y) {
    for (int64_t i = 0; i < tensor_count(y); i++) number_set(y, i, mean + scale * rng_normal(&r));
}

void ref_bernoulli(Rng r, const Tensor *probability, Tensor *y) {
    for (int64_t i = 0; i < tensor_count(y); i++)
        number_set(y, i, rng_unit64(&r) < number_f64(probability, i) ? 1 : 0);
}

// The class in whose share of the weights u in [0, 1) falls.
static int64_t class_at(const Tensor *t, int64_t row, double most, double total, double u) {
    int64_t classes = t->dims[1];
    double  left = u * total;
    for (int64_t k = 0; k < classes; k++) {
        left -= exp(number_f64(t, row * classes + k) - most);
        if (left < 0) return k;
    }
    return classes - 1;
}

void ref_multinomial(Rng r, const Tensor *log_weights, Tensor *y) {
    int64_t classes = log_weights->dims[1], samples = y->dims[1];
    for (int64_t b = 0; b < y->dims[0]; b++) {
        double most = -INFINITY, total = 0;
        for (int64_t k = 0; k < classes; k++)
            most = fmax(most, number_f64(log_weights, b * classes + k));
        for (int64_t k = 0; k < classes; k++)
            total += exp(number_f64(log_weights, b * classes + k) - most);
        for (int64_t s = 0; s < samples; s++)
            number_set(y, b * samples + s,
                       (double)class_at(log_weights, b, most, total, rng_unit64(&r)));
    }
}
