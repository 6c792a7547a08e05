// Arrivals: a seeded sequence of requests, the same for every policy.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/rng.h"

typedef struct Arrival {
    TimeNs   at;
    uint32_t tenant;
} Arrival;

typedef struct Arrivals {
    Arrival *at;  // [n] by time
    uint32_t n;
} Arrivals;

// Poisson process: n requests at `rate` per second in total, of tenant i with probability
// share[i] / sum.
MUST_USE Err arrivals_poisson(Arena *a, Rng rng, double rate, const double *share,
                              uint32_t n_tenants, uint32_t n, Arrivals *out);

typedef struct Bursts {
    double factor;  // rate within a burst relative to the mean rate, > 1; 0 between bursts
    double length;  // mean requests per burst
} Bursts;

// On-off Poisson process with exponential on and off times, at the same mean rate.
MUST_USE Err arrivals_bursty(Arena *a, Rng rng, double rate, Bursts bursts, const double *share,
                             uint32_t n_tenants, uint32_t n, Arrivals *out);
