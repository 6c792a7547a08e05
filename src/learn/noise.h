// Noise: what an actor tries beyond what it knows. The same bits on every machine.
#pragma once

#include <stddef.h>

#include "base/rng.h"

float noise_normal(Rng *rng);  // mean 0, variance 1

// Gaussian noise on n actions, which stay in [-1, 1].
void noise_add(Rng *rng, float sigma, size_t n, float *actions);

typedef struct NoiseWalk {  // Ornstein-Uhlenbeck: noise that remembers
    float pull;             // to 0 in each step, 0 .. 1
    float sigma;            // new noise in each step
} NoiseWalk;

// One step of n walks, at first 0; their lasting deviation is sigma / sqrt(pull (2 - pull)).
void noise_walk(const NoiseWalk *w, Rng *rng, size_t n, float *state);
