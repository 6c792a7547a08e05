// POST /v2/models/NAME/infer: decodes a body into an InferCall and encodes its response.
#include <stdio.h>
#include <string.h>

#include "serve/rest/rest_int.h"
#include "serve/server_metadata.h"

enum { LONG_JSON = 1 << 18, DAY_MS = 86400000 };  // LONG_JSON: bytes

// A header's value as a whole number of at most 18 digits; false: it is not one.
static bool parse_count(Str s, uint64_t *out) {
    uint64_t v = 0;
    if (s.len == 0 || s.len > 18) return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9') return false;
        v = v * 10 + (uint64_t)(s.at[i] - '0');
    }
    *out = v;
    return true;
}

// Rejects what the head alone shows to be wrong: an unknown model does not get to send its body.
void rest_infer_head(RestCall *c) {
    Exchange    *x = c->x;
    const Route *route = &c->route;
    Str          length = exchange_header(x, "inference-header-content-length");
    Str          model = {route->name, strlen(route->name)};
    Str          version = {route->version, strlen(route->version)};
    uint64_t     header;
    if (registry_find(c->rest->o.registry, model, version) == NULL) {
        char why[METADATA_UNKNOWN];
        rest_error(c, 404, 0, metadata_unknown(model, version, why));
        return;
    }
    if (length.at == NULL) return;
    if (!parse_count(length, &header) || (x->declared != UINT64_MAX && header > x->declared &&
                                          exchange_header(x, "content-encoding").at == NULL))
        rest_error(c, 400, 0,
                   "Inference-Header-Content-Length is not a number of bytes within the body");
    else
        x->aligned = header % TENSOR_ALIGN;
}

static void encode(RestCall *c) {
    InferCall    *call = c->call;
    struct iovec *pieces = arena_try_new(&call->arena, struct iovec, EXCHANGE_PIECES);
    uint32_t      n = 0;
    size_t        header = SIZE_MAX, most = (size_t)c->rest->o.set->response_mb << 20;
    char          length[24];
    Err           e = ERR_LIMIT;
    if (pieces != NULL)
        e = infer_json_encode(&call->response, most, &call->arena, pieces, &n, &header);
    if (e != ERR_OK) {
        rest_error(c, e == ERR_LIMIT ? 413 : 400, 0, err_why());
        return;
    }
    Answer answer = {.type = header == SIZE_MAX ? "application/json" : "application/octet-stream",
                     .body = pieces,
                     .n_body = n};
    answer.extra[answer.n_extra++] =
        (ExchangeHeader){{"x-cotenant-id", 13}, {call->receipt.id, strlen(call->receipt.id)}};
    if (call->receipt.timing.degraded)
        answer.extra[answer.n_extra++] = (ExchangeHeader){{"x-cotenant-degraded", 19}, {"1", 1}};
    if (header != SIZE_MAX) {
        (void)snprintf(length, sizeof length, "%zu", header);
        answer.extra[answer.n_extra++] =
            (ExchangeHeader){{"inference-header-content-length", 31}, {length, strlen(length)}};
    }
    for (uint32_t i = 0; i < n; i++) c->bytes += pieces[i].iov_len;
    exchange_answer(c->x, &answer);
}

static void done(void *self, InferCall *call) {
    RestCall *c = self;
    if (call->receipt.end == RECEIPT_OK)
        encode(c);
    else
        rest_error(c, receipt_http_status(call->receipt.end), call->retry_s, call->error);
}

static bool asks_timing(const Exchange *x) {
    Str v = exchange_header(x, "x-cotenant-timing");
    return v.len == 1 && v.at[0] == '1';
}

static void decode(RestCall *c) {
    Dispatcher *d = c->rest->o.dispatcher;
    Exchange   *x = c->x;
    Str         model = {c->route.name, strlen(c->route.name)};
    Str         version = {c->route.version, strlen(c->route.version)};
    Str         length = exchange_header(x, "inference-header-content-length");
    Str         limit = exchange_header(x, "x-request-timeout-ms");
    uint64_t    header = SIZE_MAX, ms = 0;
    if (length.at != NULL && (!parse_count(length, &header) || header > x->body_len)) {
        rest_error(c, 400, 0, "Inference-Header-Content-Length is larger than the body");
        return;
    }
    if (limit.at != NULL && !parse_count(limit, &ms)) {
        rest_error(c, 400, 0, "x-request-timeout-ms is not a number of milliseconds");
        return;
    }
    InferCall *call = dispatcher_open(d, RECEIPT_REST, x->began, x->arrived, x->body_len);
    if (call == NULL) {
        rest_error(c, 503, 1, DISPATCHER_LIMIT);
        return;
    }
    c->call = call;
    Err e = infer_json_decode(x->body, x->body_len, (size_t)header, &call->arena, &call->request);
    if (e != ERR_OK) {
        dispatcher_reject(d, call, model, version, e);
        rest_error(c, receipt_http_status(call->receipt.end), 0, call->error);
        return;
    }
    call->request.timing = call->request.timing || asks_timing(x);
    if (ms > DAY_MS) ms = DAY_MS;
    dispatcher_submit(d, call, model, version, (TimeNs)ms * 1000000, done, c);
}

// Whether its JSON takes so long to decode that shorter requests go first.
static bool is_long(const Exchange *x) {
    Str      length = exchange_header(x, "inference-header-content-length");
    uint64_t bytes = x->body_len;
    if (length.at != NULL && (!parse_count(length, &bytes) || bytes > x->body_len)) return false;
    return bytes > LONG_JSON;
}

void rest_infer_forget(RestCall *c) {
    Rest     *r = c->rest;
    RestCall *before = NULL;
    for (RestCall *q = r->long_first; q != c; q = q->next) before = q;
    if (before != NULL)
        before->next = c->next;
    else
        r->long_first = c->next;
    if (r->long_last == c) r->long_last = before;
    c->queued = false;
}

// Decodes one long body; the loop runs other events before the next one.
static void decode_next(void *self) {
    Rest     *r = self;
    RestCall *c = r->long_first;
    while (c != NULL) {
        rest_infer_forget(c);
        decode(c);
        c = r->long_first;
        if (c == NULL || loop_arm(r->o.loop, &r->long_timer, loop_now(r->o.loop) + 1) == ERR_OK)
            return;
    }
}

void rest_infer(RestCall *c) {
    Rest *r = c->rest;
    if (!is_long(c->x)) {
        decode(c);
        return;
    }
    c->queued = true;
    c->next = NULL;
    if (r->long_last != NULL)
        r->long_last->next = c;
    else
        r->long_first = c;
    r->long_last = c;
    r->long_timer.fire = decode_next;
    r->long_timer.self = r;
    if (r->long_first == c && loop_arm(r->o.loop, &r->long_timer, loop_now(r->o.loop)) != ERR_OK)
        decode_next(r);
}
