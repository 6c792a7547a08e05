// KubeJobs: the pods of this scheduler as tasks of the cluster contract: gangs and single pods,
// each in a slot that it keeps while it has pods.
//
// A gang with too few pods is not shown to the policy and holds nothing. What the contract cannot
// say (gangs without GPUs, several GPU fractions) is marked `own`: the engine places it itself. A
// running task has the demand of its bound and assumed pods, so that what remains of a gang when a
// pod ends is exactly what it holds.
#pragma once

#include "contract/cluster.h"
#include "estimator/profile_posterior.h"
#include "kube/kube_state.h"

typedef struct KubeMember {  // a pod of a job
    char       *name, *uid;  // owned
    KubePod    *pod;         // valid until the state changes
    KubeAmounts asked;       // requests when it was first seen: the default demand
    uint64_t    mask;        // GPUs of its server, as numbered here: the kubelet's are not known
    uint32_t    server;      // CLUSTER_NONE: neither bound nor assumed, or out of scope
    uint32_t    seen;        // number of the update that last found it
    bool        bound;       // bound or assumed
    bool        free;        // may be bound: not bound, gated, deleted or unsupported
    bool        chosen;      // the job waits with it, or runs on it
    uint64_t    told;        // hash of the condition that was written; 0: none
    int64_t     want_cores, want_bytes;  // amounts of its start, set when it runs; 0: none
} KubeMember;

typedef enum KubeJobPhase {
    KUBE_JOB_INCOMPLETE,  // too few of its pods exist or may start
    KUBE_JOB_READY,       // all that start together may
    KUBE_JOB_RUNS,        // some are bound or assumed
} KubeJobPhase;

typedef struct KubeJob {
    char         *namespace_name, *name;  // of the gang, or of the pod; owned
    bool          gang, own, fungible, evicted;
    uint32_t      slot, next;  // next: in its bucket
    uint32_t      least;       // pods that start together; 0: not known yet
    KubeMember   *members;     // [n] as found
    uint32_t      n, room;
    uint32_t      n_bound, n_free;
    KubeJobPhase  phase;
    bool          waits_for_room;  // victims were evicted for it
    ClusterSlice *slices;          // of the task
    uint32_t      slices_room;
    uint64_t      shape;       // of what it holds: changes with its slices
    uint64_t      succeeded;   // its pods that ended well
    TimeNs        first;       // its first pod was created
    TimeNs        empty_from;  // a gang without pods since; 0: it has some
    TimeNs        retry_at, backoff;
    uint64_t      tried_at;    // version of the state at its last refusal; 0: none
    uint64_t      ready_at;    // version of the state when its servers were found; 0: never
    uint64_t      serial;      // of the job, never used again
    uint32_t      refusals;    // starts that did not fit, since it last started
    uint32_t      unfit;       // KubeFitReason that refused most nodes when its condition was made
    uint64_t      beaten_by;   // serial of the job that it was evicted for; 0: none
    TimeNs        room_until;  // while waits_for_room
    TimeNs        claimed_at;  // room was last looked for
    int32_t       priority_now;
    TimeNs        seen_at, told_at;  // by this process; its condition was looked at, 0: never
    uint64_t      told_version;      // of the state then
    TimeNs        resized_at;
    // Beliefs, see KubeBeliefs.
    bool            believed;
    JobTraits       traits;
    uint32_t        named;  // class by its model; or CLUSTER_NONE
    PosteriorRecord posterior;
    double          work_s, estimated_s;  // done; when its work left was estimated last
    uint64_t        estimated_after;
    double          unit_rate;    // iterations per second at rate 1; 0: not known
    TimeNs          reported_at;  // of the progress report used last
    double          reported;     // its iterations
} KubeJob;

typedef struct KubeBits {  // interned sets of servers, see kube_servers.c
    struct KubeBitSet *first;
    uint32_t           n, words, n_servers;
    uint64_t           generation;  // changes when the sets are dropped
    uint64_t           order;       // hash of the nodes' names in their order
} KubeBits;

typedef struct KubeJobs {
    KubeJob        **at;     // [n_slots], NULL: free
    ClusterTask     *tasks;  // [n_slots]
    uint32_t         n_slots, n;
    uint32_t        *buckets;            // [n_slots] slots by hash; CLUSTER_NONE: end
    uint32_t        *waiting, *running;  // [n_slots] visible slots by entry
    uint32_t         n_waiting, n_running;
    uint32_t         n_ready, n_incomplete;  // of all jobs
    char           **tenants;                // [n_tenants], owned
    uint32_t         n_tenants, tenants_room;
    uint32_t         updates, find_next;
    uint64_t         entries, ids, serials;
    TimeNs           now;
    TimeNs           held_from;  // accounts of running tasks are kept up to here
    KubeBits         bits;
    const KubeState *state;               // during an update
    uint64_t         find_left;           // nodes to look at for sets of servers in this update
    bool             find_more;           // some jobs wait for that: update again
    bool             fractions, no_gpus;  // some job has had a fraction, or no GPU
    bool             fungible;            // pods/resize exists
    uint32_t         reason;  // bits of what changed since the last decision, see contract
    void (*ended)(void *self, KubeJob *j, const ClusterTask *t);  // its last pod is gone; or NULL
    void *self;
} KubeJobs;

MUST_USE Err kube_jobs_init(KubeJobs *x, uint32_t slots);
void         kube_jobs_finish(KubeJobs *x);

// The pod ended by itself, and was not deleted: said before its state goes.
void kube_jobs_pod_ended(KubeJobs *x, const char *namespace_name, const char *name,
                         const char *uid);

// Reads all pods. now: Unix time.
MUST_USE Err kube_jobs_update(KubeJobs *x, const KubeState *s, TimeNs now);

// In kube_gang.c: phase, chosen pods, demand and slices of a job from its pods, and the GPUs that
// bound pods are taken to hold.
void         kube_gang_route(KubeJob *j);  // sets own
MUST_USE Err kube_gang_settle(KubeJobs *x, KubeJob *j);
MUST_USE Err kube_gang_masks(KubeJobs *x, const KubeState *s, Arena *scratch);

// In kube_servers.c: the servers of up to `most` waiting jobs that were not found since the state
// changed; sets job.servers. Jobs that may run nowhere keep an empty set.
MUST_USE Err kube_servers_find(KubeJobs *x, const KubeState *s, uint32_t most);
MUST_USE Err kube_servers_of(KubeJobs *x, const KubeState *s, KubeJob *j);
void         kube_servers_clear(KubeJobs *x);  // the nodes changed: every set is found anew

void kube_jobs_refused(KubeJobs *x, KubeJob *j, uint64_t version);  // it backs off
void kube_jobs_started(KubeJobs *x, KubeJob *j);                    // no back-off any more

static inline uint32_t kube_mib(int64_t bytes) {  // rounded up
    int64_t mib = (bytes + (1 << 20) - 1) >> 20;
    return mib < 0 ? 0 : mib > UINT32_MAX ? UINT32_MAX : (uint32_t)mib;
}

static inline uint32_t kube_amount(int64_t x) {
    return x < 0 ? 0 : x > UINT32_MAX ? UINT32_MAX : (uint32_t)x;
}
