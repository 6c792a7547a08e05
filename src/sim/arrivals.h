// Arrivals: which tenant asks for an answer when. Seeded, so that every policy meets the same ones.
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

// Poisson: n requests at `rate` a second in all, tenant i with probability share[i] / sum.
MUST_USE Err arrivals_poisson(Arena *a, Rng rng, double rate, const double *share,
                              uint32_t n_tenants, uint32_t n, Arrivals *out);

typedef struct Bursts {
    double
        factor;  // in a burst requests come at so many times the rate, between them none; above 1
    double length;  // requests in a burst, on average
} Bursts;

// The same number at the same mean rate, in bursts: a Poisson process that is switched on and off,
// each for a time at random without memory.
MUST_USE Err arrivals_bursty(Arena *a, Rng rng, double rate, Bursts bursts, const double *share,
                             uint32_t n_tenants, uint32_t n, Arrivals *out);
