// Internals of REST: a RestCall is an exchange with what its response needs until it was sent.
#pragma once

#include <string.h>

#include "base/json.h"
#include "serve/host_rule.h"
#include "serve/rest/rest.h"
#include "serve/observe/engine_trace.h"

typedef struct RestListener {
    Rest    *rest;
    uint32_t where;  // ROUTE_MAIN, ROUTE_OPS, ROUTE_ADMIN
    HostRule rule;
} RestListener;

typedef struct RestCall {
    Rest            *rest;
    Exchange        *x;      // NULL: the client has disconnected
    InferCall       *call;   // of an inference; NULL: not opened
    char            *text;   // body of any other response, from malloc
    EngineTrace     *trace;  // the body, for GET /trace
    struct iovec     piece;
    size_t           bytes;    // of the response
    bool             waiting;  // answered by a callback: registry or trace
    struct RestCall *next;     // among free calls
    Route            route;
} RestCall;

struct Rest {
    RestOptions  o;
    RestListener listeners[REST_LISTENERS];
    uint32_t     n_listeners;
    Arena        scratch;  // valid within one request
    RestCall    *free;
    EngineTrace *trace;       // being recorded; NULL: none
    RestCall    *trace_call;  // that waits for it
};

// rest.c
void rest_text(RestCall *c, uint32_t status, const char *type, const char *text, size_t len);
void rest_trace(RestCall *c, Str text);                     // sends c->trace's text without a copy
void rest_json(RestCall *c, uint32_t status, json_t *doc);  // takes doc; NULL: out of memory
void rest_error(RestCall *c, uint32_t status, uint32_t retry_s, const char *why);
void rest_free(RestCall *c);

// rest_infer.c
void rest_infer_head(RestCall *c);
void rest_infer(RestCall *c);

extern const InferCodec rest_codec;  // rest_codec.c

// rest_config.c
json_t *rest_config_json(const ModelInfo *s);
void    rest_settings(RestCall *c);  // trace and log settings: read-only

// rest_endpoints.c
json_t *rest_shape_json(const Tensor *t);
void    rest_info(RestCall *c);   // server, models, readiness, config, statistics
void    rest_ops(RestCall *c);    // metrics, why, trace
void    rest_admin(RestCall *c);  // repository index, load, unload
