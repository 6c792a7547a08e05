// BeliefContext: what a cluster observed of its last ended jobs and of those that have run but not
// ended, as the network sees it; their keys and values are computed once per change.
#pragma once

#include "base/err.h"
#include "estimator/belief_net.h"
#include "estimator/duration_history.h"

enum { BELIEF_ENDED = 512 };

typedef struct BeliefRecord {
    float cores, memory;  // relative to the default demand
    float corunners;      // on its most crowded GPU
    float rate;
} BeliefRecord;

typedef struct BeliefJob {
    JobTraits    traits;
    double       submit_s, work_s;  // work_s: done so far, or all of it
    uint32_t     serial;            // by submission
    bool         ended;
    uint8_t      n_records;
    BeliefRecord records[BELIEF_RECORDS];
} BeliefJob;

typedef struct BeliefAmounts {
    double cores, memory;  // relative to the default demand
} BeliefAmounts;

extern const BeliefAmounts belief_levels[BELIEF_LEVELS];

// The features of a job as context or, with told (logarithms of speeds by a library; NULL: none),
// as a query; its records go to records[BELIEF_RECORDS][BELIEF_RECORD].
void belief_features(const BeliefJob *j, float to[BELIEF_JOB], float *records);
void belief_query_features(const BeliefJob *j, const float *told, float to[BELIEF_QUERY],
                           float *records);

typedef struct BeliefCandidates {
    const BeliefJob *jobs;
    const uint32_t  *rows;  // [n] of jobs
    uint32_t         n;
} BeliefCandidates;

// The up to BELIEF_CONTEXT most similar ones and those submitted last, whether ended or not: rows
// and pair[.][BELIEF_PAIR]. By the last ends, long jobs would count too much among running ones.
uint32_t belief_select(const BeliefCandidates *c, const BeliefJob *query, uint32_t *rows,
                       float *pair);

// A record of an allocation that is known replaces it; else the oldest gives way.
void belief_job_record(BeliefJob *j, const BeliefRecord *r);

typedef struct BeliefContext {
    const float *w;                            // borrowed
    BeliefJob   *jobs;                         // [BELIEF_ENDED + n_slots] a ring, then slots
    float       *kv;                           // [...][BELIEF_KV]
    bool        *encoded;                      // [...]
    uint64_t     ended, arrived;               // ever
    uint32_t    *active, *position, n_active;  // slots that have run; position + 1 of each, or 0
    uint32_t    *rows;                         // scratch
    float       *jobs_cache, *query_cache;
} BeliefContext;

MUST_USE Err belief_context_init(BeliefContext *c, const float *w, uint32_t n_slots, Arena *a);

void belief_context_arrive(BeliefContext *c, uint32_t slot, const JobTraits *t, double submit_s);
void belief_context_work(BeliefContext *c, uint32_t slot, double work_s);
void belief_context_record(BeliefContext *c, uint32_t slot, const BeliefRecord *r);
void belief_context_end(BeliefContext *c, uint32_t slot, double work_s);

// What the network says of a slot's job.
void belief_context_ask(BeliefContext *c, uint32_t slot, const float *told, BeliefOutput *out);

// The mixture times the likelihood of what was told of all the work; told_sd 0: nothing.
DurationEstimate belief_left(const BeliefOutput *x, double done_s, double told_s, double told_sd);
