// Random: tensors of random numbers that depend on the generator's state and nothing else.
#pragma once

#include "base/rng.h"
#include "base/tensor.h"

void ref_uniform(Rng r, double low, double high, Tensor *y);
void ref_normal(Rng r, double mean, double scale, Tensor *y);
void ref_bernoulli(Rng r, const Tensor *probability, Tensor *y);    // 1 or 0
void ref_multinomial(Rng r, const Tensor *log_weights, Tensor *y);  // a class for each sample
