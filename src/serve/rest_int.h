// REST inside: a call is an exchange with what its answer needs until it was sent.
#pragma once

#include "base/json.h"
#include "serve/rest.h"
#include "serve/trace.h"

typedef struct RestPort {  // an address
    Rest    *rest;
    uint32_t where;
} RestPort;

typedef struct RestCall {
    Rest            *rest;
    Exchange        *x;      // NULL: the client has gone
    Ask             *ask;    // of an inference; the call lies in its arena
    char            *text;   // of any other: from malloc
    Trace           *trace;  // whose text is sent
    struct iovec     piece;
    size_t           bytes;    // sent
    bool             waiting;  // somebody else will answer it
    bool             queued;   // its body is long and waits to be read
    struct RestCall *next;     // among those
    Route            route;
} RestCall;

struct Rest {
    RestOptions o;
    RestPort    ports[REST_PORTS];
    uint32_t    n_ports;
    Arena       scratch;                 // within one call
    Trace      *trace;                   // being recorded; NULL: none
    RestCall   *tracer;                  // who waits for it, or waited
    RestCall   *long_first, *long_last;  // bodies of much JSON: one is read a round
    LoopTimer   long_turn;
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
