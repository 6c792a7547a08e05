// Random: tensors of random numbers that depend on the generator's state and nothing else.
#pragma once

#include <stdint.h>

#include "base/rng.h"
#include "base/tensor.h"

void ref_uniform(Rng r, double low, double high, Tensor *y);
void ref_normal(Rng r, double mean, double scale, Tensor *y);
void ref_bernoulli(Rng r, const Tensor *probability, Tensor *y);    // 1 or 0
void ref_multinomial(Rng r, const Tensor *log_weights, Tensor *y);  // a class for each sample

// Dropout: zeroes a random share of the elements and scales the rest; the slow, obvious truth.

// Drops with probability ratio in [0, 1). The mask (bool or the type of x; may be NULL) says what
// stayed. Seeded draws equal those of ONNX's reference.
void ref_dropout(double ratio, uint32_t seed, const Tensor *x, Tensor *y, Tensor *mask);

// Mersenne: MT19937, the generator behind the random numbers that ONNX's own references draw.

enum { MERSENNE_WORDS = 624 };

typedef struct Mersenne {
    uint32_t word[MERSENNE_WORDS];
    int32_t  next;
} Mersenne;

void   mersenne_seed(Mersenne *m, uint32_t seed);
double mersenne_unit(Mersenne *m);  // [0, 1), 53 bits
