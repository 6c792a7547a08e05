// ClusterRun: one simulated run of a job trace on servers under a policy: its input and its result.
#pragma once

#include <math.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "cluster/information.h"
#include "cluster/job.h"
#include "cluster/server_list.h"
#include "cluster/tenant_shares.h"
#include "contract/cluster.h"

enum { CLUSTER_SPANS = 512 };  // intervals of a timeline, at most

// Rules in which published simulators differ. Zeroed: decisions at every event, times to the
// nanosecond, preemption without cost.
typedef struct ClusterSimParams {
    TimeNs clock;                  // all times must be its multiples; 0: any
    TimeNs round;                  // decisions at its multiples only; 0: at every event
    TimeNs linger;                 // time a job keeps its resources after its last work
    TimeNs restart, restart_wide;  // work that a preemption adds; for gangs wider than a server
    bool   restart_by_class;       // the class's own restart cost, where it has one
    ClusterStopLimits stops;
    bool in_rounds;  // progress is counted in whole iterations, and jobs end with a round
    bool gpus_only;  // cores and memory are unlimited
    bool anew;       // jobs are placed anew at every event: moves are no preemptions, and every
                     // running job loses its overhead
} ClusterSimParams;

typedef struct ClusterRun {
    const JobList                *jobs;
    const ServerList             *servers;
    const struct ClusterProfiles *profiles;  // the true ones; NULL: every rate is 1
    const uint32_t               *class_of;  // [jobs->n] in profiles, or CLUSTER_NONE; or NULL
    const InformationBeliefs     *beliefs;   // what policies see instead; NULL: the truth
    Information                   info;      // of durations: `knows` and `error` apply
    Arena                        *hidden;    // for the truth during the run; NULL: its own
    const char      *experience;  // file of the estimator's records, loaded and saved; NULL: none
    const TimeNs    *overheads;   // [jobs->n] with params.anew: progress lost by an event
    ClusterSimParams params;
    const TenantShares  *tenants;  // NULL: equal weights, no quotas
    const ClusterPolicy *policy;
    const void          *settings, *loaded;  // of the policy
    ClusterKnowledge     knows;              // at most what the policy declares
    double               error;              // standard deviation of the logarithm of predictions
    uint64_t             seed;               // of predictions and of the policy's random numbers
    // Called before every decision; NULL: not called.
    void (*watch)(void *self, const ClusterView *view, const void *state);
    // Called after every plan is applied, with the view after it; NULL: not called.
    void (*after)(void *self, const ClusterView *view, const ClusterAction *plan, uint32_t n);
    void        *watcher;
    const Clock *clock;  // times decisions; NULL: they are not timed
} ClusterRun;

typedef struct ClusterEnd {  // result of a job
    TimeNs   start, finish;  // start: the first one
    TimeNs   waited;         // sum over all waits
    uint32_t preemptions;
} ClusterEnd;

typedef struct ClusterUse {  // averages over an interval, as fractions of the capacity
    double gpus, cores, memory;
    double waiting;  // number of jobs
} ClusterUse;

typedef struct Calibration {  // of an estimator: true against believed
    uint64_t n;
    double   square;   // sum of squared errors of the logarithm
    double   covered;  // inside the 90 % interval
} Calibration;

static inline double calibration_rms(const Calibration *c) {
    return c->n > 0 ? sqrt(c->square / (double)c->n) : NAN;
}
static inline double calibration_cover(const Calibration *c) {
    return c->n > 0 ? c->covered / (double)c->n : NAN;
}

typedef struct ClusterResult {
    ClusterEnd *ends;  // [n] in the order of the job list
    uint32_t    n;
    TimeNs      first, last;  // first submission, last finish
    uint64_t    events, decisions, starts, preemptions, rescales, levels;
    Calibration durations, rates;  // at arrival; before a measurement
    double      decide_ns;         // wall time in the policy; 0 without a clock
    uint32_t    most_alive;
    uint64_t    alive_ns, busy_ns;  // final values; see ClusterView
    ClusterUse  use;
    ClusterUse *timeline;  // [n_spans] the same for every interval of length `span` from `first` on
    uint32_t    n_spans;
    TimeNs      span;
} ClusterResult;

// The rules that --like auto stands for: "lucid" if jobs have only whole GPUs and whole seconds,
// "synergy" for Synergy's policies on its traces with profiles, else "own".
const char *cluster_like(const JobList *jobs, const ClusterPolicy *p, bool profiles);

// like: "lucid", "synergy", "muri" (the published simulators' rules) or "own".
MUST_USE Err cluster_sim_params(const char *like, const ClusterPolicy *p, ClusterSimParams *out);

// In muri_rules.c: the work of jobs by Muri's rules, and their overheads.
MUST_USE Err muri_rules_apply(JobList *l, Arena *a, const TimeNs **overheads);

typedef struct StopOptions {  // negative: as the rules say; 0: no limit
    int64_t min_run_s, max_stops;
} StopOptions;

// NULL: as the rules say.
void cluster_stop_options(const StopOptions *o, ClusterSimParams *to);

// The setup that policies and the simulator see.
MUST_USE Err cluster_setup(const ClusterRun *run, Arena *a, ClusterSetup *out);

// Memory comes from the arena. An illegal plan is a bug of the policy and aborts.
MUST_USE Err cluster_simulate(const ClusterRun *run, Arena *a, ClusterResult *out);

typedef struct ClusterSummary {
    double jct_mean_s, jct_p50_s, jct_p99_s, makespan_s;
    double queue_mean_s, queue_p99_s;
    double slowdown_mean;  // completion time / work, with at least 10 s of work
    double fairness;       // Jain's index of the tenants' mean slowdowns
} ClusterSummary;

MUST_USE Err cluster_summary(const ClusterRun *run, const ClusterResult *r, Arena *scratch,
                             ClusterSummary *out);

// CSV with the columns job,submit_s,start_s,finish_s,gpus,preemptions.
void cluster_write_jobs(FILE *f, const JobList *jobs, const ClusterResult *r);
