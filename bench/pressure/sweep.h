// Sweep: times of a layer's versions at each pressure level, measured beside a bubble and modelled.
#pragma once

#include "bench/pressure/bubble.h"
#include "compile/tune/tune.h"

typedef struct SweepLevel {
    size_t   bubble_bytes;            // working set of the bubble
    double   bubble_gbs;              // its measured rate in GB/s
    double   time_ns[PROFILE_KEPT];   // of kept version i: lower quartile of clean samples
    double   model_ns[PROFILE_KEPT];  // the model's prediction for the measured pressure
    uint32_t samples[PROFILE_KEPT];   // clean samples; 0: time_ns is the minimum of all
} SweepLevel;

// Measures the kept versions of p on counts[k] cores in turns, for about `seconds` per level. The
// bubble must run on a core that the team does not use.
MUST_USE Err sweep_layer(const TuneLayer *l, const TuneOptions *o, const LayerProfile *p,
                         uint32_t k, Bubble *bubble, double seconds,
                         SweepLevel out[PRESSURE_LEVELS]);
