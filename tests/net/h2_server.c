#include "tests/net/h2_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct Reply {  // of one exchange
    struct iovec   piece[3];
    unsigned char *copy;
    size_t         bytes;
} Reply;

static bool is(Str s, const char *word) {
    return s.len == strlen(word) && memcmp(s.at, word, s.len) == 0;
}

static void answer(Exchange *x, size_t bytes) {
    Reply *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->copy = calloc(1, bytes + 1);
    assert_non_null(r->copy);
    r->bytes = bytes;
    budget_add(x->budget, bytes);
    if (bytes == x->body_len && bytes > 0) memcpy(r->copy, x->body, bytes);
    size_t half = bytes / 2;
    r->piece[0] = (struct iovec){r->copy, half};
    r->piece[1] = (struct iovec){r->copy + half, 0};
    r->piece[2] = (struct iovec){r->copy + half, bytes - half};
    x->user = r;
    Answer a = {.type = "application/grpc", .body = r->piece, .n_body = 3, .n_trailers = 1};
    a.trailers[0] = (ExchangeHeader){{"grpc-status", 11}, {"0", 1}};
    exchange_answer(x, &a);
}

static void on_head(void *self, Exchange *x) {
    H2Server *h = self;
    h->heads++;
    x->aligned = h->aligned;
    x->budget = &h->budget;
    if (is(x->path, "/small")) x->most = 10;
    if (!is(x->path, "/early")) return;
    Answer a = {.status = 404, .n_trailers = 1};
    a.trailers[0] = (ExchangeHeader){{"grpc-status", 11}, {"5", 1}};
    exchange_answer(x, &a);
}

static void on_request(void *self, Exchange *x) {
    H2Server *h = self;
    h->requests++;
    if (x->body_len > 0) assert_int_equal((uintptr_t)(x->body + h->aligned) % 64, 0);
    if (is(x->path, "/hold")) {
        assert_true(h->n_held < H2_SERVER_HELD);
        h->held[h->n_held++] = x;
    } else if (is(x->path, "/big")) {
        answer(x, (size_t)strtoul(x->query.at, NULL, 10));
    } else {
        answer(x, x->body_len);
    }
}

static void on_ended(void *self, Exchange *x, bool sent) {
    H2Server *h = self;
    for (uint32_t i = 0; i < h->n_held; i++)
        if (h->held[i] == x) h->held[i] = h->held[--h->n_held];
    if (is(x->path, "/hold") && h->lent == NULL) h->lent = exchange_take(x);
    Reply *r = x->user;
    if (r != NULL) budget_give(x->budget, r->bytes);
    if (r != NULL) free(r->copy);
    free(r);
    h->sent += sent;
    h->ended++;
}

static void *run(void *self) {
    H2Server *h = self;
    assert_int_equal(loop_run(h->loop), ERR_OK);
    return NULL;
}

H2Server *h2_server_open_within(const ListenerLimits *limits, size_t budget) {
    H2Server *h = calloc(1, sizeof *h);
    assert_non_null(h);
    ListenerOptions o = {.address = "127.0.0.1:0",
                         .protocol = LISTENER_HTTP2,
                         .budget = &h->budget,
                         .handler = {on_head, on_request, on_ended, h, NULL}};
    if (limits != NULL) o.limits = *limits;
    h->budget.most = budget;
    assert_int_equal(loop_create(&h->loop), ERR_OK);
    assert_int_equal(listener_open(&h->listener, h->loop, &o), ERR_OK);
    assert_int_equal(pthread_create(&h->thread, NULL, run, h), 0);
    return h;
}

H2Server *h2_server_open(const ListenerLimits *limits) { return h2_server_open_within(limits, 0); }

void h2_server_do(H2Server *h, void (*f)(void *)) {
    h->posted = false;
    h->post = (LoopPost){.run = f, .self = h};
    loop_post(h->loop, &h->post);
    while (!h->posted) usleep(200);
}

void h2_server_read_counts(void *self) {
    H2Server *h = self;
    h->counts = listener_counts(h->listener);
    h->drained = listener_drained(h->listener);
    h->posted = true;
}

void h2_server_answer_held(void *self) {
    H2Server *h = self;
    while (h->n_held > 0) {
        Exchange *x = h->held[--h->n_held];
        answer(x, x->body_len);
    }
    h->posted = true;
}

void h2_server_drain(void *self) {
    H2Server *h = self;
    listener_drain(h->listener);
    h->posted = true;
}

static void give_back(void *self) {
    H2Server *h = self;
    if (h->lent != NULL) h->lent->give(h->lent);
    h->lent = NULL;
    h->posted = true;
}

void h2_server_eventually(const _Atomic uint32_t *n, uint32_t want) {
    for (int i = 0; *n < want && i < 50000; i++) usleep(200);
    assert_int_equal(*n, want);
}

void h2_server_until_closed(H2Server *h) {
    for (int i = 0; i < 2000; i++) {
        h2_server_do(h, h2_server_read_counts);
        if (h->counts.open == 0) return;
        usleep(5000);
    }
    fail();
}

void h2_server_close(H2Server *h) {
    h2_server_until_closed(h);
    h2_server_do(h, give_back);
    h2_server_do(h, h2_server_read_counts);
    assert_int_equal(h->counts.body_bytes, 0);
    assert_int_equal(h->heads, h->ended);
    loop_stop(h->loop);
    assert_int_equal(pthread_join(h->thread, NULL), 0);
    listener_close(h->listener);
    loop_destroy(h->loop);
    free(h);
}
