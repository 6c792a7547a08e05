// Peak: search for the highest request rate at which enough requests meet their targets.
//
// Trials are requested one at a time, so that the caller may interleave several searches or
// run them on threads. The rate is bracketed by doubling or halving, the bracket is bisected, and
// the result is where a falling curve fitted through all trials crosses the target: a single
// outlier shifts it only slightly.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/stats.h"

enum { PEAK_TRIALS = 64 };

typedef struct PeakRule {
    double   target;     // share of requests that must meet their QoS
    double   start;      // the first rate tried, above 0
    double   least;      // below it the result is 0
    double   most;       // upper limit of rates tried
    double   tolerance;  // the bracket is narrowed to this share of the rate
    uint32_t trials;     // at most PEAK_TRIALS
} PeakRule;

#define PEAK_RULE_DEFAULT                                                                          \
    ((PeakRule){.target = 0.95,                                                                    \
                .start = 100,                                                                      \
                .least = 0.01,                                                                     \
                .most = 1e6,                                                                       \
                .tolerance = 0.02,                                                                 \
                .trials = 40})

typedef struct PeakTrial {
    double rate, hit_rate;
} PeakTrial;

typedef struct Peak {
    PeakRule  rule;
    double    low, high;  // highest rate that met the target, lowest that did not; 0: none yet
    PeakTrial trials[PEAK_TRIALS];
    uint32_t  n;
    bool      checked;  // the extra trial above the bracket was made
} Peak;

void   peak_begin(Peak *p, const PeakRule *rule);
bool   peak_next(const Peak *p, double *rate);  // false: the search is finished
void   peak_tell(Peak *p, double rate, double hit_rate);
double peak_rate(const Peak *p);  // current estimate; 0 when no trial met the target

typedef struct PeakRun {
    Err (*run)(void *self, double rate, uint64_t seed, double *hit_rate);
    void *self;
} PeakRun;

// Runs the whole search.
MUST_USE Err peak_find(PeakRun run, const PeakRule *rule, uint64_t seed, double *rate);
