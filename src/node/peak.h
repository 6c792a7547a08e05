// Peak: the highest rate of requests at which enough of them still meet their targets.
//
// Trials are asked for one at a time, so that whoever runs them may interleave several searches or
// run them on threads. The rate is bracketed by doubling or halving, the bracket is bisected, and
// the answer is where a falling curve fitted through all trials crosses the target: one lucky or
// unlucky trial moves it a little, and does not lead it astray.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/stats.h"

enum { PEAK_TRIALS = 64 };

typedef struct PeakRule {
    double   target;     // share of requests that must meet their QoS
    double   start;      // the first rate tried, above 0
    double   least;      // below it the answer is 0
    double   most;       // beyond it nothing is tried
    double   tolerance;  // the bracket is narrowed to this share of the rate
    uint32_t trials;     // at most so many, at most PEAK_TRIALS
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
    double    low, high;  // the best that met the target, the worst that did not; 0: none yet
    PeakTrial trials[PEAK_TRIALS];
    uint32_t  n;
    bool      checked;  // a little above the bracket was tried
} Peak;

void   peak_begin(Peak *p, const PeakRule *rule);
bool   peak_next(const Peak *p, double *rate);  // false: it is found
void   peak_tell(Peak *p, double rate, double hit_rate);
double peak_rate(const Peak *p);  // as known now; 0 when no trial met the target

typedef struct PeakRun {
    Err (*run)(void *self, double rate, uint64_t seed, double *hit_rate);
    void *self;
} PeakRun;

// The same search through to its end.
MUST_USE Err peak_find(PeakRun run, const PeakRule *rule, uint64_t seed, double *rate);
