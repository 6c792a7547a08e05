// Rng: a seeded SplitMix64 generator, always passed as an argument; there is no global one.
#pragma once

#include <stdint.h>

typedef struct Rng {
    uint64_t s;
} Rng;

uint64_t rng_u64(Rng *r);
uint64_t rng_below(Rng *r, uint64_t n);  // in [0, n), without bias; n > 0
float    rng_unit(Rng *r);               // in [0, 1), 24 random bits
double   rng_unit64(Rng *r);             // in [0, 1), 53 random bits
double   rng_normal(Rng *r);             // mean 0, variance 1
double   rng_exp(Rng *r);                // mean 1
Rng      rng_split(Rng *r);              // an independent stream; advances r
Rng      rng_fork(Rng r, uint64_t key);  // the independent stream for a key; r is unchanged
