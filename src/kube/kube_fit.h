// KubeFit: whether a pod may run on a node: requests, taints, selectors, affinity both ways,
// topology spread, host ports, volumes, node state. What is not understood is refused with the
// field's name, never guessed.
//
// What depends on other pods is counted once per pod for all nodes and kept in the state until it
// changes: ask for one pod on all nodes before the next pod, from one thread. A pod that is counted
// on a node does not stand in its own way there.
#pragma once

#include "kube/kube_state.h"

typedef enum KubeFitReason {
#define X(id, text) FIT_##id,
#include "kube/kube_fit_reason.def"
#undef X
} KubeFitReason;

typedef struct KubeVerdict {
    KubeFitReason reason;    // FIT_OK
    KubeResource  resource;  // with FIT_INSUFFICIENT
    int64_t       short_of;  // of it
    const char   *detail;    // taint, field, claim; NULL: none. Valid until the state changes
} KubeVerdict;

// With what is bound and assumed now. `amounts` replaces the pod's requests; NULL: its own.
bool kube_fit(const KubeState *s, const KubePod *p, const KubeNode *n, const KubeAmounts *amounts,
              KubeVerdict *why);
// The same without anything that other pods may change: what stays true when all of them leave.
bool kube_fit_ever(const KubeState *s, const KubePod *p, const KubeNode *n, KubeVerdict *why);
// Bits of all nodes, in the order of kube_state_nodes: may the pod run there, resources apart?
void kube_fit_nodes(const KubeState *s, const KubePod *p, uint64_t *bits);
// Soft constraints (preferred affinity, PreferNoSchedule, ScheduleAnyway): larger is better.
int64_t kube_fit_score(const KubeState *s, const KubePod *p, const KubeNode *n);

// "0/200 nodes are available: 120 Insufficient nvidia.com/gpu, 80 node(s) had untolerated
// taint(s)." Counts by reason, most first; returns the length. The dominant reason goes to *most.
size_t kube_fit_message(const KubeState *s, const KubePod *p, char *out, size_t room,
                        KubeVerdict *most);
