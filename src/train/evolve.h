// Evolve: a step uphill without gradients: mirrored changes of numbers are tried on the same runs,
// and what gained is followed. Which thread tries what does not show.
#pragma once

#include "base/rng.h"
#include "learn/float_vec.h"
#include "train/runs.h"

typedef struct EvolveOptions {
    uint32_t     pairs;  // of mirrored trials
    uint32_t     runs;   // that each is tried on
    float        sigma;  // of a trial's change
    float        step;   // the longest that a step is
    float        keep;   // of the direction that was found before
    float        clip;   // what a pair can differ by on one run, at most; 0: by anything
    const float *scale;  // [part] how much further each number goes; NULL: all alike
} EvolveOptions;

// What weights are worth on one of the runs; more is better.
typedef Err EvolveTry(void *self, const float *w, uint32_t run, Arena *a, double *worth);

// Moves `part` of w along `way`, as long as it, that steps share; *mean: of all trials.
MUST_USE Err evolve_step(const EvolveOptions *o, Runs *runs, Rng rng, EvolveTry *fn, void *self,
                         FloatVec w, FloatVec part, FloatVec way, Arena *scratch, double *mean);
