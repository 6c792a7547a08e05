// Metrics: counters of the server and its models, for Prometheus and the protocol's statistics.
//
// All functions are called on the loop's thread. Labels are model names and fixed words, never text
// from a client.
#pragma once

#include "base/arena.h"
#include "net/listener.h"
#include "net/loop.h"
#include "serve/models/registry.h"
#include "serve/observe/receipt.h"

typedef struct Metrics Metrics;

typedef struct MetricsNow {         // present state, filled in for each scrape
    const ModelRegistry *registry;  // NULL: report all versions ever registered
    const LiveStatus    *live;      // NULL: unknown
    ListenerCounts       listeners[4];
    const char          *names[4];  // of the listeners; NULL: off
    LoopCounts           loop;
    uint32_t             open_requests;  // in flight
    bool                 ready;
    uint64_t             log_dropped, log_suppressed;  // lines
    const Budget        *memory;                       // of all requests; NULL: unknown
} MetricsNow;

enum { METRICS_BATCHES = 8, METRICS_VERSIONS = 16 };  // kept per model

typedef struct MetricsSum {
    uint64_t count;
    TimeNs   ns;
} MetricsSum;

typedef struct MetricsRow {  // one version of a model
    const char *model, *version;
    uint64_t    last_ms;     // Unix time of the last inference; 0: none
    uint64_t    inferences;  // a batch of n counts n
    uint64_t    executions;
    MetricsSum  success, fail, queue, compute_input, compute_infer, compute_output;
    uint64_t    rejected, cancelled,
        broken;  // parts of fail: by the server, by the client, by a layer
    struct {
        uint64_t   size;
        MetricsSum compute_infer;
    } batches[METRICS_BATCHES];  // by batch size: the first sizes seen, successes only
    uint32_t n_batches;
} MetricsRow;

MUST_USE Err metrics_create(Metrics **out, bool triton);
void         metrics_destroy(Metrics *m);  // accepts NULL
// Registers a version of a model, or its new target: histogram buckets depend on the target and
// start from 0. Strings must live as long as the server. percentile: share of requests to meet the
// target.
void metrics_register(Metrics *m, uint32_t slot, const char *model, const char *version,
                      TimeNs target_ns, double percentile);
void metrics_tuned(Metrics *m, uint32_t slot);      // faster kernel versions are in service
void metrics_engine(Metrics *m, NodeLive *engine);  // for cores and queues in statistics
void metrics_tenant(Metrics *m, uint32_t tenant,
                    uint32_t slot);  // this engine tenant belongs to the model from now on
void metrics_note(Metrics *m, const Receipt *r);  // never allocates or blocks
// Prometheus text format, in memory of a.
MUST_USE Err metrics_text(const Metrics *m, const MetricsNow *now, Arena *a, Str *out);
// The protocol's statistics of one model (name.at NULL: all) as JSON, with causes of misses. f
// NULL: all versions ever registered.
MUST_USE Err metrics_stats(const Metrics *m, const ModelRegistry *f, Str name, Str version,
                           Arena *a, Str *out);
// Counters of a version; false: not registered.
bool metrics_read(const Metrics *m, uint32_t slot, const char *version, MetricsRow *out);
