// Estimator: what a cluster's own history says about jobs: the work they have left and how fast
// they run, with variance. Engines, policies and live schedulers may use it; it sees observations
// only.
#pragma once

#include "estimator/duration_history.h"
#include "estimator/profile_posterior.h"

typedef struct EstimatorParams {
    DurationParams  durations;
    PosteriorParams profiles;
} EstimatorParams;

#define ESTIMATOR_PARAMS ((EstimatorParams){DURATION_PARAMS, POSTERIOR_PARAMS})

typedef struct Estimator {
    DurationHistory  durations;
    ProfilePosterior profiles;
    bool             has_profiles;
} Estimator;

// table NULL: profiles are not estimated. It is copied; its profiles are borrowed.
MUST_USE Err estimator_init(Estimator *e, const HypothesisTable *table,
                            const EstimatorParams *params, Arena *a);

uint64_t estimator_name(const char *name);  // hash of a tenant's or a job's name; "": 0

// A SQLite file keeps the records, so that experience survives restarts. save replaces the file's
// content in one transaction. load adds to an empty estimator; a file that does not exist is an
// empty one. Hypotheses are found by name: unknown ones are ignored.
MUST_USE Err estimator_save(const Estimator *e, const char *path);
MUST_USE Err estimator_load(Estimator *e, const char *path);
