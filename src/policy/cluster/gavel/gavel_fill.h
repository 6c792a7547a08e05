// GavelFill: shares of time on each GPU type for every job, by water-filling with prices.
//
// All jobs rise together to the same multiple of their claims, in small steps. A step is taken on
// the type where it costs least: GPUs times seconds times a price that grows exponentially with the
// use of the type. A job that runs all the time stops rising, and so does one whose types are used
// up; the others rise on.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { GAVEL_TYPES = 32 };

typedef struct GavelJob {
    double gpus;                // in GPUs, also fractions of one
    double claim;               // throughput that it gets at level 1
    double speed[GAVEL_TYPES];  // throughput by type; 0: it cannot run there
    double share[GAVEL_TYPES];  // result: fraction of the time on each type
} GavelJob;

typedef struct GavelFill {
    uint32_t n_types;
    double   gpus[GAVEL_TYPES];  // of each type
    double   used[GAVEL_TYPES];  // result
} GavelFill;

// Jobs without a type or a claim get no share.
void gavel_fill(GavelFill *f, GavelJob *jobs, uint32_t n);

// The same without raising jobs together: each in turn gets all the time it can use.
void gavel_fill_in_order(GavelFill *f, GavelJob *jobs, uint32_t n);
