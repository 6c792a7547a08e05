// Reference random tensors, dropout, and the generator of ONNX's own reference (MT19937). Results
// depend on the generator state only.
#pragma once

#include <stdint.h>

#include "base/rng.h"
#include "base/tensor.h"

void ref_uniform(Rng r, double low, double high, Tensor *y);
void ref_normal(Rng r, double mean, double scale, Tensor *y);
void ref_bernoulli(Rng r, const Tensor *probability, Tensor *y);    // 1 or 0
void ref_multinomial(Rng r, const Tensor *log_weights, Tensor *y);  // one class per sample

// Zeroes elements with probability ratio in [0, 1) and scales the others. mask (bool or the type of
// x; may be NULL) marks the kept ones. Draws equal those of ONNX's reference for the same seed.
void ref_dropout(double ratio, uint32_t seed, const Tensor *x, Tensor *y, Tensor *mask);

enum { MERSENNE_WORDS = 624 };

typedef struct Mersenne {
    uint32_t word[MERSENNE_WORDS];
    int32_t  next;
} Mersenne;

void   mersenne_seed(Mersenne *m, uint32_t seed);
double mersenne_unit(Mersenne *m);  // [0, 1), 53 bits
