// ModelInfer and ModelStreamInfer: decode messages into InferCalls and encode their responses.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "serve/grpc/grpc_int.h"
#include "serve/grpc/infer_proto_int.h"

// Estimated nanoseconds: per byte of typed contents, and bytes of raw contents per nanosecond.
enum { TYPED_BYTES_NS = 3, RAW_BYTES = 2, TEXT_NS = 5, FIELDS_MOST = 4096 };
enum { COPIED_MOST = 262144 };  // bytes of a message that is copied or decoded at once
enum { PACKED_NS = 1000000 };   // least for a compressed message: of its size only a bound is known
enum { PEEKED_BYTES = 4096 };   // of a compressed message, decompressed to find its model

static Err decode(InferCall *call) {
    if (call->body.packing != INFLATE_NONE) TRY(infer_body_unpack(call));
    return infer_proto_decode(call->body.at, call->body.len, &call->arena, &call->request);
}

static TimeNs decode_ns(const InferCall *call) {
    const InferBody *b = &call->body;
    if (b->packing != INFLATE_NONE) return PACKED_NS + (TimeNs)b->len * TYPED_BYTES_NS;
    size_t raw = infer_proto_raw_bytes((Str){(const char *)b->at, b->len}, FIELDS_MOST);
    return (TimeNs)((b->len - raw) * TYPED_BYTES_NS + raw / RAW_BYTES);
}

// pieces[-1] is left for the frame prefix.
static Err encode(InferCall *call) {
    struct iovec *all = arena_try_new(&call->arena, struct iovec, EXCHANGE_PIECES + 1);
    if (all == NULL) return err_set(ERR_LIMIT, "out of memory for the response");
    call->pieces = all + 1;
    return infer_proto_encode(&call->response, call->max_response, &call->arena, call->pieces,
                              &call->n_pieces);
}

// A model answers each request of a stream once, so every response is a request's last.
static Err encode_final(InferCall *call) {
    TRY(infer_add_flag(&call->response, "triton_final_response", true, &call->arena));
    return encode(call);
}

static TimeNs encode_ns(const InferCall *call) {
    TimeNs ns = 0;
    for (uint32_t i = 0; i < call->response.n; i++) {
        const Tensor *t = &call->response.tensors[i];
        if (t->dtype == DT_STR) ns += tensor_count(t) * TEXT_NS;
    }
    return ns;
}

static const InferCodec grpc_codec = {
    .decode = decode, .encode = encode, .decode_ns = decode_ns, .encode_ns = encode_ns};
static const InferCodec stream_codec = {
    .decode = decode, .encode = encode_final, .decode_ns = decode_ns, .encode_ns = encode_ns};

static size_t encoded_bytes(const InferCall *call) {
    size_t len = 0;
    for (uint32_t i = 0; i < call->n_pieces; i++) len += call->pieces[i].iov_len;
    return len;
}

static void send_response(GrpcCall *c) {
    const Receipt *r = &c->call->receipt;
    struct iovec  *pieces = c->call->pieces - 1;
    size_t         len = encoded_bytes(c->call);
    grpc_frame(c->prefix, len);
    pieces[0] = (struct iovec){c->prefix, GRPC_PREFIX};
    c->sent = GRPC_PREFIX + len;
    Answer answer = {.type = "application/grpc", .body = pieces, .n_body = c->call->n_pieces + 1};
    answer.extra[answer.n_extra++] = (ExchangeHeader){{"x-cotenant-id", 13}, text_of(r->id)};
    if (r->timing.degraded)
        answer.extra[answer.n_extra++] = (ExchangeHeader){{"x-cotenant-degraded", 19}, {"1", 1}};
    answer.trailers[answer.n_trailers++] = (ExchangeHeader){{"grpc-status", 11}, {"0", 1}};
    c->x->budget = &c->call->model->memory;
    exchange_answer(c->x, &answer);
}

// Remembers where a raw input lies in the body: the next body is placed so that it is aligned.
static void learn_alignment(Grpc *g, const Exchange *x, const InferRequest *r) {
    size_t bytes;
    if (!r->raw || r->n_inputs != 1 || r->inputs[0].t.dtype == DT_STR) return;
    if (tensor_measure(&r->inputs[0].t, &bytes) == ERR_OK && bytes <= x->body_len)
        g->aligned = (x->body_len - bytes) % TENSOR_ALIGN;
}

static void done(void *self, InferCall *call) {
    GrpcCall *c = self;
    if (call->request.raw && !c->packed) learn_alignment(c->g, c->x, &call->request);
    if (call->receipt.end == RECEIPT_OK)
        send_response(c);
    else
        grpc_fail(c->x, receipt_grpc_status(call->receipt.end), call->retry_s, call->error);
}

// The beginning of a message, decompressed if need be: the model pays for decompressing the rest.
static Err peek(InferCall *call, Str *out) {
    const InferBody *b = &call->body;
    Inflate         *i = NULL;
    bool             done;
    *out = (Str){(const char *)b->at, b->len};
    if (b->packing == INFLATE_NONE) return ERR_OK;
    unsigned char *to = arena_try(&call->arena, PEEKED_BYTES, 1, 1);
    if (to == NULL) return err_set(ERR_LIMIT, "out of memory for a message");
    TRY(inflate_begin(&i, b->packing, *out));
    *out = (Str){(const char *)to, 0};
    Err e = inflate_step(i, to, PEEKED_BYTES, &out->len, &done);
    inflate_end(i);
    return e;
}

// Reads model, version and id, "" if they are missing. False: the message is malformed; err_why()
// says how.
static bool find_names(InferCall *call) {
    const InferBody *b = &call->body;
    Str              start;
    if (peek(call, &start) != ERR_OK) return false;
    infer_proto_names(start, FIELDS_MOST, &call->request);
    if (call->request.model.len > 0) return true;
    if (b->packing == INFLATE_NONE && b->len <= COPIED_MOST) return decode(call) == ERR_OK;
    (void)err_set(ERR_INVALID, "model_name is missing among the first fields of the message");
    return false;
}

void grpc_infer(Grpc *g, Exchange *x, Str message, InflateKind packing) {
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
    *c = (GrpcCall){
        .g = g, .x = x, .kind = GRPC_INFER, .call = call, .packed = packing != INFLATE_NONE};
    x->user = c;
    call->codec = &grpc_codec;
    call->body = (InferBody){.at = (unsigned char *)(uintptr_t)message.at,
                             .len = message.len,
                             .header = SIZE_MAX,
                             .packing = packing};
    if (!find_names(call)) {
        grpc_fail(x, GRPC_INVALID, 0, err_why());
        return;
    }
    call->timing = text_equal(exchange_header(x, "x-cotenant-timing"), text_of("1"));
    dispatcher_submit(g->o.dispatcher, call, call->request.model, call->request.version, timeout,
                      done, c);
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
    ExchangeBody *body;     // of the message in progress; NULL: it was copied
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
    struct iovec *pieces = s->c.call->pieces - 1;
    size_t        len = encoded_bytes(s->c.call);
    put_front(s, len, &pieces[0]);
    s->c.sent = pieces[0].iov_len + len;
    push(s, pieces, s->c.call->n_pieces + 1);
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

// A short message is copied; a long one keeps its buffer, and the stream goes on in another.
static bool take_message(GrpcStream *s, InferCall *call, Str message, InflateKind packing) {
    size_t n = GRPC_PREFIX + message.len;
    call->body = (InferBody){.at = (unsigned char *)(uintptr_t)message.at,
                             .len = message.len,
                             .header = SIZE_MAX,
                             .packing = packing};
    if (message.len > COPIED_MOST) {
        s->body = exchange_cut(s->c.x, n);
        return s->body != NULL;
    }
    call->body.at = arena_try(&call->arena, message.len, 1, 1);
    if (call->body.at == NULL) return false;
    if (message.len > 0) memcpy(call->body.at, message.at, message.len);
    exchange_eat(s->c.x, n);
    return true;
}

static void infer(GrpcStream *s, Str message, InflateKind packing, TimeNs now) {
    Grpc      *g = s->c.g;
    InferCall *call = dispatcher_open(g->o.dispatcher, RECEIPT_GRPC, now, now, message.len);
    s->c.x->hold = true;
    if (call == NULL || !take_message(s, call, message, packing)) {
        exchange_eat(s->c.x, GRPC_PREFIX + message.len);
        if (call != NULL) dispatcher_cancel(g->o.dispatcher, call, NULL);
        push_error(s, (Str){"", 0}, DISPATCHER_LIMIT);
        return;
    }
    s->c.call = call;
    call->codec = &stream_codec;
    if (!find_names(call)) {
        push_error(s, (Str){"", 0}, err_why());
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
    size_t      most = (size_t)s->c.g->o.set->body_mb << 20;
    InflateKind packing = INFLATE_NONE;
    const char *why = "the compression flag of a message is neither 0 nor 1";
    uint32_t    status = n >= GRPC_PREFIX && b[0] > 1 ? GRPC_INVALID : GRPC_OK;
    if (n >= GRPC_PREFIX && b[0] == 1) status = grpc_encoding(x, &packing, &why);
    size_t len =
        n < GRPC_PREFIX ? 0 : (size_t)b[1] << 24 | (size_t)b[2] << 16 | (size_t)b[3] << 8 | b[4];
    if (status != GRPC_OK) {
        finish(s, status, why);
    } else if (len > most - GRPC_PREFIX) {
        finish(s, GRPC_EXHAUSTED, "message exceeds `body_mb`");
    } else if (n >= GRPC_PREFIX + len && n > 0) {
        infer(s, (Str){(const char *)b + GRPC_PREFIX, len}, packing, now);
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
    bool cancels = s->c.call != NULL && s->waits;
    if (cancels)
        dispatcher_cancel(s->c.g->o.dispatcher, s->c.call, s->body);
    else if (s->c.call != NULL)
        dispatcher_close(s->c.g->o.dispatcher, s->c.call, s->c.sent);
    if (s->body != NULL && !cancels) s->body->give(s->body);
    s->body = NULL;
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
