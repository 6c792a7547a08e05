// BenchPeak: the highest rate at which enough requests are in time, found by bisection.
#pragma once

#include "loadgen/bench.h"

enum { PEAK_PROBES = 48 };

typedef struct BenchPeakOptions {
    double start;       // the first rate to try; 0: half of what a closed loop reaches
    double percentile;  // percent of each model's requests that shall be in time
    double precision;   // ends when the bracket is so narrow, as a part of the rate
    TimeNs budget_ns;   // no probe is begun after it
    void (*probed)(void *self, double rate, double hit, bool met);
    void *self;
} BenchPeakOptions;

typedef struct BenchProbe {
    double rate, hit;  // hit: of the worst model, percent
    bool   met, confirms;
} BenchProbe;

typedef struct BenchPeak {
    double      rate;       // 0: none was found
    bool        confirmed;  // a second run, of other arrivals, met it too
    bool        in_time;    // the bracket is as narrow as was asked for
    BenchProbe  probes[PEAK_PROBES];
    uint32_t    n_probes;
    BenchResult best;  // of the run that confirmed it, or met it
} BenchPeak;

// run: how long and from which seed; its rate is not looked at.
MUST_USE Err bench_peak(const Bench *b, const BenchRun *run, const BenchPeakOptions *o, Arena *a,
                        BenchPeak *out);
