// ClusterKube's state. cluster_kube.c: life cycle and timers; cluster_kube_watch.c: watches,
// discovery and the lease; cluster_kube_decide.c: a decision; cluster_kube_write.c: the queue of
// writes and their outcomes; cluster_kube_status.c: conditions and events.
#pragma once

#include "kube/cluster_kube.h"
#include "kube/kube_watch.h"
#include "placement/tenant_quota.h"

typedef struct KubeWatchOf {  // one collection
    struct ClusterKube *engine;
    KubeKind            kind;
    KubeWatch          *watch;
    bool                listed, missing;
} KubeWatchOf;

typedef struct KubeWrite {
    struct KubeWrite   *next;
    struct ClusterKube *engine;
    KubeWriteKind       kind;
    KubeCall            call;
    char               *namespace_name, *name, *uid, *node;
    char               *path, *body, *second_path;  // second_path: of the pod, to read it
    uint64_t            serial, for_serial;         // of jobs; 0: none
    int64_t             cores_milli, bytes;         // RESIZE
    TimeNs              since, not_before;          // monotonic
    uint32_t            tries;
    bool                reads;      // the call under way reads the pod
    bool                cancelled;  // a pod of its gang failed
} KubeWrite;

typedef struct KubeWriteList {
    KubeWrite *first, *last;
    uint32_t   n;
} KubeWriteList;

struct ClusterKube {
    ClusterKubeOptions options;
    Loop              *loop;
    Arena              arena;
    KubeApi           *api;
    KubeLease         *lease;
    KubeState         *state;
    KubeJobs           jobs;
    KubeBeliefs        beliefs;
    KubeView           view;
    KubePlan           plan;
    KubePlanRules      rules;
    KubeWatchOf        watches[KUBE_KINDS];
    bool               open;  // state and jobs exist
    bool               policy_ready, leads, stopping, releasing;
    bool               discovered, has_eviction_v1;
    KubeCall           discovery;
    uint32_t           discovery_step;
    LoopTimer          decide_timer, tick_timer, stop_timer, discovery_timer;
    TimeNs             unix_base, mono_base, decided_at, wake_at, swept_at, asked_at;
    void              *policy_state;
    const void        *policy_loaded;
    ClusterAction     *actions;
    uint32_t           max_actions;
    TenantQuota        quota;
    KubeWriteList      binds, others;  // queued
    KubeWrite         *flying;         // [in_flight] under way
    uint32_t           in_flight;
    double             status_tokens;
    TimeNs             status_at;
    uint32_t           status_next;
    ClusterKubeCounts  counts;
    Rng                rng;
    uint32_t           reason;
    void (*stopped)(void *self);
    void *stopped_self;
};

TimeNs cluster_kube_now(const ClusterKube *k);  // Unix time that does not jump
bool   cluster_kube_may_write(const ClusterKube *k);
void   cluster_kube_changed(ClusterKube *k);  // decide soon
void   cluster_kube_log_error(const ClusterKube *k, const char *what);

MUST_USE Err cluster_kube_open(ClusterKube *k);   // state and jobs, empty
void         cluster_kube_close(ClusterKube *k);  // and what is queued
MUST_USE Err cluster_kube_watch(ClusterKube *k);
void         cluster_kube_unwatch(ClusterKube *k);
bool         cluster_kube_synced(const ClusterKube *k);
void         cluster_kube_discover(ClusterKube *k);

void cluster_kube_decide(ClusterKube *k);

MUST_USE Err cluster_kube_write_step(ClusterKube *k, const KubeStep *s);
MUST_USE Err cluster_kube_write_patch(ClusterKube *k, KubeWriteKind kind, const KubePodInfo *p,
                                      char *path, char *body);  // takes path and body
void         cluster_kube_pump(ClusterKube *k);                 // starts what may be written
void         cluster_kube_drop_writes(ClusterKube *k);
void         cluster_kube_landed(ClusterKube *k);  // a write ended: goes on with a stop
KubeJob     *cluster_kube_job(ClusterKube *k, uint64_t serial);

void cluster_kube_status(ClusterKube *k);  // conditions of waiting pods, at a bounded rate
// Why a job waits, as its condition says it. The jobs are up to date.
void cluster_kube_waiting(const ClusterKube *k, KubeJob *j, const char **reason, char *text,
                          size_t room);
void cluster_kube_event(ClusterKube *k, const KubePodInfo *p, const char *type, const char *reason,
                        const char *action, const char *note);
