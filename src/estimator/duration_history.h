// DurationHistory: how long jobs of a cluster lasted, and what that says about another job.
//
// An estimate is a weighted Kaplan-Meier curve over logarithmic bins: ended jobs count as deaths,
// running ones as censored at the work they have done, a log-normal prior as a few deaths. Weights
// fall where tenant, name or GPUs differ and with the number of jobs since. Work is time at rate 1.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { DURATION_BINS = 96, DURATION_RECORDS = 512 };

typedef struct JobTraits {  // what is known of a job before it runs; 0: unknown
    uint64_t tenant, name;  // hashes
    uint32_t gpus;
} JobTraits;

typedef struct DurationRecord {
    JobTraits traits;
    double    work_s;
    uint32_t  bin;  // of work_s
} DurationRecord;

typedef struct DurationParams {
    double other_tenant, other_name, other_gpus;  // weights of jobs that differ
    double recent;                                // additional weight of the tenant's last job
    double recent_jobs;                           // by which that weight falls by e
    double memory_jobs;                           // by which every weight falls by e
    double prior_median_s;                        // without records
    double prior_sigma;                           // of the logarithm
    double prior_weight;                          // in jobs
} DurationParams;

#define DURATION_PARAMS ((DurationParams){0.03, 0.3, 0.3, 4, 3, 400, 1200, 2.0, 1})

typedef struct DurationHistory {
    DurationParams  params;
    DurationRecord *ended;  // [DURATION_RECORDS] the last ones, in a ring
    double         *decay;  // [DURATION_RECORDS] of weights, by age
    uint64_t        total;  // ever ended
} DurationHistory;

typedef struct DurationEstimate {  // of the work left
    double left_s;                 // geometric mean
    double mean_s;                 // arithmetic mean
    double log_sd;                 // standard deviation of its logarithm
    double low_s, high_s;          // 90 % interval
    double index;  // Gittins: most endings per second of work to expect over any horizon
} DurationEstimate;

// That index of a distribution over n bins of work left, each with its middle and its end.
double duration_index(uint32_t n, const double *mass, const double *middle_s, const double *end_s);

MUST_USE Err duration_history_init(DurationHistory *h, const DurationParams *p, Arena *a);
void         duration_history_end(DurationHistory *h, const JobTraits *t, double work_s);

typedef struct DurationQuery {
    JobTraits             traits;
    double                done_s;           // work done so far
    double                told_s, told_sd;  // a user's estimate of all its work; sd 0: none
    const DurationRecord *running;          // [n_running] jobs that run now
    uint32_t              n_running, self;  // self: its own record among them; or UINT32_MAX
} DurationQuery;

DurationRecord duration_record(const JobTraits *t, double work_s);

// The curve, given the work done, times the likelihood of what was told: both of all the work.
DurationEstimate duration_history_left(const DurationHistory *h, const DurationQuery *q);

// The record that ended `age` records ago, from 0 on; NULL: none is kept.
const DurationRecord *duration_history_at(const DurationHistory *h, uint64_t age);
