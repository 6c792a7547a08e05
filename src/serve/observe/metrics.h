// Metrics: what a server counts, as Prometheus reads it and as the protocol's statistics.
//
// Everything happens on the loop's thread. Models have labels, and nothing that a client says.
#pragma once

#include "base/arena.h"
#include "net/listener.h"
#include "serve/models/registry.h"
#include "serve/observe/receipt.h"

typedef struct Metrics Metrics;

typedef struct MetricsNow {         // what is looked at when somebody asks
    const ModelRegistry *registry;  // NULL: all versions that took a slot
    const LiveStatus    *live;      // NULL: not known
    ListenerCounts       listeners[4];
    const char          *names[4];       // of the listeners; NULL: there is none
    uint32_t             open_requests;  // on their way
    bool                 ready;
    uint64_t             log_dropped, log_suppressed;  // lines
} MetricsNow;

enum { METRICS_BATCHES = 8, METRICS_VERSIONS = 16 };  // of a slot; older versions are forgotten

typedef struct MetricsSum {
    uint64_t count;
    TimeNs   ns;
} MetricsSum;

typedef struct MetricsRow {  // one version of a model
    const char *model, *version;
    uint64_t    last_ms;     // last inference, since 1970; 0: none
    uint64_t    inferences;  // those of batches counted one by one
    uint64_t    executions;
    MetricsSum  success, fail, queue, compute_input, compute_infer, compute_output;
    uint64_t    rejected, cancelled, broken;  // of fail: by us, by the client, while computing
    struct {
        uint64_t   size;
        MetricsSum compute_infer;
    } batches[METRICS_BATCHES];  // the first sizes that came, without those that failed
    uint32_t n_batches;
} MetricsRow;

MUST_USE Err metrics_create(Metrics **out, bool triton);
void         metrics_destroy(Metrics *m);  // accepts NULL
// A model takes a slot, or changes its target: buckets lie around it and start from 0. Strings live
// as long as the server. percentile: of requests that shall meet it.
void metrics_register(Metrics *m, uint32_t slot, const char *model, const char *version,
                      TimeNs target_ns, double percentile);
void metrics_engine(Metrics *m, NodeLive *engine);  // statistics then tell cores and queues too
void metrics_tenant(Metrics *m, uint32_t tenant, uint32_t slot);  // the engine's, from now on
void metrics_note(Metrics *m, const Receipt *r);                  // neither allocates nor waits
// Prometheus text, in a.
MUST_USE Err metrics_text(const Metrics *m, const MetricsNow *now, Arena *a, Str *out);
// The protocol's statistics of one model (name.at NULL: of all), with the causes of misses.
// f NULL: of all versions that took a slot.
MUST_USE Err metrics_stats(const Metrics *m, const ModelRegistry *f, Str name, Str version,
                           Arena *a, Str *out);
// What is known of a version; false: nothing.
bool metrics_read(const Metrics *m, uint32_t slot, const char *version, MetricsRow *out);
