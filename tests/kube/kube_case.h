// KubeCase: a KubeState for tests, filled from JSON with single quotes.
#pragma once

#include "kube/kube_fit.h"

typedef struct KubeCase {
    KubeState *state;
} KubeCase;

void    kube_case_begin(KubeCase *c, const KubeStateOptions *o);
void    kube_case_end(KubeCase *c);
json_t *kube_case_json(const char *fmt, ...) PRINTF(1, 2);  // the caller's
void    kube_case_put(KubeCase *c, KubeKind k, const char *fmt, ...) PRINTF(3, 4);
void    kube_case_gone(KubeCase *c, KubeKind k, const char *fmt, ...) PRINTF(3, 4);
// A node with 4 cores, 8 GiB and 10 pods; metadata's and spec's further members, each after a
// comma.
void kube_case_node(KubeCase *c, const char *name, const char *meta, const char *spec);
// A pending pod of ours in namespace default.
KubePod    *kube_case_pod(KubeCase *c, const char *name, const char *meta, const char *spec);
KubePod    *kube_case_bound(KubeCase *c, const char *name, const char *node, const char *meta,
                            const char *spec);
KubeVerdict kube_case_fit(KubeCase *c, const char *pod, const char *node);
