#include "kernel/ref/ref_random.h"

#include <math.h>

#include "base/tensor.h"
#include "base/work_stop.h"

enum { MIDDLE = 397 };

void mersenne_seed(Mersenne *m, uint32_t seed) {
    m->word[0] = seed;
    for (uint32_t i = 1; i < MERSENNE_WORDS; i++)
        m->word[i] = 1812433253u * (m->word[i - 1] ^ m->word[i - 1] >> 30) + i;
    m->next = MERSENNE_WORDS;
}

static void generate(Mersenne *m) {
    for (int i = 0; i < MERSENNE_WORDS; i++) {
        uint32_t pair =
            (m->word[i] & 0x80000000u) | (m->word[(i + 1) % MERSENNE_WORDS] & 0x7FFFFFFFu);
        uint32_t twist = pair & 1 ? 0x9908B0DFu : 0;
        m->word[i] = m->word[(i + MIDDLE) % MERSENNE_WORDS] ^ pair >> 1 ^ twist;
    }
    m->next = 0;
}

static uint32_t draw(Mersenne *m) {
    if (m->next >= MERSENNE_WORDS) generate(m);
    uint32_t v = m->word[m->next++];
    v ^= v >> 11;
    v ^= v << 7 & 0x9D2C5680u;
    v ^= v << 15 & 0xEFC60000u;
    return v ^ v >> 18;
}

double mersenne_unit(Mersenne *m) {
    uint32_t high = draw(m) >> 5, low = draw(m) >> 6;
    return ((double)high * 0x1p26 + (double)low) * 0x1p-53;
}

void ref_uniform(Rng r, double low, double high, Tensor *y) {
    WORK_EACH (i, tensor_count(y)) tensor_set(y, i, low + (high - low) * rng_unit64(&r));
}

void ref_normal(Rng r, double mean, double scale, Tensor *y) {
    WORK_EACH (i, tensor_count(y)) tensor_set(y, i, mean + scale * rng_normal(&r));
}

void ref_bernoulli(Rng r, const Tensor *probability, Tensor *y) {
    WORK_EACH (i, tensor_count(y))
        tensor_set(y, i, rng_unit64(&r) < tensor_get_f64(probability, i) ? 1 : 0);
}

// Inverse transform sampling: the class for u in [0, 1).
static int64_t class_at(const Tensor *t, int64_t row, double most, double total, double u) {
    int64_t classes = t->dims[1];
    double  left = u * total;
    WORK_EACH (k, classes) {
        left -= exp(tensor_get_f64(t, row * classes + k) - most);
        if (left < 0) return k;
    }
    return classes - 1;
}

void ref_multinomial(Rng r, const Tensor *log_weights, Tensor *y) {
    int64_t classes = log_weights->dims[1], samples = y->dims[1];
    for (int64_t b = 0; b < y->dims[0] && !work_stopped(); b++) {
        double most = -INFINITY, total = 0;
        WORK_EACH (k, classes) most = fmax(most, tensor_get_f64(log_weights, b * classes + k));
        WORK_EACH (k, classes) total += exp(tensor_get_f64(log_weights, b * classes + k) - most);
        for (int64_t s = 0; s < samples && !work_stopped(); s++)
            tensor_set(y, b * samples + s,
                       (double)class_at(log_weights, b, most, total, rng_unit64(&r)));
    }
}

void ref_dropout(double ratio, uint32_t seed, const Tensor *x, Tensor *y, Tensor *mask) {
    Mersenne m;
    mersenne_seed(&m, seed);
    WORK_EACH (i, tensor_count(x)) {
        const bool stays = ratio == 0 || mersenne_unit(&m) >= ratio;
        tensor_set(y, i, stays ? tensor_get_f64(x, i) / (1 - ratio) : 0);
        if (mask != NULL) tensor_set(mask, i, stays);
    }
}
