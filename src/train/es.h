// Es: evolution strategies: a gradient estimate from mirrored perturbations, each pair evaluated on
// the same runs. The result does not depend on the number of threads.
#pragma once

#include "base/rng.h"
#include "learn/float_vec.h"

typedef struct EsParams {
    uint32_t pairs;     // of mirrored perturbations
    uint32_t runs;      // for each perturbation
    float    sigma;     // standard deviation of a perturbation
    float    step;      // length of a parameter step, at most
    float    momentum;  // share of the previous direction that is kept
    float    clip;      // limit of a pair's difference on one run; 0: none
} EsParams;

// Fitness of parameters on one of the runs; more is better.
typedef Err EsFitness(void *self, const float *params, uint32_t run, Arena *a, double *out);

typedef struct EsProblem {
    EsFitness   *fitness;
    void        *self;
    FloatVec     params;
    FloatVec     part;       // of params that is perturbed and moved
    const float *scale;      // [part.n] factor on perturbation and step; NULL: 1
    FloatVec     direction;  // [part.n] kept from step to step
    uint32_t     threads;
} EsProblem;

// Moves x->part by one step. *mean: fitness over all perturbations and runs.
MUST_USE Err es_step(const EsParams *p, const EsProblem *x, Rng rng, Arena *scratch, double *mean);
