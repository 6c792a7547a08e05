// Metrics inside: a row for each model that ever took a slot. Pages nobody counts in stay
// untouched.
#pragma once

#include "base/hist.h"
#include "serve/observe/metrics.h"
#include "serve/observe/str_buf.h"

enum { METRICS_EDGES = 8, METRICS_RECENT = 1024 };

typedef struct MetricsBuckets {
    uint64_t counts[METRICS_EDGES + 1];  // not yet summed; the last is beyond all edges
    TimeNs   sum;
} MetricsBuckets;

typedef struct MetricsModel {
    const char    *model;  // NULL: nobody sits here
    TimeNs         target_ns;
    double         percentile;
    TimeNs         edges[METRICS_EDGES];
    MetricsBuckets request, queue, compute;
    uint64_t       ends[RECEIPT_ENDS], outcomes[RECEIPT_OUTCOMES], causes[RECEIPT_CAUSES];
    uint64_t       preemptions, conflicts, degraded;
    double         core_ns;
    uint64_t       recent[METRICS_RECENT / 64];  // bits: whether the last deadlines were met
    uint32_t       recent_at, recent_n, recent_met;
    uint32_t       n_versions;
    uint64_t       registered[METRICS_VERSIONS];  // when: the oldest gives way
    TimeNs         last[METRICS_VERSIONS];        // inference, by the steady clock
    MetricsRow     versions[METRICS_VERSIONS];
    Hist           latency, queueing, computing;  // since the start, for percentiles
} MetricsModel;

struct Metrics {
    Arena         arena;
    bool          triton;
    NodeLive     *engine;   // NULL: nobody said
    double        started;  // since 1970 [s]
    uint64_t      registrations;
    uint32_t      n_models;                     // one behind the last that was taken
    uint64_t      unmatched[RECEIPT_ENDS];      // requests without a model
    uint32_t      tenant_models[LIVE_TENANTS];  // slot plus 1 of the engine's tenants; 0: nobody's
    MetricsModel *models;                       // [REGISTRY_SLOTS]
};

typedef struct MetricsLoad {  // of a model now, summed over its versions and tenants
    uint32_t waiting, running, cores;
    uint64_t memory_bytes;
    bool     ready;
} MetricsLoad;

typedef struct MetricsText {  // what is written for Prometheus, and from what
    const Metrics     *m;
    const MetricsNow  *now;
    const MetricsLoad *loads;  // [n_models]
    StrBuf             s;
} MetricsText;

// [n_models], in a; live and f may be NULL.
MUST_USE Err metrics_loads(const Metrics *m, const LiveStatus *live, const ModelRegistry *f,
                           Arena *a, MetricsLoad **out);
double       metrics_hit_ratio(const MetricsModel *s);  // of the recent ones; 1 when there are none
bool         metrics_attained(const MetricsModel *s);

// Families of the engine, listeners and the server; of the process itself; and, for dashboards that
// know Triton, of its names.
void metrics_server(MetricsText *t);
void metrics_process(const Metrics *m, StrBuf *s);
void metrics_triton(MetricsText *t);
void metrics_family(StrBuf *s, const char *name, const char *type, const char *help);
