// Route: what a method and a path of REST ask for. The path is decoded once, names are checked.
#pragma once

#include <stdint.h>

#include "base/tensor.h"

enum { ROUTE_MAIN = 1, ROUTE_OPS = 2, ROUTE_ADMIN = 4, ROUTE_NAME = 129 };

typedef enum RouteKind {
    ROUTE_NONE,            // 404
    ROUTE_WRONG_METHOD,    // 405: allow says what
    ROUTE_WRONG_LISTENER,  // 403: not at this address
    ROUTE_BAD_NAME,        // 400: a name that is none
    ROUTE_SERVER,
    ROUTE_LIVE,
    ROUTE_READY,
    ROUTE_MODELS,
    ROUTE_STATS,
    ROUTE_MODEL,
    ROUTE_MODEL_READY,
    ROUTE_CONFIG,
    ROUTE_INFER,
    ROUTE_INDEX,
    ROUTE_LOAD,
    ROUTE_UNLOAD,
    ROUTE_METRICS,
    ROUTE_WHY,
    ROUTE_MISSES,
    ROUTE_TRACE,
} RouteKind;

typedef struct Route {
    RouteKind   kind;
    const char *allow;                // OTHER
    char        name[ROUTE_NAME];     // of the model or the request; "" when there is none
    char        version[ROUTE_NAME];  // ""
} Route;

// where: one of ROUTE_MAIN, ROUTE_OPS, ROUTE_ADMIN.
void route_find(Str method, Str path, uint32_t where, Route *out);

// A number of the query, `otherwise` when it is missing; -1: it is none.
int64_t route_query(Str query, const char *key, int64_t otherwise);
