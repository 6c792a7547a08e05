// Rest: the Open Inference Protocol over HTTP, and what operators ask: metrics, why, traces,
// models.
#pragma once

#include "net/exchange.h"
#include "net/listener.h"
#include "serve/dispatcher.h"
#include "serve/rest/route.h"

enum { REST_LISTENERS = 4 };

typedef struct Rest Rest;

typedef struct RestOptions {
    Loop                *loop;
    Dispatcher          *dispatcher;
    ModelRegistry       *registry;
    Metrics             *metrics;
    RequestHistory      *history;
    NodeLive            *engine;
    const ServeSettings *set;
    bool (*ready)(const void *self);  // the server takes requests
    // Counts of the listeners for the metrics; names and counts [4].
    void (*listeners)(const void *self, MetricsNow *now);
    const void *self;
} RestOptions;

MUST_USE Err rest_create(Rest **out, const RestOptions *o);
void         rest_destroy(Rest *r);  // accepts NULL; after its listeners were closed

// where: ROUTE_MAIN, ROUTE_OPS, ROUTE_ADMIN or several; REST_LISTENERS times. Lives as long as r.
ExchangeHandler rest_handler(Rest *r, uint32_t where);
