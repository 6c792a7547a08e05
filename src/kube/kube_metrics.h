// KubeMetrics: what the Kubernetes scheduler counts, as text for Prometheus under the names that
// dashboards of kube-scheduler know. Names of pods are never labels.
#pragma once

#include "base/str_buf.h"
#include "kube/kube_api.h"
#include "kube/kube_fit.h"
#include "kube/kube_watch.h"

typedef enum KubeCounter {
#define X(counter, id, labels) KUBE_COUNT_##id,
#include "kube/kube_counter_value.def"
#undef X
    KUBE_COUNTERS
} KubeCounter;

typedef enum KubeDuration {
#define X(id, name, label, first, n, help) KUBE_TIME_##id,
#include "kube/kube_duration.def"
#undef X
    KUBE_DURATIONS
} KubeDuration;

// SERIES: of one histogram: attempts 1 to 14 and "15+", verbs, or one
enum { KUBE_BOUNDS = 20, KUBE_SERIES = 15, KUBE_FIT_REASONS = FIT_UNSUPPORTED + 1 };

typedef struct KubeHistogram {
    uint64_t counts[KUBE_BOUNDS + 1];  // the last one: beyond every bound
    double   sum;
} KubeHistogram;

typedef struct KubeMetrics {  // zeroed: nothing yet; owned by the loop's thread
    uint64_t      counts[KUBE_COUNTERS];
    KubeHistogram times[KUBE_DURATIONS][KUBE_SERIES];
} KubeMetrics;

// What is read when the text is made; NULL and zeroes are left out or are 0.
typedef struct KubeGauges {
    const char     *profile;  // the scheduler's name
    const char     *lease;    // name of the lease; NULL: none
    const char     *host;     // of the API server
    const KubeApi  *api;      // for rest_client_requests_total
    KubeWatchCounts watches[KUBE_KINDS];
    bool            watched[KUBE_KINDS];
    bool            leader, frozen;  // frozen: evictions and resizes are switched off
    uint32_t        active, backoff, unschedulable, gated;  // pending pods
    uint32_t        nodes, pods, assumed;
    uint32_t        unfit[KUBE_FIT_REASONS];  // unschedulable pods by dominant reason
    TimeNs          now;                      // monotonic, for the age of watches
} KubeGauges;

void kube_metrics_count(KubeMetrics *m, KubeCounter c);
void kube_metrics_time(KubeMetrics *m, KubeDuration d, double seconds_or_number);
void kube_metrics_sli(KubeMetrics *m, uint32_t attempts, double seconds);
void kube_metrics_call(KubeMetrics *m, const char *verb, TimeNs took);

// Prometheus text format 0.0.4.
MUST_USE Err kube_metrics_text(const KubeMetrics *m, const KubeGauges *now, Arena *a, Str *out);

const char *kube_fit_plugin(KubeFitReason r);  // kube-scheduler's name of what refuses so
const char *kube_kind_name(KubeKind k);        // "pods"
