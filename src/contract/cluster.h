// Cluster: what a policy sees of servers with GPUs that tenants' jobs share, and what it may
// answer.
//
// A job is a gang: all its GPUs at once or none. An engine calls decide() at events (a job comes or
// ends, a time asked for) or at rounds. The answer is a plan of steps that are taken in order: jobs
// are started on slices of servers, stopped, or given other amounts of cores, memory and GPUs while
// they run. What a plan takes has to be free at that step; a plan that over-commits a server,
// splits a gang or puts jobs on a GPU whose memory cannot hold them aborts the run. A job goes on
// at a rate (contract/rate.h): 1 is the speed that it has with its default demand.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/settings.h"
#include "base/clock.h"
#include "contract/cluster_profile.h"

enum {
    CLUSTER_GPUS = 64,         // of a server, at most
    CLUSTER_WHOLE_GPU = 1000,  // thousandths of a GPU
};
#define CLUSTER_NONE    UINT32_MAX
#define CLUSTER_UNKNOWN INT64_C(-1)
#define CLUSTER_SECOND  INT64_C(1000000000)

typedef struct ClusterServer {
    const char *name;
    uint32_t    gpus, cores_milli, memory_mib;
    uint32_t    rack, type;  // of its GPUs, by number
} ClusterServer;

typedef struct ClusterTenant {
    const char *name;
    double      weight;  // 1 is usual, more is a larger share
} ClusterTenant;

// What stays the same through a run.
typedef struct ClusterSetup {
    const ClusterServer   *servers;
    const ClusterTenant   *tenants;
    const ClusterProfiles *profiles;      // by class; NULL: every rate is 1
    const uint32_t        *profile_type;  // [n_types] in profiles, or PROFILE_NONE
    uint32_t               n_servers, n_tenants, n_types, n_racks;
    uint32_t               n_slots;                        // of jobs alive at once, at most
    uint32_t               most_gpus;                      // of a server
    uint64_t               gpus, cores_milli, memory_mib;  // of all servers
    TimeNs                 round;         // decisions at its multiples only; 0: at every event
    TimeNs                 round_first;   // they are counted from there
    TimeNs                 restart;       // see cluster_restart
    TimeNs                 restart_wide;  // of jobs wider than a server
    bool                   restart_by_class;
    bool                   fractions;  // some job asks for less than a whole GPU
    bool                   no_gpus;    // some job asks for none
    bool                   shares;     // GPUs may be held in parts: there are fractions or profiles
    bool                   gpus_only;  // cores and memory are not rationed
    bool                   in_rounds;  // progress is whole iterations, a round at a time
    Rng                    rng;        // a policy's own stream
} ClusterSetup;

// What a policy may know of a job whatever it knows of durations.
typedef struct ClusterJob {
    uint64_t id;  // in the order of submission
    TimeNs   submit;
    int64_t  iterations;               // 0: not known
    TimeNs   iteration;                // one of them with the default demand; 0: not known
    uint32_t gpus;                     // 0: it runs on CPUs alone
    uint32_t gpu_milli;                // of each
    uint32_t gpu_types;                // bit t: type t will do; 0: any will
    uint32_t cores_milli, memory_mib;  // the gang's default demand
    uint32_t class, tenant;            // by number; or CLUSTER_NONE
    int32_t priority;                  // larger is more urgent
} ClusterJob;

typedef struct ClusterSlice {  // what a job has of one server
    uint64_t mask;             // which GPUs; 0 in a plan: any that are free enough, lowest first
    uint32_t server, gpus;     // a gang has a server once
    uint32_t gpu_milli;        // of each GPU; 0 in a plan: what the job asks for, or has
    uint32_t cores_milli, memory_mib;
} ClusterSlice;

typedef enum ClusterState { CLUSTER_GONE, CLUSTER_WAITING, CLUSTER_RUNNING } ClusterState;

typedef struct ClusterTask {  // a job that came and has not ended
    ClusterJob          job;
    ClusterState        state;
    uint32_t            preemptions, n_slices;
    const ClusterSlice *slices;  // [n_slices] while it runs
    uint64_t            entry;   // numbers every beginning to wait or to run, ascending
    TimeNs              since;   // when it began to wait or to run
    TimeNs              held;    // GPUs, until `mark`
    TimeNs              left;    // of its work at `mark`, owed with it; or CLUSTER_UNKNOWN
    TimeNs              owed;    // of that, the restart after a preemption: passes at rate 1
    TimeNs              mark;
    double              rate;  // since `mark`
    int64_t             done;  // iterations, where rounds count them
} ClusterTask;

typedef struct ServerState {  // what is free, and who is there
    uint32_t        gpus;     // wholly free
    uint32_t        gpu_milli;
    uint32_t        cores_milli, memory_mib;
    const uint16_t *parts;      // [of the server's GPUs] free thousandths
    const uint32_t *residents;  // [n_residents] tasks
    uint32_t        n_residents;
} ServerState;

enum {  // why decide() is called, as bits
    CLUSTER_JOB_ARRIVED = 1,
    CLUSTER_JOB_ENDED = 2,
    CLUSTER_TIMER = 4,
    CLUSTER_ROUND = 8,
};

typedef struct ClusterView {  // borrowed: valid only while the call lasts
    TimeNs              now;
    const ClusterSetup *setup;
    const ClusterTask  *tasks;    // [setup->n_slots] a task keeps its slot while it lives
    const uint32_t     *waiting;  // [n_waiting] slots, by entry
    const uint32_t     *running;  // [n_running] slots, by entry
    const ServerState  *servers;  // [setup->n_servers]
    uint32_t            n_waiting, n_running;
    uint32_t            reason;
    // Since the first submission, modulo 2^64, so that differences are exact: jobs that are there,
    // times nanoseconds; and nanoseconds in which somebody is.
    uint64_t alive_ns, busy_ns;
} ClusterView;

typedef enum ClusterVerb {
    CLUSTER_START,    // a waiting task on slices that hold all its GPUs
    CLUSTER_PREEMPT,  // a running task: it waits again, and owes a restart
    CLUSTER_RESIZE,   // a running task's slices as it has them, with new amounts and gpu_milli
    CLUSTER_WAKE,     // decide again at a time, when nothing else happens before; not in rounds
} ClusterVerb;

typedef struct ClusterAction {
    ClusterVerb         verb;
    uint32_t            task;      // slot
    uint32_t            n_slices;  // START, RESIZE
    const ClusterSlice *slices;    // the policy's own, valid until it is called again
    TimeNs              at;        // WAKE
} ClusterAction;

typedef enum ClusterKnowledge {  // of how much work a job is
    CLUSTER_BLIND,               // nothing
    CLUSTER_PREDICTED,           // an estimate
    CLUSTER_ORACLE,              // all
} ClusterKnowledge;

typedef struct ClusterPolicy {
    const char      *name, *about;
    const char      *paper;  // that it follows; NULL: a textbook, or our own idea
    ClusterKnowledge knows;
    bool             preempts;
    bool             learned;
    const char      *of;    // the policy of which it is a part, no rival of it; NULL: none
    const Setting   *rows;  // its constants
    uint32_t         n_rows;
    size_t           settings_size;  // of the struct that the rows fill
    // What settings name on disk (weights) is read once, before runs; NULL: nothing is. The result
    // is handed to init as `loaded` and never changes, so that threads may share it.
    Err (*load)(const ClusterSetup *setup, const void *settings, Arena *a, const void **loaded);
    size_t (*state_size)(const ClusterSetup *setup, const void *settings);  // NULL: none
    // The state is zeroed. Parts for n_slots are best left untouched: few are ever in use.
    void (*init)(void *state, const ClusterSetup *setup, const void *settings, const void *loaded);
    // Writes at most max actions, which is room for three a task, and returns how many. No memory
    // is allocated. What is not named waits, or goes on.
    uint32_t (*decide)(void *state, const ClusterView *view, ClusterAction *out, uint32_t max);
} ClusterPolicy;

// What a stop adds to a job's work.
static inline TimeNs cluster_restart(const ClusterSetup *s, const ClusterJob *j) {
    bool   classed = s->restart_by_class && s->profiles != NULL && j->class != CLUSTER_NONE;
    double own_s = classed ? s->profiles->at[j->class].restart_s : 0;
    if (own_s > 0) return (TimeNs)(own_s * (double)CLUSTER_SECOND + 0.5);
    return j->gpus > s->most_gpus ? s->restart_wide : s->restart;
}

// How far a running task gets in `ns` after its mark, what it owes included.
static inline TimeNs cluster_progress(const ClusterTask *t, TimeNs ns) {
    if (ns <= t->owed || t->rate == 1.0) return ns;
    return t->owed + (TimeNs)((double)(ns - t->owed) * t->rate);
}

// Work that is left, in time at rate 1; CLUSTER_UNKNOWN to those that are not told.
static inline TimeNs cluster_left(const ClusterView *v, const ClusterTask *t) {
    if (t->left < 0 || t->state != CLUSTER_RUNNING) return t->left;
    TimeNs did = cluster_progress(t, v->now - t->mark);
    return did < t->left ? t->left - did : 0;
}

// Time that it had GPUs.
static inline TimeNs cluster_held(const ClusterView *v, const ClusterTask *t) {
    return t->held + (t->state == CLUSTER_RUNNING ? v->now - t->mark : 0);
}

static inline uint64_t cluster_gpu_milli(const ClusterJob *j) {  // all its GPUs'
    return (uint64_t)j->gpus * j->gpu_milli;
}

// GPUs of a server are of a type that it takes.
static inline bool cluster_type_fits(const ClusterSetup *s, const ClusterJob *j, uint32_t server) {
    return j->gpu_types == 0 || j->gpus == 0 || (j->gpu_types >> s->servers[server].type & 1) != 0;
}

// Service so far, in GPU seconds.
static inline double cluster_attained(const ClusterView *v, const ClusterTask *t) {
    return (double)cluster_held(v, t) * (double)cluster_gpu_milli(&t->job) /
           (1e3 * (double)CLUSTER_SECOND);
}
