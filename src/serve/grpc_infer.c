// ModelInfer: a message into an Ask, and what came of it into an answer.
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "serve/grpc_int.h"
#include "serve/infer_proto_int.h"

static void encode(GrpcCall *c) {
    Ask          *a = c->ask;
    struct iovec *pieces = arena_try_new(&a->arena, struct iovec, EXCHANGE_PIECES + 1);
    size_t        most = (size_t)c->g->o.set->response_mb << 20, len = 0;
    uint32_t      n = 0;
    Err           e = ERR_LIMIT;
    if (pieces == NULL)
        (void)err_set(ERR_LIMIT, "no memory for the answer");
    else
        e = infer_proto_encode(&a->answer, a->request.raw, most, &a->arena, pieces + 1, &n);
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

static void done(void *self, Ask *a) {
    GrpcCall *c = self;
    if (a->receipt.end == RECEIPT_OK)
        encode(c);
    else
        grpc_fail(c->x, receipt_grpc(a->receipt.end), a->retry_s, a->error);
}

// Where the numbers of one raw input lie, so that the next request's come to lie aligned.
static void learn(Grpc *g, const Exchange *x, const InferRequest *r) {
    size_t bytes;
    if (!r->raw || r->n_inputs != 1 || r->inputs[0].t.dtype == DT_STR) return;
    if (tensor_measure(&r->inputs[0].t, &bytes) == ERR_OK && bytes <= x->body_len)
        g->aligned = (x->body_len - bytes) % TENSOR_ALIGN;
}

// A message that does not even name a model is not one that names an unknown one.
static void refuse(GrpcCall *c, Str message, Err e) {
    Ask *a = c->ask;
    char why[sizeof a->error];
    Str  model, version;
    (void)snprintf(why, sizeof why, "%s", err_why());
    infer_proto_names(message, &model, &version);
    (void)err_set(e, "%s", why);
    desk_refuse(c->g->o.desk, a, model, version, e);
    if (model.len == 0)
        grpc_fail(c->x, GRPC_INVALID, 0, why);
    else
        grpc_fail(c->x, receipt_grpc(a->receipt.end), 0, a->error);
}

void grpc_infer(Grpc *g, Exchange *x, Str message) {
    Str    limit = exchange_header(x, "grpc-timeout");
    TimeNs timeout = 0;
    if (limit.at != NULL && !grpc_timeout(limit, &timeout)) {
        grpc_fail(x, GRPC_INVALID, 0, "grpc-timeout is no time, as 20m");
        return;
    }
    Ask      *a = desk_open(g->o.desk, RECEIPT_GRPC, x->began, x->arrived, x->body_len);
    GrpcCall *c = a != NULL ? arena_try_new(&a->arena, GrpcCall, 1) : NULL;
    if (c == NULL) {
        if (a != NULL) desk_cancel(g->o.desk, a, NULL);
        grpc_fail(x, GRPC_UNAVAILABLE, 1, "as many requests as the server takes are on their way");
        return;
    }
    *c = (GrpcCall){.g = g, .x = x, .kind = GRPC_INFER, .ask = a};
    x->user = c;
    InferRequest *r = &a->request;
    Err e = infer_proto_decode((const unsigned char *)message.at, message.len, &a->arena, r);
    if (e != ERR_OK) {
        refuse(c, message, e);
        return;
    }
    learn(g, x, r);
    r->timing = r->timing || text_equal(exchange_header(x, "x-cotenant-timing"), text_of("1"));
    desk_submit(g->o.desk, a, r->model, r->version, timeout, done, c);
}
