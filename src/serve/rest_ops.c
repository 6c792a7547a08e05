// What operators ask: metrics, why a request was late, a trace of the next seconds.
#include <stdio.h>
#include <string.h>

#include "serve/rest_int.h"

static void tell_metrics(RestCall *c) {
    Rest      *r = c->rest;
    MetricsNow at = {.fleet = r->o.fleet, .asks = desk_busy(r->o.desk)};
    LiveStatus live;
    Str        out;
    arena_rewind(&r->scratch, 0);
    Err e = node_live_status(r->o.engine, &r->scratch, &live);
    at.live = &live;
    at.ready = r->o.ready(r->o.self);
    r->o.listeners(r->o.self, &at);
    if (e == ERR_OK) e = metrics_text(r->o.metrics, &at, &r->scratch, &out);
    if (e == ERR_OK)
        rest_text(c, 200, "text/plain; version=0.0.4; charset=utf-8", out.at, out.len);
    else
        rest_error(c->x, c, 503, 1, err_why());
}

static void tell_why(RestCall *c) {
    Rest          *r = c->rest;
    Str            out, id = {c->route.name, strlen(c->route.name)};
    const Receipt *receipt = ledger_find(r->o.ledger, id);
    arena_rewind(&r->scratch, 0);
    if (receipt == NULL)
        rest_error(c->x, c, 404, 0, "no request of this name is remembered: see why_requests");
    else if (ledger_explain(receipt, &r->scratch, &out) != ERR_OK)
        rest_error(c->x, c, 503, 1, err_why());
    else
        rest_text(c, 200, "application/json", out.at, out.len);
}

static void tell_misses(RestCall *c) {
    Rest   *r = c->rest;
    int64_t n = route_query(c->x->query, "misses", 10);
    Str     out;
    arena_rewind(&r->scratch, 0);
    if (n < 1 || n > 1000)
        rest_error(c->x, c, 400, 0, "misses is a number from 1 to 1000");
    else if (ledger_misses(r->o.ledger, (uint32_t)n, &r->scratch, &out) != ERR_OK)
        rest_error(c->x, c, 503, 1, err_why());
    else
        rest_text(c, 200, "application/json", out.at, out.len);
}

static void traced(void *self, Trace *t) {
    RestCall *c = self;
    Str       text;
    c->waiting = false;
    c->trace = t;
    c->rest->trace = NULL;
    if (c->x == NULL)
        rest_free(c);
    else if (trace_take(t, &text) != ERR_OK)
        rest_error(c->x, c, 503, 1, err_why());
    else
        rest_keep(c, text);
}

static void begin_trace(RestCall *c) {
    Rest        *r = c->rest;
    int64_t      seconds = route_query(c->x->query, "seconds", 1);
    TraceOptions o = {.loop = r->o.loop,
                      .engine = r->o.engine,
                      .span = seconds * 1000000000,
                      .most = (size_t)r->o.set->trace_mb << 20,
                      .done = traced,
                      .self = c};
    o.names = desk_names(r->o.desk, &o.n_names);
    if (seconds < 1 || seconds > 60) {
        rest_error(c->x, c, 400, 0, "seconds is a number from 1 to 60");
    } else if (r->trace != NULL) {
        rest_error(c->x, c, 409, 1, "another trace is being recorded");
    } else if (trace_begin(&r->trace, &o) != ERR_OK) {
        rest_error(c->x, c, 503, 1, err_why());
    } else {
        c->waiting = true;
        r->tracer = c;
    }
}

void rest_ops(RestCall *c) {
    switch (c->route.kind) {
    case ROUTE_METRICS: tell_metrics(c); break;
    case ROUTE_WHY: tell_why(c); break;
    case ROUTE_MISSES: tell_misses(c); break;
    default: begin_trace(c); break;
    }
}
