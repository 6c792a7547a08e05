// REST inside: a call is an exchange with what its answer needs until it was sent.
#pragma once

#include "base/json.h"
#include "serve/rest/rest.h"
#include "serve/observe/engine_trace.h"

typedef struct RestListener {  // an address
    Rest    *rest;
    uint32_t where;
} RestListener;

typedef struct RestCall {
    Rest            *rest;
    Exchange        *x;      // NULL: the client has gone
    InferCall       *call;   // of an inference; the call lies in its arena
    char            *text;   // of any other: from malloc
    EngineTrace     *trace;  // whose text is sent
    struct iovec     piece;
    size_t           bytes;    // sent
    bool             waiting;  // somebody else will answer it
    bool             queued;   // its body is long and waits to be read
    struct RestCall *next;     // among those
    Route            route;
} RestCall;

struct Rest {
    RestOptions  o;
    RestListener listeners[REST_LISTENERS];
    uint32_t     n_listeners;
    Arena        scratch;                 // within one call
    EngineTrace *trace;                   // being recorded; NULL: none
    RestCall    *trace_call;              // who waits for it, or waited
    RestCall    *long_first, *long_last;  // bodies of much JSON: one is read a round
    LoopTimer    long_turn;
};

void rest_text(RestCall *c, uint32_t status, const char *type, const char *text, size_t len);
void rest_keep(RestCall *c, Str text);                      // of c->trace
void rest_json(RestCall *c, uint32_t status, json_t *doc);  // takes doc; NULL: no memory
void rest_error(Exchange *x, RestCall *c, uint32_t status, uint32_t retry_s, const char *why);
// A call for an exchange that is no inference; NULL: no memory, and it was answered.
RestCall *rest_call(Rest *r, Exchange *x, const Route *route);
void      rest_free(RestCall *c);

void rest_infer_head(Rest *r, Exchange *x, const Route *route);
void rest_infer(Rest *r, Exchange *x, const Route *route);
void rest_infer_forget(RestCall *c);  // one that is queued, whose client has gone
void rest_info(RestCall *c);          // server, models, readiness, config, stats
void rest_ops(RestCall *c);           // metrics, why, trace
void rest_admin(RestCall *c);         // index, load, unload
