// Measurement: one network on a number of threads, both engines alternating in short bursts.
#pragma once

#include "bench/ort/worker.h"

typedef struct Side {
    double   min_ms, median_ms;
    uint32_t runs;
} Side;

typedef struct Measurement {
    const char *name;  // of the network
    int         threads;
    Side        ours, ort;
    double      off;     // largest difference relative to the largest value of that output
    double      cosine;  // least cosine similarity of an output
    bool        quantised, agrees;
    const char *failure;  // reason for missing results; NULL: none
} Measurement;

typedef struct MeasurementParams {
    double seconds;    // for each side, at least
    double tolerance;  // for off
    double tune;       // seconds for which ours is tuned before it is timed; 0: not tuned
} MeasurementParams;

enum { MEASUREMENT_LEAST_RUNS = 8 };
#define MEASUREMENT_COSINE 0.97  // quantised networks: the order of rounding changes single values

// Errors are reported in d->failure. The arena is scratch memory.
void measurement_run(Measurement *d, const char *path, const EngineOptions *cfg,
                     const MeasurementParams *params, Arena *a);
