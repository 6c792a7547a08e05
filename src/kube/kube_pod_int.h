// KubePod internals: the parts of reading a pod.
#pragma once

#include "kube/kube_state_int.h"

typedef struct PodReader {
    KubeState    *state;
    KubePod      *pod;
    KubeMemory   *memory;
    const json_t *meta, *spec, *status, *annotations;
} PodReader;

// The first field that cannot be honoured is kept.
void pod_refuse(PodReader *r, const char *fmt, ...) PRINTF(2, 3);
bool pod_known(PodReader *r, const json_t *object, const char *where, const char *const *known);

void pod_read_requests(PodReader *r);     // kube_pod_requests.c
void pod_read_marks(PodReader *r);        // kube_pod_marks.c: labels and annotations of ours
void pod_read_constraints(PodReader *r);  // kube_pod_constraints.c
void pod_read_affinity(PodReader *r);     // kube_pod_affinity.c
void pod_read_spread(PodReader *r);
void pod_read_volumes(PodReader *r);  // kube_pod_volumes.c
