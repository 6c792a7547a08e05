// POST .../infer: a body into an InferCall, and what came of it into an answer.
#include <stdio.h>
#include <string.h>

#include "serve/rest/rest_int.h"

enum { LONG_JSON = 1 << 18 };  // bytes

// A header that is a whole number; false: it is there and is none.
static bool whole(Str s, uint64_t *out) {
    uint64_t v = 0;
    if (s.len == 0 || s.len > 18) return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9') return false;
        v = v * 10 + (uint64_t)(s.at[i] - '0');
    }
    *out = v;
    return true;
}

static void reject(Rest *r, Exchange *x, const Route *route, uint32_t status, const char *why) {
    RestCall *c = rest_call(r, x, route);
    if (c != NULL) rest_error(x, c, status, 0, why);
}

// What can be said before the body: an unknown model costs its sender no more than that.
void rest_infer_head(Rest *r, Exchange *x, const Route *route) {
    Str      length = exchange_header(x, "inference-header-content-length");
    Str      model = {route->name, strlen(route->name)};
    Str      version = {route->version, strlen(route->version)};
    uint64_t header;
    if (registry_find(r->o.registry, model, version) == NULL) {
        char why[200];
        (void)snprintf(why, sizeof why, "model '%s'%s%s is not known", route->name,
                       version.len > 0 ? " version " : "", route->version);
        reject(r, x, route, 404, why);
        return;
    }
    if (length.at == NULL) return;
    if (!whole(length, &header) || (x->declared != UINT64_MAX && header > x->declared &&
                                    exchange_header(x, "content-encoding").at == NULL))
        reject(r, x, route, 400,
               "Inference-Header-Content-Length is no number of bytes within the body");
    else
        x->aligned = header % 64;
}

static void encode(RestCall *c) {
    InferCall    *a = c->call;
    struct iovec *pieces = arena_try_new(&a->arena, struct iovec, EXCHANGE_PIECES);
    uint32_t      n = 0;
    size_t        header = SIZE_MAX, most = (size_t)c->rest->o.set->response_mb << 20;
    char          length[24];
    Err           e = ERR_LIMIT;
    if (pieces != NULL) e = infer_json_encode(&a->response, most, &a->arena, pieces, &n, &header);
    if (e != ERR_OK) {
        rest_error(c->x, c, e == ERR_LIMIT ? 413 : 400, 0, err_why());
        return;
    }
    Answer answer = {.type = header == SIZE_MAX ? "application/json" : "application/octet-stream",
                     .body = pieces,
                     .n_body = n};
    answer.extra[answer.n_extra++] =
        (ExchangeHeader){{"x-cotenant-id", 13}, {a->receipt.id, strlen(a->receipt.id)}};
    if (header != SIZE_MAX) {
        (void)snprintf(length, sizeof length, "%zu", header);
        answer.extra[answer.n_extra++] =
            (ExchangeHeader){{"inference-header-content-length", 31}, {length, strlen(length)}};
    }
    for (uint32_t i = 0; i < n; i++) c->bytes += pieces[i].iov_len;
    exchange_answer(c->x, &answer);
}

static void done(void *self, InferCall *a) {
    RestCall *c = self;
    if (a->receipt.end == RECEIPT_OK)
        encode(c);
    else
        rest_error(c->x, c, receipt_http_status(a->receipt.end), a->retry_s, a->error);
}

static bool asks_timing(const Exchange *x) {
    Str v = exchange_header(x, "x-cotenant-timing");
    return v.len == 1 && v.at[0] == '1';
}

static void take(Rest *r, Exchange *x, const Route *route) {
    Str      model = {route->name, strlen(route->name)};
    Str      version = {route->version, strlen(route->version)};
    Str      length = exchange_header(x, "inference-header-content-length");
    Str      limit = exchange_header(x, "x-request-timeout-ms");
    uint64_t header = SIZE_MAX, ms = 0;
    if ((length.at != NULL && (!whole(length, &header) || header > x->body_len))) {
        reject(r, x, route, 400, "Inference-Header-Content-Length is larger than the body");
        return;
    }
    if (limit.at != NULL && !whole(limit, &ms)) {
        reject(r, x, route, 400, "x-request-timeout-ms is no number of milliseconds");
        return;
    }
    InferCall *a =
        dispatcher_open(r->o.dispatcher, RECEIPT_REST, x->began, x->arrived, x->body_len);
    RestCall *c = a != NULL ? arena_try_new(&a->arena, RestCall, 1) : NULL;
    if (c == NULL) {
        if (a != NULL) dispatcher_cancel(r->o.dispatcher, a, NULL);
        RestCall *other = rest_call(r, x, route);
        if (other != NULL)
            rest_error(x, other, 503, 1, "as many requests as the server takes are on their way");
        return;
    }
    *c = (RestCall){.rest = r, .x = x, .call = a, .route = *route};
    x->user = c;
    Err e = infer_json_decode(x->body, x->body_len, (size_t)header, &a->arena, &a->request);
    if (e != ERR_OK) {
        dispatcher_reject(r->o.dispatcher, a, model, version, e);
        rest_error(x, c, receipt_http_status(a->receipt.end), 0, a->error);
        return;
    }
    a->request.timing = a->request.timing || asks_timing(x);
    if (ms > 86400000) ms = 86400000;
    dispatcher_submit(r->o.dispatcher, a, model, version, (TimeNs)ms * 1000000, done, c);
}

// Whether it takes so long to read that others come first.
static bool is_long(const Exchange *x) {
    Str      length = exchange_header(x, "inference-header-content-length");
    uint64_t bytes = x->body_len;
    if (length.at != NULL && (!whole(length, &bytes) || bytes > x->body_len)) return false;
    return bytes > LONG_JSON;
}

static void unlink_call(RestCall *c) {
    Rest     *r = c->rest;
    RestCall *before = NULL;
    for (RestCall *q = r->long_first; q != c; q = q->next) before = q;
    if (before != NULL)
        before->next = c->next;
    else
        r->long_first = c->next;
    if (r->long_last == c) r->long_last = before;
}

void rest_infer_forget(RestCall *c) {
    unlink_call(c);
    rest_free(c);
}

// One is read, and everybody else has a turn before the next.
static void read_next(void *self) {
    Rest     *r = self;
    RestCall *c = r->long_first;
    while (c != NULL) {
        Exchange *x = c->x;
        Route     route = c->route;
        rest_infer_forget(c);
        x->user = NULL;
        take(r, x, &route);
        c = r->long_first;
        if (c == NULL || loop_arm(r->o.loop, &r->long_turn, loop_now(r->o.loop) + 1) == ERR_OK)
            return;
    }
}

void rest_infer(Rest *r, Exchange *x, const Route *route) {
    if (!is_long(x)) {
        take(r, x, route);
        return;
    }
    RestCall *c = rest_call(r, x, route);
    if (c == NULL) return;
    c->queued = true;
    if (r->long_last != NULL)
        r->long_last->next = c;
    else
        r->long_first = c;
    r->long_last = c;
    r->long_turn.fire = read_next;
    r->long_turn.self = r;
    if (r->long_first == c && loop_arm(r->o.loop, &r->long_turn, loop_now(r->o.loop)) != ERR_OK)
        read_next(r);
}
