// Noise: exploration noise for actors, bitwise reproducible.
#pragma once

#include <stddef.h>

#include "base/rng.h"

float noise_normal(Rng *rng);  // mean 0, variance 1

// Adds Gaussian noise to n actions and clamps them to [-1, 1].
void noise_add(Rng *rng, float sigma, size_t n, float *actions);
