// ClusterRun: one run of a trace of jobs on servers under a policy, in virtual time: what goes in
// and what comes out.
#pragma once

#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "cluster/job.h"
#include "cluster/server_list.h"
#include "contract/cluster.h"

enum { CLUSTER_SPANS = 512 };  // of how it goes, at most

// AssignedBy a cluster is run, where published simulators differ. Zeroed: at every event, to the
// nanosecond, a stop costs nothing.
typedef struct ClusterSimParams {
    TimeNs clock;                  // all times have to be its multiples; 0: any will do
    TimeNs round;                  // decisions at its multiples only; 0: at every event
    TimeNs linger;                 // a job holds what it has for so long after its last work
    TimeNs restart, restart_wide;  // work that a stop adds; to jobs wider than a server
    bool   restart_by_class;       // it is the class's own, of jobs that have one
    bool   in_rounds;              // progress is whole iterations, and jobs end with a round
    bool   gpus_only;              // cores and memory are not rationed
} ClusterSimParams;

typedef struct ClusterRun {
    const JobList                *jobs;
    const ServerList             *servers;
    const struct ClusterProfiles *profiles;  // NULL: every rate is 1
    const uint32_t               *class_of;  // [jobs->n] in profiles, or CLUSTER_NONE; or NULL
    ClusterSimParams              params;
    const ClusterPolicy          *policy;
    const void                   *settings, *loaded;  // of the policy
    ClusterKnowledge              knows;              // no more than the policy asks for
    double                        error;  // of predictions: the deviation of their logarithm
    uint64_t                      seed;   // of predictions and of the policy's own chance
    // Told before every call of the policy's decide; NULL: nobody is.
    void (*watch)(void *self, const ClusterView *view, const void *state);
    // Told after every plan was carried out, with the view as it is then; NULL: nobody is.
    void (*after)(void *self, const ClusterView *view, const ClusterAction *plan, uint32_t n);
    void        *watcher;
    const Clock *clock;  // by which decisions are timed; NULL: they are not
} ClusterRun;

typedef struct ClusterEnd {  // of a job
    TimeNs   start, finish;  // the first start
    TimeNs   waited;         // up to every start
    uint32_t preemptions;
} ClusterEnd;

typedef struct ClusterUse {  // averages over a span of time, parts of what there is
    double gpus, cores, memory;
    double waiting;  // jobs
} ClusterUse;

typedef struct ClusterResult {
    ClusterEnd *ends;  // [n] as in the list of jobs
    uint32_t    n;
    TimeNs      first, last;  // submission, finish
    uint64_t    events, decisions, starts, preemptions, levels;
    double      decide_ns;  // real time in the policy; 0 without a clock
    uint32_t    most_alive;
    uint64_t    alive_ns, busy_ns;  // at the end; see ClusterView
    ClusterUse  use;
    ClusterUse *timeline;  // [n_spans] the same, span by span from `first` on
    uint32_t    n_spans;
    TimeNs      span;
} ClusterResult;

// "lucid" where jobs say no more than Lucid's simulator knows: whole GPUs and whole seconds.
// "synergy" for its policies on its traces with profiles. Else "own".
const char *cluster_like(const JobList *jobs, const ClusterPolicy *p, bool profiles);

// "lucid", "synergy" or "own": as the published simulators do it, or as we do.
MUST_USE Err cluster_sim_params(const char *like, const ClusterPolicy *p, ClusterSimParams *out);

// What a policy's load is told of a run to come; engines start from it too.
MUST_USE Err cluster_setup(const ClusterRun *run, Arena *a, ClusterSetup *out);

// All that the run takes is from the arena. An illegal plan is the policy's fault and aborts.
MUST_USE Err cluster_simulate(const ClusterRun *run, Arena *a, ClusterResult *out);

typedef struct ClusterSummary {
    double jct_mean_s, jct_p50_s, jct_p99_s, makespan_s;
    double queue_mean_s, queue_p99_s;
    double slowdown_mean;  // completion time over work, at least 10 s of it
    double fairness;       // Jain's index of the tenants' mean slowdowns
} ClusterSummary;

MUST_USE Err cluster_summary(const ClusterRun *run, const ClusterResult *r, Arena *scratch,
                             ClusterSummary *out);

// job,submit_s,start_s,finish_s,gpus,preemptions: a line a job.
void cluster_write_jobs(FILE *f, const JobList *jobs, const ClusterResult *r);
