// POST /v2/models/NAME/infer: an InferCall from its headers and body to its response.
#include <stdio.h>
#include <string.h>

#include "serve/rest/rest_int.h"
#include "serve/server_metadata.h"

enum { DAY_MS = 86400000 };

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
    x->keep_packed = true;
    if (length.at == NULL) return;
    if (!parse_count(length, &header) || (x->declared != UINT64_MAX && header > x->declared &&
                                          exchange_header(x, "content-encoding").at == NULL))
        rest_error(c, 400, 0,
                   "Inference-Header-Content-Length is not a number of bytes within the body");
    else
        x->aligned = header % TENSOR_ALIGN;
}

static void send(RestCall *c) {
    const InferCall *call = c->call;
    char             length[24];
    bool             json = call->header == SIZE_MAX;
    Answer           answer = {.type = json ? "application/json" : "application/octet-stream",
                               .body = call->pieces,
                               .n_body = call->n_pieces};
    answer.extra[answer.n_extra++] =
        (ExchangeHeader){{"x-cotenant-id", 13}, {call->receipt.id, strlen(call->receipt.id)}};
    if (call->receipt.timing.degraded)
        answer.extra[answer.n_extra++] = (ExchangeHeader){{"x-cotenant-degraded", 19}, {"1", 1}};
    if (!json) {
        (void)snprintf(length, sizeof length, "%zu", call->header);
        answer.extra[answer.n_extra++] =
            (ExchangeHeader){{"inference-header-content-length", 31}, {length, strlen(length)}};
    }
    for (uint32_t i = 0; i < call->n_pieces; i++) c->bytes += call->pieces[i].iov_len;
    c->x->budget = &c->call->model->memory;
    exchange_answer(c->x, &answer);
}

static void done(void *self, InferCall *call) {
    RestCall *c = self;
    if (call->receipt.end == RECEIPT_OK)
        send(c);
    else
        rest_error(c, receipt_http_status(call->receipt.end), call->retry_s, call->error);
}

static bool asks_timing(const Exchange *x) {
    Str v = exchange_header(x, "x-cotenant-timing");
    return v.len == 1 && v.at[0] == '1';
}

void rest_infer(RestCall *c) {
    Dispatcher *d = c->rest->o.dispatcher;
    Exchange   *x = c->x;
    Str         model = {c->route.name, strlen(c->route.name)};
    Str         version = {c->route.version, strlen(c->route.version)};
    Str         length = exchange_header(x, "inference-header-content-length");
    Str         limit = exchange_header(x, "x-request-timeout-ms");
    uint64_t    header = SIZE_MAX, ms = 0;
    bool        packed = x->packing != INFLATE_NONE;
    if (length.at != NULL && (!parse_count(length, &header) || (!packed && header > x->body_len))) {
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
    call->codec = &rest_codec;
    call->body = (InferBody){
        .at = x->body, .len = x->body_len, .header = (size_t)header, .packing = x->packing};
    call->timing = asks_timing(x);
    if (ms > DAY_MS) ms = DAY_MS;
    dispatcher_submit(d, call, model, version, (TimeNs)ms * 1000000, done, c);
}
