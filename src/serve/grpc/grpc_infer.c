// ModelInfer: a message into an InferCall, and what came of it into an answer.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "serve/grpc/grpc_int.h"
#include "serve/grpc/infer_proto_int.h"

static void encode(GrpcCall *c) {
    InferCall    *a = c->call;
    struct iovec *pieces = arena_try_new(&a->arena, struct iovec, EXCHANGE_PIECES + 1);
    size_t        most = (size_t)c->g->o.set->response_mb << 20, len = 0;
    uint32_t      n = 0;
    Err           e = ERR_LIMIT;
    if (pieces == NULL)
        (void)err_set(ERR_LIMIT, "no memory for the answer");
    else
        e = infer_proto_encode(&a->response, a->request.raw, most, &a->arena, pieces + 1, &n);
    if (e != ERR_OK) {
        grpc_fail(c->x, e == ERR_LIMIT ? GRPC_EXHAUSTED : GRPC_INTERNAL, 0, err_why());
        return;
    }
    for (uint32_t i = 1; i <= n; i++) len += pieces[i].iov_len;
    grpc_frame(c->prefix, len);
    pieces[0] = (struct iovec){c->prefix, GRPC_PREFIX};
    c->sent = GRPC_PREFIX + len;
    Answer answer = {.type = "application/grpc", .body = pieces, .n_body = n + 1};
    answer.extra[answer.n_extra++] =
        (ExchangeHeader){{"x-cotenant-id", 13}, text_of(a->receipt.id)};
    answer.trailers[answer.n_trailers++] = (ExchangeHeader){{"grpc-status", 11}, {"0", 1}};
    exchange_answer(c->x, &answer);
}

static void done(void *self, InferCall *a) {
    GrpcCall *c = self;
    if (a->receipt.end == RECEIPT_OK)
        encode(c);
    else
        grpc_fail(c->x, receipt_grpc_status(a->receipt.end), a->retry_s, a->error);
}

// Where the numbers of one raw input lie, so that the next request's come to lie aligned.
static void learn(Grpc *g, const Exchange *x, const InferRequest *r) {
    size_t bytes;
    if (!r->raw || r->n_inputs != 1 || r->inputs[0].t.dtype == DT_STR) return;
    if (tensor_measure(&r->inputs[0].t, &bytes) == ERR_OK && bytes <= x->body_len)
        g->aligned = (x->body_len - bytes) % TENSOR_ALIGN;
}

// A message that does not even name a model is not one that names an unknown one.
static void reject(GrpcCall *c, Str message, Err e) {
    InferCall *a = c->call;
    char       why[sizeof a->error];
    Str        model, version;
    (void)snprintf(why, sizeof why, "%s", err_why());
    infer_proto_names(message, &model, &version);
    (void)err_set(e, "%s", why);
    dispatcher_reject(c->g->o.dispatcher, a, model, version, e);
    if (model.len == 0)
        grpc_fail(c->x, GRPC_INVALID, 0, why);
    else
        grpc_fail(c->x, receipt_grpc_status(a->receipt.end), 0, a->error);
}

void grpc_infer(Grpc *g, Exchange *x, Str message) {
    Str    limit = exchange_header(x, "grpc-timeout");
    TimeNs timeout = 0;
    if (limit.at != NULL && !grpc_timeout(limit, &timeout)) {
        grpc_fail(x, GRPC_INVALID, 0, "grpc-timeout is no time, as 20m");
        return;
    }
    InferCall *a =
        dispatcher_open(g->o.dispatcher, RECEIPT_GRPC, x->began, x->arrived, x->body_len);
    GrpcCall *c = a != NULL ? arena_try_new(&a->arena, GrpcCall, 1) : NULL;
    if (c == NULL) {
        if (a != NULL) dispatcher_cancel(g->o.dispatcher, a, NULL);
        grpc_fail(x, GRPC_UNAVAILABLE, 1, "as many requests as the server takes are on their way");
        return;
    }
    *c = (GrpcCall){.g = g, .x = x, .kind = GRPC_INFER, .call = a};
    x->user = c;
    InferRequest *r = &a->request;
    Err e = infer_proto_decode((const unsigned char *)message.at, message.len, &a->arena, r);
    if (e != ERR_OK) {
        reject(c, message, e);
        return;
    }
    learn(g, x, r);
    r->timing = r->timing || text_equal(exchange_header(x, "x-cotenant-timing"), text_of("1"));
    dispatcher_submit(g->o.dispatcher, a, r->model, r->version, timeout, done, c);
}

// ModelStreamInfer: inferences one after the other on one call, each answered before the next is
// read. What is wrong with one of them is said in its answer, and the call goes on.

enum { STREAM_ERROR = 1, STREAM_RESPONSE = 2, RESPONSE_ID = 3, STREAM_FRONT = 32 };

typedef struct GrpcStream {
    GrpcCall      c;        // first; c.call is the inference at hand
    bool          waits;    // for the dispatcher
    bool          sends;    // a part is on its way
    bool          ends;     // the last word was said
    TimeNs        timeout;  // of the whole call, from its beginning; 0: none
    unsigned char front[STREAM_FRONT];
    char          error[512];  // when there is no ask to keep it
    struct iovec  pieces[2];
} GrpcStream;

static void finish(GrpcStream *s, uint32_t status, const char *why) {
    s->ends = true;
    grpc_fail(s->c.x, status, 0, why);
}

static void push(GrpcStream *s, struct iovec *pieces, uint32_t n) {
    Answer a = {.type = "application/grpc", .body = pieces, .n_body = n};
    s->sends = true;
    exchange_push(s->c.x, &a);
}

// The length of the message, and of its only field, stand before what was encoded.
static void put_front(GrpcStream *s, size_t len, struct iovec *to) {
    unsigned char *f = s->front;
    size_t         n = GRPC_PREFIX;
    f[n++] = STREAM_RESPONSE << 3 | WIRE_BYTES;
    for (size_t v = len;; v >>= 7) {
        f[n++] = (unsigned char)(v > 127 ? (v & 127) | 128 : v);
        if (v <= 127) break;
    }
    grpc_frame(f, n - GRPC_PREFIX + len);
    *to = (struct iovec){f, n};
}

static void tell_error(GrpcStream *s, Str id, const char *why) {
    Arena *a = s->c.call != NULL ? &s->c.call->arena : &s->c.g->scratch;
    if (s->c.call == NULL) arena_rewind(a, 0);
    WireWriter o = wire_writer(a, 1 << 16);
    wire_put_text(&o, STREAM_ERROR, why);
    size_t mark = wire_begin(&o, STREAM_RESPONSE);
    wire_put_str(&o, RESPONSE_ID, id);
    wire_end(&o, mark);
    free(s->c.bytes);
    s->c.bytes = wire_done(&o) == ERR_OK ? malloc(GRPC_PREFIX + o.len) : NULL;
    if (s->c.bytes == NULL) {
        finish(s, GRPC_UNAVAILABLE, "no memory for an answer");
        return;
    }
    grpc_frame(s->c.bytes, o.len);
    memcpy(s->c.bytes + GRPC_PREFIX, o.at, o.len);
    s->pieces[0] = (struct iovec){s->c.bytes, GRPC_PREFIX + o.len};
    s->c.sent = GRPC_PREFIX + o.len;
    push(s, s->pieces, 1);
}

static void tell(GrpcStream *s) {
    InferCall    *a = s->c.call;
    struct iovec *pieces = arena_try_new(&a->arena, struct iovec, EXCHANGE_PIECES + 1);
    size_t        most = (size_t)s->c.g->o.set->response_mb << 20, len = 0;
    uint32_t      n = 0;
    Err           e = ERR_LIMIT;
    if (pieces == NULL)
        (void)err_set(ERR_LIMIT, "no memory for the answer");
    else
        e = infer_proto_encode(&a->response, a->request.raw, most, &a->arena, pieces + 1, &n);
    if (e != ERR_OK) {
        tell_error(s, a->request.id, err_why());
        return;
    }
    for (uint32_t i = 1; i <= n; i++) len += pieces[i].iov_len;
    put_front(s, len, &pieces[0]);
    s->c.sent = pieces[0].iov_len + len;
    push(s, pieces, n + 1);
}

static void stream_done(void *self, InferCall *a) {
    GrpcStream *s = self;
    s->waits = false;
    if (a->receipt.end == RECEIPT_OK)
        tell(s);
    else
        tell_error(s, a->request.id, a->error);
}

// What is left of the call's own time; 0: there is no limit, negative: none.
static TimeNs left(const GrpcStream *s, TimeNs now) {
    if (s->timeout == 0) return 0;
    TimeNs until = s->c.x->began + s->timeout;
    return until > now ? until - now : -1;
}

// The message is copied: what follows it in the body may move it.
static void infer(GrpcStream *s, Str message, TimeNs now) {
    Grpc      *g = s->c.g;
    InferCall *a = dispatcher_open(g->o.dispatcher, RECEIPT_GRPC, now, now, message.len);
    char      *copy = a != NULL ? arena_try(&a->arena, message.len, 1, 1) : NULL;
    if (copy != NULL && message.len > 0) memcpy(copy, message.at, message.len);
    s->c.x->hold = true;
    exchange_eat(s->c.x, GRPC_PREFIX + message.len);
    if (copy == NULL) {
        if (a != NULL) dispatcher_cancel(g->o.dispatcher, a, NULL);
        tell_error(s, (Str){"", 0}, "as many requests as the server takes are on their way");
        return;
    }
    s->c.call = a;
    Str m = {copy, message.len};
    Err e = infer_proto_decode((const unsigned char *)m.at, m.len, &a->arena, &a->request);
    if (e != ERR_OK) {
        (void)snprintf(s->error, sizeof s->error, "%s", err_why());
        Str model, version;
        infer_proto_names(m, &model, &version);
        (void)err_set(e, "%s", s->error);
        dispatcher_reject(g->o.dispatcher, a, model, version, e);
        tell_error(s, (Str){"", 0}, model.len > 0 ? a->error : s->error);
        return;
    }
    s->waits = true;
    TimeNs limit = left(s, now);
    dispatcher_submit(g->o.dispatcher, a, a->request.model, a->request.version,
                      limit < 0 ? 1 : limit, stream_done, s);
}

static void advance(GrpcStream *s, TimeNs now) {
    Exchange            *x = s->c.x;
    const unsigned char *b = x->body;
    size_t               n = x->body_len;
    if (s->ends || s->waits || s->sends || s->c.call != NULL) return;
    size_t most = (size_t)s->c.g->o.set->body_mb << 20;
    size_t len =
        n < GRPC_PREFIX ? 0 : (size_t)b[1] << 24 | (size_t)b[2] << 16 | (size_t)b[3] << 8 | b[4];
    if (n >= GRPC_PREFIX && b[0] != 0) {
        finish(s, b[0] == 1 ? GRPC_UNIMPLEMENTED : GRPC_INVALID,
               "messages are not compressed here: grpc-encoding identity");
    } else if (len > most - GRPC_PREFIX) {
        finish(s, GRPC_EXHAUSTED, "a message is larger than allowed");
    } else if (n >= GRPC_PREFIX + len && n > 0) {
        infer(s, (Str){(const char *)b + GRPC_PREFIX, len}, now);
    } else if (x->whole && n == 0) {
        Answer a = {.type = "application/grpc"};
        a.trailers[a.n_trailers++] = (ExchangeHeader){{"grpc-status", 11}, {"0", 1}};
        s->ends = true;
        exchange_answer(x, &a);
    } else if (x->whole) {
        finish(s, GRPC_INVALID, "the last message is shorter than its length says");
    } else {
        x->hold = false;
        exchange_eat(x, 0);
    }
}

void grpc_stream_head(Grpc *g, Exchange *x) {
    Str         limit = exchange_header(x, "grpc-timeout");
    GrpcStream *s = calloc(1, sizeof *s);
    if (s == NULL || (limit.at != NULL && !grpc_timeout(limit, &s->timeout))) {
        grpc_fail(x, s == NULL ? GRPC_UNAVAILABLE : GRPC_INVALID, 0,
                  s == NULL ? "no memory for this call" : "grpc-timeout is no time, as 20m");
        free(s);
        return;
    }
    s->c = (GrpcCall){.g = g, .x = x, .kind = GRPC_STREAM};
    x->user = s;
    x->flows = true;
}

static void release(GrpcStream *s) {
    if (s->c.call != NULL && s->waits)
        dispatcher_cancel(s->c.g->o.dispatcher, s->c.call, NULL);
    else if (s->c.call != NULL)
        dispatcher_close(s->c.g->o.dispatcher, s->c.call, s->c.sent);
    s->c.call = NULL;
    s->waits = false;
}

void grpc_stream_more(GrpcCall *c, TimeNs now) {
    GrpcStream *s = (GrpcStream *)c;
    if (s->sends && !c->x->pushing) {
        s->sends = false;
        release(s);
    }
    advance(s, now);
}

void grpc_stream_ended(GrpcCall *c) {
    GrpcStream *s = (GrpcStream *)c;
    release(s);
    grpc_free(c);
}
