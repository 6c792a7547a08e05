// Sweep: which version of a layer wins at which level of pressure, injected and by the model.
#pragma once

#include "compile/tune/bubble.h"
#include "compile/tune/tune.h"

typedef struct SweepLevel {
    size_t   bubble_bytes;            // the neighbour went through
    double   bubble_gbs;              // at this rate
    double   time_ns[PROFILE_KEPT];   // of kept version i: lower quartile of undisturbed samples
    double   model_ns[PROFILE_KEPT];  // what the model says of what was injected
    uint32_t samples[PROFILE_KEPT];   // that were undisturbed; 0: the least of the others
} SweepLevel;

// The kept versions of p on counts[k] cores, in turns, for about `seconds` at each level. The
// bubble runs beside the team, on a core that none of its members uses.
MUST_USE Err sweep_layer(const TuneLayer *l, const TuneOptions *o, const LayerProfile *p,
                         uint32_t k, Bubble *bubble, double seconds,
                         SweepLevel out[PRESSURE_LEVELS]);
