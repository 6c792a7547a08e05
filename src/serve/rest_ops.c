// What operators ask: metrics, and why a request was late.
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

void rest_ops(RestCall *c) {
    switch (c->route.kind) {
    case ROUTE_METRICS: tell_metrics(c); break;
    case ROUTE_WHY: tell_why(c); break;
    case ROUTE_MISSES: tell_misses(c); break;
    default: rest_error(c->x, c, 404, 0, "there is nothing at this path"); break;
    }
}
