// KubeExtender: answers of the extender protocol of kube-scheduler (filter, prioritize, bind,
// preempt), for clusters that keep it. The node is the one that the scheduler itself would choose.
//
// filter leaves only that node, so that kube-scheduler's own scores do not lead elsewhere. Pods and
// nodes are looked up by name and uid in KubeState; what a request says of them is not believed.
#pragma once

#include "kube/kube_fit.h"

typedef enum KubeExtenderVerb {
    EXTENDER_FILTER,
    EXTENDER_PRIORITIZE,
    EXTENDER_BIND,
    EXTENDER_PREEMPT,
    EXTENDER_VERBS
} KubeExtenderVerb;

enum { EXTENDER_WHY = 256 };

typedef struct KubeExtender {
    KubeState *state;
    // The node on which the scheduler would start the pod now, among those with a bit in `allowed`
    // (order of kube_state_nodes), all of which fit; NULL: it lets it wait, and says why. was: the
    // node that it was assumed on. The function NULL: kube_extender_best.
    KubeNode *(*place)(void *self, KubePod *p, KubeNode *was, const uint64_t *allowed,
                       char why[EXTENDER_WHY]);
    bool  assumes;  // the pod is assumed on the node that was chosen
    void *self;
} KubeExtender;

// The fullest node that suffices: fewest free GPUs, then cores; the first of several.
KubeNode *kube_extender_best(const KubeState *s, const KubePod *p, const uint64_t *allowed);

// filter, prioritize, preempt: *out is the response, to be freed. ERR_PARSE or ERR_INVALID: the
// request is malformed. What the protocol can say (an unknown pod) is in the response.
MUST_USE Err kube_extender_answer(const KubeExtender *x, KubeExtenderVerb v, const char *body,
                                  size_t len, char **out);

// bind: the pod and the node, checked against the state: the uid is the pod's, it is not bound and
// fits there. *fault: why not, in a; NULL: it may be bound.
MUST_USE Err kube_extender_bind(const KubeExtender *x, const char *body, size_t len, Arena *a,
                                KubePod **pod, KubeNode **node, const char **fault);
