// ModelInfer and ModelStreamInfer: decode messages into InferCalls and encode their responses.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "serve/grpc/grpc_int.h"
#include "serve/grpc/infer_proto_int.h"

// Encodes the response behind pieces[0], which is left for what precedes it on the wire.
static Err encode(const GrpcCall *c, struct iovec **pieces, uint32_t *n, size_t *len) {
    InferCall *call = c->call;
    size_t     most = (size_t)c->g->o.set->response_mb << 20;
    *pieces = arena_try_new(&call->arena, struct iovec, EXCHANGE_PIECES + 1);
    if (*pieces == NULL) return err_set(ERR_LIMIT, "out of memory for the response");
    TRY(infer_proto_encode(&call->response, most, &call->arena, *pieces + 1, n));
    *len = 0;
    for (uint32_t i = 1; i <= *n; i++) *len += (*pieces)[i].iov_len;
    return ERR_OK;
}

static void send_response(GrpcCall *c) {
    const Receipt *r = &c->call->receipt;
    struct iovec  *pieces = NULL;
    uint32_t       n = 0;
    size_t         len = 0;
    Err            e = encode(c, &pieces, &n, &len);
    if (e != ERR_OK) {
        grpc_fail(c->x, e == ERR_LIMIT ? GRPC_EXHAUSTED : GRPC_INTERNAL, 0, err_why());
        return;
    }
    grpc_frame(c->prefix, len);
    pieces[0] = (struct iovec){c->prefix, GRPC_PREFIX};
    c->sent = GRPC_PREFIX + len;
    Answer answer = {.type = "application/grpc", .body = pieces, .n_body = n + 1};
    answer.extra[answer.n_extra++] = (ExchangeHeader){{"x-cotenant-id", 13}, text_of(r->id)};
    if (r->timing.degraded)
        answer.extra[answer.n_extra++] = (ExchangeHeader){{"x-cotenant-degraded", 19}, {"1", 1}};
    answer.trailers[answer.n_trailers++] = (ExchangeHeader){{"grpc-status", 11}, {"0", 1}};
    exchange_answer(c->x, &answer);
}

static void done(void *self, InferCall *call) {
    GrpcCall *c = self;
    if (call->receipt.end == RECEIPT_OK)
        send_response(c);
    else
        grpc_fail(c->x, receipt_grpc_status(call->receipt.end), call->retry_s, call->error);
}

static size_t body_most(const Grpc *g) { return (size_t)g->o.set->body_mb << 20; }

// Remembers where a raw input lies in the body: the next body is placed so that it is aligned.
static void learn_alignment(Grpc *g, const Exchange *x, const InferRequest *r) {
    size_t bytes;
    if (!r->raw || r->n_inputs != 1 || r->inputs[0].t.dtype == DT_STR) return;
    if (tensor_measure(&r->inputs[0].t, &bytes) == ERR_OK && bytes <= x->body_len)
        g->aligned = (x->body_len - bytes) % TENSOR_ALIGN;
}

// Records a message that could not be decoded. False: it names no model; err_why() says what is
// wrong with it. Otherwise call->error does.
static bool reject(const GrpcCall *c, Str message, Err e) {
    char why[sizeof c->call->error];
    Str  model, version;
    (void)snprintf(why, sizeof why, "%s", err_why());
    infer_proto_names(message, &model, &version);
    (void)err_set(e, "%s", why);
    dispatcher_reject(c->g->o.dispatcher, c->call, model, version, e);
    (void)err_set(e, "%s", why);
    return model.len > 0;
}

void grpc_infer(Grpc *g, Exchange *x, Str packed_message, InflateKind packed) {
    Str    limit = exchange_header(x, "grpc-timeout");
    TimeNs timeout = 0;
    if (limit.at != NULL && !grpc_timeout(limit, &timeout)) {
        grpc_fail(x, GRPC_INVALID, 0,
                  "invalid grpc-timeout; expected digits and a unit, such as 20m");
        return;
    }
    InferCall *call =
        dispatcher_open(g->o.dispatcher, RECEIPT_GRPC, x->began, x->arrived, x->body_len);
    GrpcCall *c = call != NULL ? arena_try_new(&call->arena, GrpcCall, 1) : NULL;
    if (c == NULL) {
        if (call != NULL) dispatcher_cancel(g->o.dispatcher, call, NULL);
        grpc_fail(x, GRPC_UNAVAILABLE, 1, DISPATCHER_LIMIT);
        return;
    }
    *c = (GrpcCall){.g = g, .x = x, .kind = GRPC_INFER, .call = call};
    x->user = c;
    InferRequest *r = &call->request;
    Str           message = {"", 0};
    Err           e = grpc_expand(packed, packed_message, body_most(g), &call->arena, &message);
    if (e == ERR_OK)
        e = infer_proto_decode((const unsigned char *)message.at, message.len, &call->arena, r);
    if (e != ERR_OK && reject(c, message, e)) {
        grpc_fail(x, receipt_grpc_status(call->receipt.end), 0, call->error);
        return;
    }
    if (e != ERR_OK) {
        grpc_fail(x, e == ERR_LIMIT ? GRPC_EXHAUSTED : GRPC_INVALID, 0, err_why());
        return;
    }
    if (packed == INFLATE_NONE) learn_alignment(g, x, r);
    r->timing = r->timing || text_equal(exchange_header(x, "x-cotenant-timing"), text_of("1"));
    dispatcher_submit(g->o.dispatcher, call, r->model, r->version, timeout, done, c);
}

// ModelStreamInfer runs the requests of a stream in order; each is answered before the next message
// is read. An error is the response to its message, and the stream goes on.

enum { STREAM_ERROR = 1, STREAM_RESPONSE = 2, RESPONSE_ID = 3, STREAM_FRONT = 32 };

typedef struct GrpcStream {
    GrpcCall      c;        // first; c.call is the inference in progress
    bool          waits;    // for the dispatcher's result
    bool          sends;    // a response is being sent
    bool          ends;     // the final status was sent
    TimeNs        timeout;  // grpc-timeout of the stream, from its first byte; 0: none
    unsigned char front[STREAM_FRONT];
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

// Frame prefix and field header of infer_response, written in front of the encoded response.
static void put_front(GrpcStream *s, size_t len, struct iovec *to) {
    unsigned char *f = s->front;
    size_t         n = GRPC_PREFIX;
    f[n++] = STREAM_RESPONSE << 3 | WIRE_BYTES;
    n += wire_encode_varint(len, f + n);
    grpc_frame(f, n - GRPC_PREFIX + len);
    *to = (struct iovec){f, n};
}

static void push_error(GrpcStream *s, Str id, const char *why) {
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
        finish(s, GRPC_UNAVAILABLE, "out of memory for a response");
        return;
    }
    grpc_frame(s->c.bytes, o.len);
    memcpy(s->c.bytes + GRPC_PREFIX, o.at, o.len);
    s->pieces[0] = (struct iovec){s->c.bytes, GRPC_PREFIX + o.len};
    s->c.sent = GRPC_PREFIX + o.len;
    push(s, s->pieces, 1);
}

static void push_response(GrpcStream *s) {
    struct iovec *pieces = NULL;
    uint32_t      n = 0;
    size_t        len = 0;
    InferCall    *call = s->c.call;
    // A model answers each request once, so every response is a request's last.
    if (infer_add_flag(&call->response, "triton_final_response", true, &call->arena) != ERR_OK ||
        encode(&s->c, &pieces, &n, &len) != ERR_OK) {
        push_error(s, s->c.call->request.id, err_why());
        return;
    }
    put_front(s, len, &pieces[0]);
    s->c.sent = pieces[0].iov_len + len;
    push(s, pieces, n + 1);
}

static void stream_done(void *self, InferCall *call) {
    GrpcStream *s = self;
    s->waits = false;
    if (call->receipt.end == RECEIPT_OK)
        push_response(s);
    else
        push_error(s, call->request.id, call->error);
}

// Time left of the stream's timeout; 0: it has none, -1: it has passed.
static TimeNs left(const GrpcStream *s, TimeNs now) {
    if (s->timeout == 0) return 0;
    TimeNs until = s->c.x->began + s->timeout;
    return until > now ? until - now : -1;
}

// Copies or decompresses the message into the call's arena, since later ones may move the body.
static Err copy_message(const GrpcStream *s, Str message, InflateKind packed, Arena *a, Str *out) {
    if (packed != INFLATE_NONE) return grpc_expand(packed, message, body_most(s->c.g), a, out);
    char *copy = arena_try(a, message.len, 1, 1);
    if (copy == NULL) return err_set(ERR_LIMIT, "out of memory for a message");
    if (message.len > 0) memcpy(copy, message.at, message.len);
    *out = (Str){copy, message.len};
    return ERR_OK;
}

static void infer(GrpcStream *s, Str message, InflateKind packed, TimeNs now) {
    Grpc      *g = s->c.g;
    InferCall *call = dispatcher_open(g->o.dispatcher, RECEIPT_GRPC, now, now, message.len);
    Str        m = {"", 0};
    Err        e = ERR_OK;
    if (call != NULL) e = copy_message(s, message, packed, &call->arena, &m);
    s->c.x->hold = true;
    exchange_eat(s->c.x, GRPC_PREFIX + message.len);
    if (call == NULL) {
        push_error(s, (Str){"", 0}, DISPATCHER_LIMIT);
        return;
    }
    s->c.call = call;
    if (e == ERR_OK)
        e = infer_proto_decode((const unsigned char *)m.at, m.len, &call->arena, &call->request);
    if (e != ERR_OK) {
        bool named = reject(&s->c, m, e);
        push_error(s, (Str){"", 0}, named ? call->error : err_why());
        return;
    }
    s->waits = true;
    TimeNs limit = left(s, now);
    dispatcher_submit(g->o.dispatcher, call, call->request.model, call->request.version,
                      limit < 0 ? 1 : limit, stream_done, s);
}

static void advance(GrpcStream *s, TimeNs now) {
    Exchange            *x = s->c.x;
    const unsigned char *b = x->body;
    size_t               n = x->body_len;
    if (s->ends || s->waits || s->sends || s->c.call != NULL) return;
    size_t      most = body_most(s->c.g);
    InflateKind packed = INFLATE_NONE;
    const char *why = "the compression flag of a message is neither 0 nor 1";
    uint32_t    status = n >= GRPC_PREFIX && b[0] > 1 ? GRPC_INVALID : GRPC_OK;
    if (n >= GRPC_PREFIX && b[0] == 1) status = grpc_encoding(x, &packed, &why);
    size_t len =
        n < GRPC_PREFIX ? 0 : (size_t)b[1] << 24 | (size_t)b[2] << 16 | (size_t)b[3] << 8 | b[4];
    if (status != GRPC_OK) {
        finish(s, status, why);
    } else if (len > most - GRPC_PREFIX) {
        finish(s, GRPC_EXHAUSTED, "message exceeds `body_mb`");
    } else if (n >= GRPC_PREFIX + len && n > 0) {
        infer(s, (Str){(const char *)b + GRPC_PREFIX, len}, packed, now);
    } else if (x->whole && n == 0) {
        Answer a = {.type = "application/grpc"};
        a.trailers[a.n_trailers++] = (ExchangeHeader){{"grpc-status", 11}, {"0", 1}};
        s->ends = true;
        exchange_answer(x, &a);
    } else if (x->whole) {
        finish(s, GRPC_INVALID, "the last message is shorter than its length prefix says");
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
                  s == NULL ? "out of memory; retry later"
                            : "invalid grpc-timeout; expected digits and a unit, such as 20m");
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
