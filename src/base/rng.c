// SplitMix64, as published by Steele, Lea and Flood.
#include "base/rng.h"

#include <math.h>

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint64_t rng_u64(Rng *r) { return mix(r->s += 0x9E3779B97F4A7C15u); }

uint64_t rng_below(Rng *r, uint64_t n) {
    uint64_t reject = (0 - n) % n,
             x;  // 2^64 mod n values are rejected, so that no result is favoured
    do {
        x = rng_u64(r);
    } while (x < reject);
    return x % n;
}

float  rng_unit(Rng *r) { return (float)(rng_u64(r) >> 40) * 0x1p-24f; }
double rng_unit64(Rng *r) { return (double)(rng_u64(r) >> 11) * 0x1p-53; }
double rng_exp(Rng *r) { return -log1p(-rng_unit64(r)); }

double rng_normal(Rng *r) {
    double radius = sqrt(2 * rng_exp(r));
    return radius * cos(6.283185307179586 * rng_unit64(r));
}

Rng rng_split(Rng *r) { return (Rng){rng_u64(r)}; }
Rng rng_fork(Rng r, uint64_t key) { return (Rng){mix(r.s ^ mix(key + 0x9E3779B97F4A7C15u))}; }
