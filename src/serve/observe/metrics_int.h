// Internals of Metrics: one MetricsModel per registry slot; the memory of unused ones is never
// touched.
#pragma once

#include "base/hist.h"
#include "base/str_buf.h"
#include "serve/observe/metrics.h"

enum { METRICS_EDGES = 8, METRICS_RECENT = 1024 };

typedef struct MetricsBuckets {
    uint64_t counts[METRICS_EDGES + 1];  // per bucket, not cumulative; the last is +Inf
    TimeNs   sum;
} MetricsBuckets;

typedef struct MetricsModel {
    const char    *model;  // NULL: slot not used
    TimeNs         target_ns;
    double         percentile;
    TimeNs         edges[METRICS_EDGES];
    MetricsBuckets request, queue, compute;
    uint64_t       ends[RECEIPT_ENDS], outcomes[RECEIPT_OUTCOMES], causes[RECEIPT_CAUSES];
    uint64_t       preemptions, conflicts, degraded, yields, demotions, tunings;
    double         core_ns;
    uint64_t       recent[METRICS_RECENT / 64];  // ring of bits: deadline met
    uint32_t       recent_at, recent_n, recent_met;
    uint32_t       n_versions;
    uint64_t       registered[METRICS_VERSIONS];  // order of registration, to evict the oldest
    TimeNs         last[METRICS_VERSIONS];        // last inference, monotonic clock
    MetricsRow     versions[METRICS_VERSIONS];
    Hist           latency, queueing, computing;  // since the start of the server, for percentiles
} MetricsModel;

struct Metrics {
    Arena         arena;
    bool          triton;
    NodeLive     *engine;   // NULL: not set
    double        started;  // Unix time [s]
    uint64_t      registrations;
    uint32_t      n_models;                     // highest slot used, plus 1
    uint64_t      unmatched[RECEIPT_ENDS];      // requests for unknown models
    uint32_t      tenant_models[LIVE_TENANTS];  // slot + 1 of each engine tenant; 0: none
    MetricsModel *models;                       // [REGISTRY_SLOTS]
};

typedef struct MetricsLoad {  // present load of a model, over its versions and tenants
    uint32_t waiting, running, cores;
    uint64_t memory_bytes;
    uint64_t request_bytes, request_limit;  // memory of its requests
    bool     ready, tuning;
} MetricsLoad;

typedef struct MetricsText {  // a Prometheus document being written
    const Metrics     *m;
    const MetricsNow  *now;
    const MetricsLoad *loads;     // [n_models]
    uint32_t           n_models;  // when it was begun: models may be added while it is written
    StrBuf             s;
} MetricsText;

// metrics.c. [n_models] in memory of a; live and f may be NULL.
MUST_USE Err metrics_loads(const Metrics *m, const LiveStatus *live, const ModelRegistry *f,
                           Arena *a, MetricsLoad **out);
double       metrics_hit_ratio(
          const MetricsModel *s);  // of the last METRICS_RECENT deadlines; 1 if there were none
bool metrics_attained(const MetricsModel *s);

const char *metrics_end_name(uint32_t end);
const char *metrics_cause_name(uint32_t cause);  // NULL for NONE
