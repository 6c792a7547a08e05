// KubeProgress: a report of a job's iterations over HTTP, checked: what the annotation
// cotenant.io/progress says too, for jobs that may not change their own pod.
//
// POST /progress {"namespace": "ml", "pod": "train-0", "uid": "...", "iterations": 1200,
// "iterations_per_second": 3.5}. The last member may be missing. The uid is the pod's own, from the
// downward API: reports for a pod of the same name that is gone are rejected.
#pragma once

#include "kube/kube_state.h"

enum { PROGRESS_BYTES = 4096, PROGRESS_WHY = 256 };

typedef struct KubeReport {
    KubePod *pod;
    double   iterations, rate;  // rate: iterations per second; 0: not said
} KubeReport;

// now: Unix time. Returns the HTTP status: 200; 400 with a malformed body; 404 for an unknown pod,
// 409 for another uid or a pod that is not running; 429 within a second of its last report.
uint32_t kube_progress_read(const KubeState *s, const char *body, size_t len, TimeNs now,
                            KubeReport *out, char why[PROGRESS_WHY]);
