// KubeWhy: why a pod is where it is: the reason that refuses most nodes, numbers by reason, what
// would help, its place in the queue and what its job is believed to be, as JSON.
#pragma once

#include "kube/kube_fit.h"

typedef struct KubeWait {   // what the scheduler itself knows of a pod; zeroed: nothing
    const char *queue;      // "active", "backoff", "unschedulable", "gated"; NULL: none
    const char *verdict;    // why the last attempt did not place it; NULL: not attempted
    uint32_t    place, of;  // among waiting jobs, from 1; 0: not among them
    uint32_t    attempts;
    TimeNs      waited, retry_in;
    uint32_t    gang_pods, gang_least;  // pods that exist, and that must start together
    const char *policy;
    const char *class_name;               // believed; NULL: none
    TimeNs      left;                     // believed work left at rate 1; negative: not known
    double      left_sd;                  // of its logarithm; 0: none
    double      rate, rate_sd, measured;  // 0: not known
    const char *reports;                  // where its progress is known from; NULL: from nowhere
} KubeWait;

// A new object; NULL: no memory. node counts: as of now, with all that is assumed.
json_t *kube_why(const KubeState *s, const KubePod *p, const KubeWait *w);

// In kube_help.c: what would let the pod start, computed against every node: an array of
// {"kind", "text", ...}, most direct first; empty if nothing is known to help.
json_t *kube_help(const KubeState *s, const KubePod *p);

// "4", "6.5", "12 GiB": an amount of a resource in the unit that people use for it.
enum { KUBE_AMOUNT_TEXT = 48 };
const char *kube_amount_text(KubeResource r, int64_t amount, char out[KUBE_AMOUNT_TEXT]);
const char *kube_amount_unit(KubeResource r, int64_t amount);  // "GPUs", "cores", "memory"

// The names of pods in the namespace that are nearest to `name`, for "did you mean"; NULL: none.
const char *kube_why_meant(const KubeState *s, const char *namespace_name, const char *name);
