// Rest: the Open Inference Protocol (KServe v2) over HTTP, with endpoints for metrics, why, traces
// and model administration.
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
    Budget              *memory;  // of all requests
    const ServeSettings *set;
    bool (*ready)(const void *self);  // whether the server is ready for requests
    // Fills in the names and counts of the listeners, and of the log.
    void (*listeners)(const void *self, MetricsNow *now);
    const void *self;
} RestOptions;

MUST_USE Err rest_create(Rest **out, const RestOptions *o);
void         rest_destroy(Rest *r);  // accepts NULL; its listeners are closed

// where: any of ROUTE_MAIN, ROUTE_OPS, ROUTE_ADMIN. address: of the listener. At most
// REST_LISTENERS times; valid as long as r.
ExchangeHandler rest_handler(Rest *r, uint32_t where, const char *address);
