// BenchPeak: the highest rate at which enough requests meet their SLO, found by bisection.
#pragma once

#include "loadgen/bench.h"

enum { PEAK_PROBES = 48 };

typedef struct BenchPeakOptions {
    double start;       // first rate; 0: half of what a closed loop reaches
    double percentile;  // percent of each model's requests that have to be in time
    double precision;   // width of the final bracket, as a share of the rate
    TimeNs budget_ns;   // no probe begins after it
    void (*probed)(void *self, double rate, double hit, bool met);
    void *self;
} BenchPeakOptions;

typedef struct BenchProbe {
    double rate, hit;  // hit: of the worst model, percent
    bool   met, confirms;
} BenchProbe;

typedef struct BenchPeak {
    double      rate;       // 0: none was found
    bool        confirmed;  // a second run, with other arrivals, met it too
    bool        narrow;     // the bracket reached the precision
    BenchProbe  probes[PEAK_PROBES];
    uint32_t    n_probes;
    BenchResult best;  // of the run that confirmed it, or else met it
} BenchPeak;

// run: durations and seed; its rate is ignored.
MUST_USE Err bench_peak(const Bench *b, const BenchRun *run, const BenchPeakOptions *o, Arena *a,
                        BenchPeak *out);
json_t      *bench_peak_json(const BenchPeak *p);
