// Metrics: what a server counts, as Prometheus reads it and as the protocol's statistics.
#pragma once

#include "base/arena.h"
#include "net/listener.h"
#include "serve/fleet.h"
#include "serve/receipt.h"

typedef struct Metrics Metrics;

typedef struct MetricsNow {  // what is looked at when somebody asks
    const Fleet      *fleet;
    const LiveStatus *live;
    ListenerCounts    listeners[4];
    const char       *names[4];  // of the listeners; NULL: there is none
    uint32_t          asks;      // on their way
    bool              ready;
} MetricsNow;

MUST_USE Err metrics_create(Metrics **out, bool triton);
void         metrics_destroy(Metrics *m);  // accepts NULL
// A model takes a seat, or changes its target: buckets lie around it.
void metrics_seat(Metrics *m, uint32_t seat, const char *model, const char *version,
                  TimeNs target_ns);
void metrics_note(Metrics *m, const Receipt *r);  // neither allocates nor waits
// Prometheus text, in a.
MUST_USE Err metrics_text(const Metrics *m, const MetricsNow *now, Arena *a, Str *out);
// The protocol's statistics of one model (name.at NULL: of all), with the causes of misses.
MUST_USE Err metrics_stats(const Metrics *m, const Fleet *f, Str name, Str version, Arena *a,
                           Str *out);
