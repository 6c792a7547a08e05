// ModelStreamInfer: inferences one after the other on one call, each answered before the next is
// read. What is wrong with one of them is said in its answer, and the call goes on.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "serve/grpc_int.h"
#include "serve/infer_proto_int.h"

enum { STREAM_ERROR = 1, STREAM_RESPONSE = 2, RESPONSE_ID = 3, STREAM_FRONT = 32 };

typedef struct GrpcStream {
    GrpcCall      c;        // first; c.ask is the inference at hand
    bool          waits;    // for the desk
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
    Arena *a = s->c.ask != NULL ? &s->c.ask->arena : &s->c.g->scratch;
    if (s->c.ask == NULL) arena_rewind(a, 0);
    WireOut o = wire_out(a, 1 << 16);
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
    Ask          *a = s->c.ask;
    struct iovec *pieces = arena_try_new(&a->arena, struct iovec, EXCHANGE_PIECES + 1);
    size_t        most = (size_t)s->c.g->o.set->response_mb << 20, len = 0;
    uint32_t      n = 0;
    Err           e = ERR_LIMIT;
    if (pieces == NULL)
        (void)err_set(ERR_LIMIT, "no memory for the answer");
    else
        e = infer_proto_encode(&a->answer, a->request.raw, most, &a->arena, pieces + 1, &n);
    if (e != ERR_OK) {
        tell_error(s, a->request.id, err_why());
        return;
    }
    for (uint32_t i = 1; i <= n; i++) len += pieces[i].iov_len;
    put_front(s, len, &pieces[0]);
    s->c.sent = pieces[0].iov_len + len;
    push(s, pieces, n + 1);
}

static void done(void *self, Ask *a) {
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
    Grpc *g = s->c.g;
    Ask  *a = desk_open(g->o.desk, RECEIPT_GRPC, now, now, message.len);
    char *copy = a != NULL ? arena_try(&a->arena, message.len, 1, 1) : NULL;
    if (copy != NULL && message.len > 0) memcpy(copy, message.at, message.len);
    s->c.x->hold = true;
    exchange_eat(s->c.x, GRPC_PREFIX + message.len);
    if (copy == NULL) {
        if (a != NULL) desk_cancel(g->o.desk, a, NULL);
        tell_error(s, (Str){"", 0}, "as many requests as the server takes are on their way");
        return;
    }
    s->c.ask = a;
    Str m = {copy, message.len};
    Err e = infer_proto_decode((const unsigned char *)m.at, m.len, &a->arena, &a->request);
    if (e != ERR_OK) {
        (void)snprintf(s->error, sizeof s->error, "%s", err_why());
        Str model, version;
        infer_proto_names(m, &model, &version);
        (void)err_set(e, "%s", s->error);
        desk_refuse(g->o.desk, a, model, version, e);
        tell_error(s, (Str){"", 0}, model.len > 0 ? a->error : s->error);
        return;
    }
    s->waits = true;
    TimeNs limit = left(s, now);
    desk_submit(g->o.desk, a, a->request.model, a->request.version, limit < 0 ? 1 : limit, done, s);
}

static void advance(GrpcStream *s, TimeNs now) {
    Exchange            *x = s->c.x;
    const unsigned char *b = x->body;
    size_t               n = x->body_len;
    if (s->ends || s->waits || s->sends || s->c.ask != NULL) return;
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
    if (s->c.ask != NULL && s->waits)
        desk_cancel(s->c.g->o.desk, s->c.ask, NULL);
    else if (s->c.ask != NULL)
        desk_close(s->c.g->o.desk, s->c.ask, s->c.sent);
    s->c.ask = NULL;
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
