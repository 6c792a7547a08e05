// KubeBeliefs: what policies are told of live jobs: classes, rates and work left, from names,
// progress reports and the history of ended jobs.
//
// It is told what the simulator's estimator is told, and estimates in the same way. Only fungible
// jobs have a class: what others get is fixed, so levels would be of no use. Pods never share GPUs
// that they requested whole, so no pair of classes is said to fit on one.
#pragma once

#include "cluster/information.h"
#include "estimator/estimator.h"
#include "kube/kube_jobs.h"

enum { KUBE_UNIT_RATES = 512 };

typedef struct KubeUnitRate {  // iterations per second at rate 1, by name and number of GPUs
    uint64_t key;              // 0: free
    double   per_s;
} KubeUnitRate;

typedef struct KubeBeliefs {
    EstimatorKind    kind;  // off, own or shared
    ClusterKnowledge knows;
    ClusterProfiles  library, profiles;  // as loaded; what policies see
    HypothesisTable  table;
    Estimator        estimator;
    const char      *experience;  // file of the estimator's records; NULL: none
    DurationRecord  *running;     // [n_running] of the last update
    uint32_t         n_running, running_room, renew_next;
    KubeUnitRate     rates[KUBE_UNIT_RATES];
    uint64_t         reports, ended;
} KubeBeliefs;

typedef struct KubeBeliefOptions {
    EstimatorKind    kind;
    ClusterKnowledge knows;       // of durations: at most what the policy can use
    const char      *profiles;    // file or shipped name; NULL: default
    const char      *experience;  // NULL: none
} KubeBeliefOptions;

MUST_USE Err kube_beliefs_init(KubeBeliefs *b, const KubeBeliefOptions *o, Arena *a);
void         kube_beliefs_finish(KubeBeliefs *b);
MUST_USE Err kube_beliefs_save(const KubeBeliefs *b);

// Classes, rates and work left of all jobs that are shown; sets CLUSTER_BELIEF in x->reason if a
// class changed. s: the setup in which their slices are.
void kube_beliefs_update(KubeBeliefs *b, KubeJobs *x, const ClusterSetup *s);
// A job's last pod is gone; what it did counts if its pods ended well.
void kube_beliefs_ended(KubeBeliefs *b, const KubeJob *j);
