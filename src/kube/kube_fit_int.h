// KubeFit internals: what one pod asks of all nodes, computed once for all of them.
#pragma once

#include "kube/kube_fit.h"
#include "kube/kube_state_int.h"

typedef struct TopologyCount {  // pods in the domain key=value
    const KubeWord *key, *value;
    int64_t         n;
} TopologyCount;

typedef struct TopologyMap {
    TopologyCount *at;  // [cap], a power of 2; key NULL: free
    uint32_t       cap, n;
} TopologyMap;

typedef struct SpreadPlan {
    TopologyMap counts;
    int64_t     least;  // of all domains
    bool        self;   // the pod counts itself
} SpreadPlan;

typedef struct FitQuery FitQuery;
typedef bool            FitCheck(const FitQuery *q, KubeVerdict *why);

enum { FIT_CHECKS = 16 };

typedef struct FitPlan {
    const KubePod *pod;
    uint64_t       change;
    KubeVerdict    refused;      // on every node; FIT_OK: not
    bool           always;       // that stays true when all other pods leave
    TopologyMap    repelled;     // by anti-affinity of others
    TopologyMap    near, apart;  // of the pod's own terms
    TopologyMap    wishes;       // weights of preferred terms and counts of soft spread
    bool           alone;        // the first pod of an affinity that it matches itself
    SpreadPlan    *spread;       // [pod->n_spread]
    uint32_t       room_spread;
    bool           wished;              // `wishes` is filled in
    FitCheck      *checks[FIT_CHECKS];  // that can refuse this pod
    bool           others[FIT_CHECKS];  // depends on other pods
    uint32_t       n_checks;
    char           detail[512];
} FitPlan;

struct FitQuery {
    const KubeState   *state;
    const FitPlan     *plan;
    const KubePod     *pod;
    const KubeNode    *node;
    const KubeAmounts *amounts;
};

// kube_fit_topology.c
int64_t topology_get(const TopologyMap *m, const KubeWord *key, const KubeWord *value);
void    topology_add(TopologyMap *m, const KubeWord *key, const KubeWord *value, int64_t n);
void    topology_clear(TopologyMap *m);

// kube_fit_plan.c: the plan of a pod, computed anew if anything changed.
const FitPlan *fit_plan(const KubeState *s, const KubePod *p);

// kube_fit_others.c: affinity and spread.
void     fit_plan_others(const KubeState *s, FitPlan *f);
void     fit_plan_wishes(const KubeState *s, FitPlan *f);
bool     term_matches(const KubeState *s, const PodTerm *t, const KubePod *p);
FitCheck fit_check_repelled, fit_check_affinity, fit_check_apart, fit_check_spread;

// kube_fit_node.c: what depends on the node alone, and ports.
bool     fit_tolerates(const KubePod *p, const Taint *t);
bool     fit_node_selected(const KubePod *p, const KubeNode *n);
FitCheck fit_check_node, fit_check_taints, fit_check_selector, fit_check_ports;

// kube_fit_volumes.c
KubeVerdict fit_plan_volumes(const KubeState *s, FitPlan *f, bool *always);
FitCheck    fit_check_volumes, fit_check_limits, fit_check_devices;

// kube_fit.c
bool     fit_refuse(KubeVerdict *why, KubeFitReason reason, const char *detail);
FitCheck fit_check_resources;
int64_t  fit_short_of(const FitQuery *q, uint32_t resource);  // 0: there is enough
