// ClusterKube: the second engine behind contract/cluster.h: a policy places and sizes the pods of a
// real cluster, through its API server.
//
// Watches fill a KubeState; KubeJobs makes tasks of pods, KubeView the policy's view, KubePlan the
// steps on pods, which are written with at most eight calls at once. Nothing on disk is truth: a
// new leader lists everything again before it decides. Everything runs on the loop's thread.
#pragma once

#include "base/log.h"
#include "kube/kube_api.h"
#include "kube/kube_beliefs.h"
#include "kube/kube_lease.h"
#include "kube/kube_plan.h"
#include "kube/kube_view.h"

// A decision, with what is needed to record it; the pointers are valid during the call.
typedef struct KubeDecision {
    const KubePicture   *picture;
    const ClusterView   *view;
    const ClusterAction *plan;  // [n] of the policy
    uint32_t             n;
    TimeNs               took;  // in the policy
} KubeDecision;

typedef enum KubeWriteKind {
    KUBE_WRITE_BIND,
    KUBE_WRITE_EVICT,
    KUBE_WRITE_RESIZE,
    KUBE_WRITE_CONDITION,
    KUBE_WRITE_EVENT,
    KUBE_WRITE_KINDS
} KubeWriteKind;

typedef struct KubeWritten {  // outcome of a write
    KubeWriteKind kind;
    bool          done;
    const char   *namespace_name, *name, *uid, *node;  // node: NULL unless bound
    const char   *fault;                               // NULL: done
    TimeNs        took;                                // from the decision
} KubeWritten;

typedef struct ClusterKubeHooks {  // each may be NULL
    void (*decided)(void *self, const KubeDecision *d);
    void (*noted)(void *self, TimeNs at, const KubeNote *n);
    void (*written)(void *self, TimeNs at, const KubeWritten *w);
    void (*ended)(void *self, TimeNs at, const KubeJob *j, const ClusterTask *t);
    void *self;
} ClusterKubeHooks;

typedef struct ClusterKubeOptions {
    const KubeConfig    *config;
    KubeStateOptions     state;
    KubeLeaseOptions     lease;
    const ClusterPolicy *policy;
    const void          *settings;  // of the policy
    KubeBeliefOptions    beliefs;
    const TenantShares  *shares;  // NULL: equal weights, no quotas
    KubePreemption       preemption;
    ClusterStopLimits    stops;
    uint64_t             seed;
    const char          *switch_file;  // "act: all|bind|none", read again by reload; NULL: all
    bool                 dry_run, no_lease;
    const Log           *log;
    ClusterKubeHooks     hooks;
} ClusterKubeOptions;

typedef struct ClusterKubeCounts {
    uint64_t decisions, wakes, sweeps, setups;
    uint64_t written[KUBE_WRITE_KINDS], failed[KUBE_WRITE_KINDS];
    uint64_t conflicts;          // binds that another pod's or node's change made void
    uint64_t read_back;          // binds with an unknown outcome
    uint64_t notes[KUBE_NOTES];  // see KubeNoteKind
    TimeNs   decide_ns;
    uint32_t waiting, running, incomplete, assumed, in_flight, queued;
    bool     leads, synced;
} ClusterKubeCounts;

typedef struct ClusterKube ClusterKube;

// What its views follow, for records of them.
KubeRules cluster_kube_rules(const ClusterKubeOptions *o);

// Strings of the options are borrowed.
MUST_USE Err      cluster_kube_create(ClusterKube **out, Loop *l, const ClusterKubeOptions *o);
void              cluster_kube_destroy(ClusterKube *k);  // accepts NULL
MUST_USE Err      cluster_kube_reload(ClusterKube *k);   // the switch file
ClusterKubeCounts cluster_kube_counts(const ClusterKube *k);
// Ends what is in flight, releases the lease, keeps experience, then calls done().
void cluster_kube_stop(ClusterKube *k, void (*done)(void *self), void *self);
