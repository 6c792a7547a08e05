// Route: the REST endpoint that a method and a path name, with decoded and checked model names.
#pragma once

#include <stdint.h>

#include "base/tensor.h"

enum { ROUTE_MAIN = 1, ROUTE_OPS = 2, ROUTE_ADMIN = 4, ROUTE_NAME = 129 };

typedef enum RouteKind {
    ROUTE_NONE,            // 404
    ROUTE_WRONG_METHOD,    // 405: `allow` has the right one
    ROUTE_WRONG_LISTENER,  // 403: not served at this address
    ROUTE_BAD_NAME,        // 400: invalid model name or version
    ROUTE_SERVER,
    ROUTE_LIVE,
    ROUTE_READY,
    ROUTE_MODELS,
    ROUTE_STATS,
    ROUTE_MODEL,
    ROUTE_MODEL_READY,
    ROUTE_CONFIG,
    ROUTE_TRACE_SETTING,
    ROUTE_LOGGING,
    ROUTE_REGIONS,  // of shared memory: none
    ROUTE_UNREGISTER,
    ROUTE_REGISTER,
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
    const char *allow;                // of WRONG_METHOD
    char        name[ROUTE_NAME];     // of the model, or id of the request; "": none
    char        version[ROUTE_NAME];  // "": none
} Route;

// where: one of ROUTE_MAIN, ROUTE_OPS, ROUTE_ADMIN.
void route_find(Str method, Str path, uint32_t where, Route *out);

// A number in the query string; `otherwise` if it is missing, -1 if it is not a number.
int64_t route_query(Str query, const char *key, int64_t otherwise);
