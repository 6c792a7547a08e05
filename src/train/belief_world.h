// BeliefWorld: the jobs of an imagined cluster, with tenants, bursts of similar jobs, durations and
// profiles from parametric families, and what is observed of them at one time: samples with labels
// for a BeliefNet.
#pragma once

#include "cluster/job.h"
#include "estimator/belief_context.h"

enum { BELIEF_WORLD_JOBS = 280, BELIEF_WORLD_QUERIES = 24 };

// Speed over cores and memory, relative to the default: stages of an iteration on GPU, cores and
// storage, joined by a p-norm; less memory than resident thrashes.
typedef struct BeliefProfile {
    double cores, storage;  // time on the default share's cores and without a cache, GPU: 1
    double resident, data;  // memory, and data set to cache, relative to the default share
    double power;           // p
    double beside;          // speed beside a mean co-runner
} BeliefProfile;

BeliefProfile belief_profile_draw(Rng *rng);
double        belief_profile_speed(const BeliefProfile *p, double cores, double memory);

typedef struct BeliefWorldJob {
    JobTraits     traits;
    double        submit_s, start_s, work_s, rate;  // work_s: in all
    BeliefProfile profile;
    double        told_power;  // of a library's speeds, relative to the true ones
    uint8_t       n_records;
    BeliefRecord  records[BELIEF_RECORDS];
} BeliefWorldJob;

typedef struct BeliefWorld {
    BeliefWorldJob *jobs;  // [n] by submission
    uint32_t        n;
    bool            told;  // whether queries are told of a library's profile
} BeliefWorld;

// like: NULL, or a trace; a random window of it gives tenants, models, gangs and durations.
BeliefWorld belief_world_draw(Rng rng, const JobList *like, Arena *a);

typedef struct BeliefBatch {  // observed at one time
    BeliefTokens  jobs;
    BeliefQueries queries;
    float        *log_left;  // [queries] labels
    float (*speeds)[BELIEF_SPEEDS];
} BeliefBatch;

// At time at_s: BELIEF_WORLD_QUERIES of the jobs that run, wait or are submitted next.
BeliefBatch belief_world_observe(const BeliefWorld *w, double at_s, Rng rng, Arena *a);

// Observed when a random job is submitted.
BeliefBatch belief_world_sample(Rng rng, const JobList *like, Arena *a);

// Mean losses of outputs raw [queries][BELIEF_OUT]; d_raw: their gradients, or NULL.
typedef struct BeliefLoss {
    double left, speed;  // negative log likelihoods
} BeliefLoss;

BeliefLoss belief_loss(const BeliefBatch *b, const float *raw, float *d_raw);
