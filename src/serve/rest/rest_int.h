// Internals of REST: a RestCall is an exchange with what its response needs until it was sent.
#pragma once

#include <string.h>

#include "base/coroutine.h"
#include "base/json.h"
#include "serve/host_rule.h"
#include "serve/rest/rest.h"
#include "serve/observe/engine_trace.h"

typedef struct RestListener {
    Rest    *rest;
    uint32_t where;  // ROUTE_MAIN, ROUTE_OPS, ROUTE_ADMIN
    HostRule rule;
} RestListener;

typedef struct RestPage RestPage;

typedef struct RestCall {
    Rest            *rest;
    Exchange        *x;      // NULL: the client has disconnected
    InferCall       *call;   // of an inference; NULL: not opened
    char            *text;   // body of any other response, from malloc
    EngineTrace     *trace;  // the body, for GET /trace
    RestPage        *page;   // the body, if it is written in slices
    struct iovec     piece;
    size_t           bytes;       // of the response
    bool             waiting;     // answered by a callback: registry, trace, page
    bool             only_ready;  // for the index
    struct RestCall *next;        // among free calls
    Route            route;
} RestCall;

typedef struct RestPages {  // being written, and to be written
    Coroutine *coroutine;
    LoopTimer  timer;
    RestCall  *current, *first, *last;
} RestPages;

struct Rest {
    RestOptions  o;
    RestListener listeners[REST_LISTENERS];
    uint32_t     n_listeners;
    Arena        scratch;  // valid within one request
    RestCall    *free;
    EngineTrace *trace;       // being recorded; NULL: none
    RestCall    *trace_call;  // that waits for it
    RestPages    pages;
};

// rest.c
void rest_text(RestCall *c, uint32_t status, const char *type, const char *text, size_t len);
// 200; text is that of c->trace or c->page, and not copied.
void rest_piece(RestCall *c, const char *type, Str text);
void rest_json(RestCall *c, uint32_t status, json_t *doc);  // takes doc; NULL: out of memory
void rest_error(RestCall *c, uint32_t status, uint32_t retry_s, const char *why);
void rest_free(RestCall *c);

// rest_page.c. `write` runs in a coroutine, in pieces: what it looks at between two
// coroutine_points may change.
typedef Err  RestPageWrite(RestCall *c, Arena *a, Str *out);
MUST_USE Err rest_pages_open(Rest *r);
void         rest_pages_close(Rest *r);
void         rest_page(RestCall *c, const char *type, RestPageWrite *write);
void         rest_page_free(RestPage *p);  // accepts NULL

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
