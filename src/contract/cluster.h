// Cluster contract: the view and the actions of a scheduling policy for GPU servers shared by
// tenants' jobs.
//
// Jobs are gang-scheduled: all GPUs of a job at once or none. The engine calls decide() at events
// (a job arrives or ends, a wake-up) or in rounds. decide() returns actions that are applied in
// order: jobs start on slices of servers, are preempted, or are resized (cores, memory, share of a
// GPU) while they run. Resources must be free when an action is applied; a plan that over-commits a
// server or a GPU's memory, or splits a gang, aborts the run. A job progresses at a rate
// (contract/rate.h); rate 1 is its speed with its default demand.
//
// An elastic job may start with any number of GPUs from gpus_min to gpus_max. It is rescaled, to
// another number, by a PREEMPT and a START in one plan, see cluster_may_rescale; it owes a restart.
// A policy that ignores this gives every job its submitted number.
//
// Profiles, classes, rates and work left are beliefs: exact if the scenario says so, else from a
// library, an estimate or measurements. The engine keeps the truth in memory that no pointer of a
// view or a setup leads to. Beliefs may change between two calls, and what runs may have been
// started by another policy.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/settings.h"
#include "contract/cluster_profile.h"

enum {
    CLUSTER_GPUS = 64,         // of a server, at most
    CLUSTER_WHOLE_GPU = 1000,  // gpu_milli of a whole GPU
};
#define CLUSTER_NONE    UINT32_MAX
#define CLUSTER_UNKNOWN INT64_C(-1)
#define CLUSTER_SECOND  INT64_C(1000000000)

typedef struct ClusterServer {
    const char *name;
    uint32_t    gpus, cores_milli, memory_mib;
    uint32_t    rack, type;  // index of its rack, and of its GPU type
} ClusterServer;

typedef struct ClusterTenant {
    const char *name;
    double      weight;            // fair-share weight; 1 is the default
    uint64_t    guaranteed_milli;  // GPUs that it gets back from others when its jobs wait
    uint64_t    limit_milli;       // GPUs of its running jobs, at most; 0: no limit
} ClusterTenant;

typedef struct ClusterStopLimits {  // of preemptions, equal for every policy; zeroed: none
    TimeNs   min_run;               // a job runs for at least this long before it is preempted
    uint32_t max_stops;             // of a job; 0: any number
} ClusterStopLimits;

// Constant during a run.
typedef struct ClusterSetup {
    const ClusterServer          *servers;
    const ClusterTenant          *tenants;
    const ClusterProfiles        *profiles;      // believed, by job class; NULL: every rate is 1
    const uint32_t               *profile_type;  // [n_types] index into profiles, or PROFILE_NONE
    uint32_t                      n_servers, n_tenants, n_types, n_racks;
    uint32_t                      n_slots;                        // concurrent jobs, at most
    uint32_t                      most_gpus;                      // of the largest server
    uint64_t                      gpus, cores_milli, memory_mib;  // of all servers
    TimeNs                        round;         // period of decisions; 0: at every event
    TimeNs                        round_first;   // start of the first round
    TimeNs                        restart;       // see cluster_restart
    TimeNs                        restart_wide;  // for jobs that span servers
    ClusterStopLimits             stops;
    bool                          restart_by_class;
    bool                          quotas;     // some tenant has a guarantee or a limit
    bool                          fractions;  // some job requests less than a whole GPU
    bool                          no_gpus;    // some job requests no GPU
    bool                          shares;  // GPUs may be shared: fractions or profiles are in use
    bool                          gpus_only;  // cores and memory are not limited
    bool                          in_rounds;  // progress counts whole iterations per round
    bool                          anew;       // all jobs are placed anew at every event
    Rng                           rng;        // stream of random numbers for the policy
    const struct ClusterForecast *forecast;   // for policies that ask for it; else NULL
    bool                          elastic;    // some job may run on other numbers of GPUs
} ClusterSetup;

// What every policy knows of a job, whatever it knows of durations.
typedef struct ClusterJob {
    uint64_t id;  // ascending by submission
    TimeNs   submit;
    int64_t  iterations;               // 0: unknown
    TimeNs   iteration;                // time of one with the default demand; 0: unknown
    uint32_t gpus;                     // 0: CPU only
    uint32_t gpus_min, gpus_max;       // of an elastic job, around gpus; 0: not elastic
    uint32_t gpu_milli;                // of each
    uint32_t gpu_types;                // bit t: GPU type t is acceptable; 0: any
    uint32_t cores_milli, memory_mib;  // the gang's default demand
    uint32_t class, tenant;            // index, or CLUSTER_NONE; the class is believed
    int32_t priority;                  // larger is more urgent
    // Bit i: it may run on server i; NULL: on any. Equal sets share one pointer, valid as long as
    // the setup.
    const uint64_t *servers;
} ClusterJob;

typedef struct ClusterSlice {  // a job's allocation on one server
    uint64_t mask;             // GPUs; 0 in a plan: the lowest with enough free
    uint32_t server, gpus;     // a gang has at most one slice per server
    uint32_t gpu_milli;        // of each GPU; 0 in a plan: as requested, or as allocated
    uint32_t cores_milli, memory_mib;
} ClusterSlice;

typedef enum ClusterState { CLUSTER_GONE, CLUSTER_WAITING, CLUSTER_RUNNING } ClusterState;

typedef struct ClusterSpread {  // of beliefs, where an estimator gives them; zeroed: none
    double index;    // per second of work: endings to expect at the best horizon (Gittins)
    double mean_s;   // arithmetic mean of the work left
    double left_sd;  // of the logarithm of the work left
    double rate_sd;  // of the logarithm of its rate at other amounts
} ClusterSpread;

typedef struct ClusterTask {  // a job that has arrived and not ended
    ClusterJob          job;
    ClusterState        state;
    uint32_t            preemptions, rescales, n_slices;
    const ClusterSlice *slices;    // [n_slices] while it runs
    uint64_t            entry;     // sequence number of the last change between waiting and running
    TimeNs              since;     // time of that change
    TimeNs              held;      // time with GPUs until `mark`
    int64_t             extra;     // GPU time until `mark` beyond `held` times its submitted GPUs
    TimeNs              left;      // work left at `mark`, `owed` included; or CLUSTER_UNKNOWN
    TimeNs              owed;      // restart cost after a preemption; passes at rate 1
    TimeNs              mark;      // time up to which progress is accounted
    double              rate;      // since `mark`: exact, or measured, or believed until measured
    double              measured;  // rate at its present allocation; 0: not measured yet
    TimeNs              measured_at;  // time of that measurement
    int64_t             done;         // iterations, if in_rounds
    ClusterSpread       spread;
    bool lent;  // its tenant has more than its guarantee while another one waits below its own
} ClusterTask;

typedef struct ServerState {  // free resources and resident tasks
    uint32_t        gpus;     // wholly free
    uint32_t        gpu_milli;
    uint32_t        cores_milli, memory_mib;
    const uint16_t *parts;      // [the server's GPUs] free thousandths
    const uint32_t *residents;  // [n_residents] tasks
    uint32_t        n_residents;
} ServerState;

enum {  // reasons for a call of decide(), bits
    CLUSTER_JOB_ARRIVED = 1,
    CLUSTER_JOB_ENDED = 2,
    CLUSTER_TIMER = 4,
    CLUSTER_ROUND = 8,
    CLUSTER_BELIEF = 16,   // the class of a job is believed to be another one
    CLUSTER_SERVERS = 32,  // the servers that a waiting job may run on changed
};

typedef struct ClusterView {  // borrowed: valid during the call
    TimeNs              now;
    const ClusterSetup *setup;
    const ClusterTask  *tasks;    // [setup->n_slots] a task keeps its slot while it is alive
    const uint32_t     *waiting;  // [n_waiting] slots, by entry
    const uint32_t     *running;  // [n_running] slots, by entry
    const ServerState  *servers;  // [setup->n_servers]
    uint32_t            n_waiting, n_running;
    uint32_t            reason;
    // Since the first submission, modulo 2^64, so that differences are exact: the integral of the
    // number of alive jobs over time, and the time with at least one.
    uint64_t alive_ns, busy_ns;
} ClusterView;

typedef enum ClusterVerb {
    CLUSTER_START,    // run a waiting task on slices with all its GPUs
    CLUSTER_PREEMPT,  // return a running task to waiting, see cluster_may_preempt and
                      // cluster_may_rescale; it owes a restart
    CLUSTER_RESIZE,   // change amounts and gpu_milli of a running task's slices
    CLUSTER_WAKE,     // call decide() at `at`, unless an event comes first; not in rounds
} ClusterVerb;

typedef struct ClusterAction {
    ClusterVerb         verb;
    uint32_t            task;      // slot
    uint32_t            n_slices;  // START, RESIZE
    const ClusterSlice *slices;    // owned by the policy, valid until its next call
    TimeNs              at;        // WAKE
    bool                probe;     // RESIZE: to measure the rate; no rule depends on it
} ClusterAction;

typedef enum ClusterKnowledge {  // of a job's duration
    CLUSTER_BLIND,               // none
    CLUSTER_PREDICTED,           // an estimate
    CLUSTER_ORACLE,              // exact
} ClusterKnowledge;

typedef struct ClusterPolicy {
    const char      *name, *about;
    const char      *paper;  // published source; NULL: textbook or original
    ClusterKnowledge knows;
    bool             preempts;
    bool             learned;
    bool             forecasts;  // gets setup->forecast
    const char      *of;         // the policy that it is a component of; NULL: independent
    const Setting   *rows;       // its constants
    uint32_t         n_rows;
    size_t           settings_size;  // of the struct that the rows fill
    // Reads files named by settings (weights) once before runs; NULL: none. init gets the result as
    // `loaded`; it is immutable and shared between threads.
    Err (*load)(const ClusterSetup *setup, const void *settings, Arena *a, const void **loaded);
    size_t (*state_size)(const ClusterSetup *setup, const void *settings);  // NULL: none
    // The state is zeroed. Leave arrays of n_slots untouched: few of their pages are ever used.
    void (*init)(void *state, const ClusterSetup *setup, const void *settings, const void *loaded);
    // Writes at most max actions (room for three per task) and returns their number; allocates
    // nothing. Other tasks keep waiting or running.
    uint32_t (*decide)(void *state, const ClusterView *view, ClusterAction *out, uint32_t max);
} ClusterPolicy;

// Work that a preemption adds to a job.
static inline TimeNs cluster_restart(const ClusterSetup *s, const ClusterJob *j) {
    bool   classed = s->restart_by_class && s->profiles != NULL && j->class != CLUSTER_NONE;
    double own_s = classed ? s->profiles->at[j->class].restart_s : 0;
    if (own_s > 0) return (TimeNs)(own_s * (double)CLUSTER_SECOND + 0.5);
    return j->gpus > s->most_gpus ? s->restart_wide : s->restart;
}

// Progress in `ns` at a rate, after what is owed, which is included.
static inline TimeNs cluster_progress_at(TimeNs owed, double rate, TimeNs ns) {
    if (ns <= owed || rate == 1.0) return ns;
    return owed + (TimeNs)((double)(ns - owed) * rate);
}

// Progress of a running task in `ns` after its mark, `owed` included.
static inline TimeNs cluster_progress(const ClusterTask *t, TimeNs ns) {
    return cluster_progress_at(t->owed, t->rate, ns);
}

// A running task may be preempted: it has run for long enough, and was not stopped too often or
// runs on lent GPUs.
static inline bool cluster_may_preempt(const ClusterSetup *s, const ClusterTask *t, TimeNs now) {
    const ClusterStopLimits *x = &s->stops;
    bool                     often = x->max_stops > 0 && t->preemptions >= x->max_stops;
    return now - t->since >= x->min_run && (!often || t->lent);
}

// A running elastic task may be preempted to start in the same plan with another number of GPUs.
// That is no stop: max_stops neither limits nor counts it.
static inline bool cluster_may_rescale(const ClusterSetup *s, const ClusterTask *t, TimeNs now) {
    return t->job.gpus_max > t->job.gpus_min && now - t->since >= s->stops.min_run;
}

// The job may run on so many GPUs.
static inline bool cluster_gpus_allowed(const ClusterJob *j, uint32_t gpus) {
    return gpus == j->gpus || (gpus >= j->gpus_min && gpus <= j->gpus_max && gpus > 0);
}

static inline uint32_t cluster_slices_gpus(const ClusterSlice *s, uint32_t n) {
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < n; i++) gpus += s[i].gpus;
    return gpus;
}

// The job as if it had been submitted with so many GPUs, and their part of its demand.
static inline ClusterJob cluster_job_on(const ClusterJob *j, uint32_t gpus) {
    ClusterJob x = *j;
    if (gpus == j->gpus || j->gpus == 0) return x;
    x.gpus = gpus;
    x.cores_milli = (uint32_t)((uint64_t)j->cores_milli * gpus / j->gpus);
    x.memory_mib = (uint32_t)((uint64_t)j->memory_mib * gpus / j->gpus);
    return x;
}

// The same with the GPUs that slices have.
static inline ClusterJob cluster_job_as(const ClusterJob *j, const ClusterSlice *s, uint32_t n) {
    return cluster_job_on(j, cluster_slices_gpus(s, n));
}

// Work left, as time at rate 1; CLUSTER_UNKNOWN for blind policies.
static inline TimeNs cluster_left(const ClusterView *v, const ClusterTask *t) {
    if (t->left < 0 || t->state != CLUSTER_RUNNING) return t->left;
    TimeNs did = cluster_progress(t, v->now - t->mark);
    return did < t->left ? t->left - did : 0;
}

// Time with GPUs.
static inline TimeNs cluster_held(const ClusterView *v, const ClusterTask *t) {
    return t->held + (t->state == CLUSTER_RUNNING ? v->now - t->mark : 0);
}

static inline uint64_t cluster_gpu_milli(const ClusterJob *j) {  // of all its GPUs
    return (uint64_t)j->gpus * j->gpu_milli;
}

// The job may run on some servers only.
static inline bool cluster_is_restricted(const ClusterJob *j) {
    return (j->gpu_types != 0 && j->gpus > 0) || j->servers != NULL;
}

// The server is one of the job's, and its GPU type is acceptable.
static inline bool cluster_server_fits(const ClusterSetup *s, const ClusterJob *j,
                                       uint32_t server) {
    if (j->servers != NULL && (j->servers[server / 64] >> server % 64 & 1) == 0) return false;
    return j->gpu_types == 0 || j->gpus == 0 || (j->gpu_types >> s->servers[server].type & 1) != 0;
}

// GPUs of the largest server that the job may run on.
static inline uint32_t cluster_largest(const ClusterSetup *s, const ClusterJob *j) {
    uint32_t most = 0;
    if (!cluster_is_restricted(j)) return s->most_gpus;
    for (uint32_t i = 0; i < s->n_servers; i++)
        if (s->servers[i].gpus > most && cluster_server_fits(s, j, i)) most = s->servers[i].gpus;
    return most;
}

// GPU time beyond `held` times its submitted GPUs.
static inline int64_t cluster_extra(const ClusterTask *t, TimeNs now) {
    bool runs = t->state == CLUSTER_RUNNING && t->job.gpus_max > t->job.gpus_min;
    if (!runs) return t->extra;
    int64_t more = (int64_t)cluster_slices_gpus(t->slices, t->n_slices) - t->job.gpus;
    return t->extra + (now - t->mark) * more;
}

// Attained service in GPU seconds.
static inline double cluster_attained(const ClusterView *v, const ClusterTask *t) {
    return ((double)cluster_held(v, t) * (double)cluster_gpu_milli(&t->job) +
            (double)cluster_extra(t, v->now) * (double)t->job.gpu_milli) /
           (1e3 * (double)CLUSTER_SECOND);
}
