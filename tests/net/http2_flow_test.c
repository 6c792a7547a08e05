// HTTP/2 calls with streamed bodies: consumed as they arrive, answered part by part.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/listener.h"
#include "tests/net/h2_client.h"
#include "tests/runner.h"

enum { LONG = 10000, PART = 100000 };

typedef struct Flow {  // of one exchange: gives back what it eats
    unsigned char part[PART];
    struct iovec  pieces[2];
    bool          sends;
} Flow;

static Loop            *loop;
static Listener        *listener;
static pthread_t        thread;
static _Atomic uint32_t begun, ended, sent, deepest;
static _Atomic bool     asleep;  // takes nothing

static void on_head(void *self, Exchange *x) {
    (void)self;
    x->user = calloc(1, sizeof(Flow));
    assert_non_null(x->user);
    x->flows = true;
    begun++;
}

static void finish(Exchange *x) {
    Answer a = {.type = "application/grpc", .n_trailers = 1};
    a.trailers[0] = (ExchangeHeader){{"grpc-status", 11}, {"0", 1}};
    exchange_answer(x, &a);
}

static void on_more(void *self, Exchange *x) {
    Flow *f = x->user;
    (void)self;
    if (x->body_len > deepest) deepest = (uint32_t)x->body_len;
    if (!x->pushing) f->sends = false;
    x->hold = f->sends || asleep;
    if (x->hold) return;
    size_t n = x->body_len < PART ? x->body_len : PART;
    if (n == 0) {
        if (x->whole) finish(x);
        return;
    }
    memcpy(f->part, x->body, n);
    f->pieces[0] = (struct iovec){f->part, n / 3};
    f->pieces[1] = (struct iovec){f->part + n / 3, n - n / 3};
    x->hold = true;
    exchange_eat(x, n);
    f->sends = true;
    Answer a = {.type = "application/grpc", .body = f->pieces, .n_body = 2};
    exchange_push(x, &a);
}

static void on_request(void *self, Exchange *x) {
    (void)self;
    (void)x;
    fail();
}

static void on_ended(void *self, Exchange *x, bool was_sent) {
    (void)self;
    free(x->user);
    sent += was_sent;
    ended++;
}

static void *run(void *self) {
    (void)self;
    assert_int_equal(loop_run(loop), ERR_OK);
    return NULL;
}

static int begin(void **state) {
    (void)state;
    ListenerOptions o = {.address = "127.0.0.1:0",
                         .protocol = LISTENER_HTTP2,
                         .limits = {.body_bytes = 16 << 20, .body_ns = 300000000},
                         .handler = {on_head, on_request, on_ended, NULL, on_more}};
    begun = ended = sent = deepest = 0;
    asleep = false;
    assert_int_equal(loop_create(&loop), ERR_OK);
    assert_int_equal(listener_open(&listener, loop, &o), ERR_OK);
    return pthread_create(&thread, NULL, run, NULL);
}

static int end(void **state) {
    (void)state;
    for (int i = 0; ended < begun && i < 50000; i++) usleep(200);
    assert_int_equal(begun, ended);
    loop_stop(loop);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(listener_counts(listener).body_bytes, 0);
    listener_close(listener);
    loop_destroy(loop);
    return 0;
}

static void there_and_back(void **state) {
    (void)state;
    enum { BYTES = 3000000 };
    unsigned char *bytes = malloc(BYTES);
    assert_non_null(bytes);
    for (uint32_t i = 0; i < BYTES; i++) bytes[i] = (unsigned char)(i * 2654435761U >> 24);
    H2Client p = h2_client_open(listener_address(listener), false);
    assert_true(h2_client_headers(&p, 1, "/flow", false));
    assert_true(h2_client_data(&p, 1, bytes, BYTES, true));
    h2_client_answer(&p, 1, true, LONG);
    assert_true(p.ended && p.status == 200 && p.grpc == 0);
    assert_int_equal(p.body_len, BYTES);
    assert_memory_equal(p.body, bytes, BYTES);
    h2_client_close(&p);
    for (int i = 0; sent < 1 && i < 50000; i++) usleep(200);
    assert_int_equal(sent, 1);
    free(bytes);
}

// An answer to each part before the next is sent.
static void in_turns(void **state) {
    (void)state;
    H2Frame  f;
    H2Client p = h2_client_open(listener_address(listener), false);
    assert_true(h2_client_headers(&p, 1, "/flow", false));
    for (int i = 0; i < 50; i++) {
        char   said[32];
        size_t n = (size_t)(1 + i % 20);
        memset(said, 'a' + i % 26, n);
        assert_true(h2_client_data(&p, 1, said, n, false));
        size_t came = 0;
        while (came < n) {
            assert_true(h2_client_read(&p, &f, LONG));
            if (f.type != NGHTTP2_DATA) continue;
            assert_memory_equal(f.payload, said + came, f.len);
            came += f.len;
        }
    }
    assert_true(h2_client_data(&p, 1, "", 0, true));
    h2_client_answer(&p, 1, true, LONG);
    assert_true(p.ended && p.grpc == 0 && p.body_len == 0);
    h2_client_close(&p);
}

// A client that sends more than is consumed has to wait: the flow-control window closes.
static void windows_close(void **state) {
    (void)state;
    static char bytes[16384];
    H2Frame     f;
    H2Client    p = h2_client_open(listener_address(listener), false);
    asleep = true;
    assert_true(h2_client_headers(&p, 1, "/flow", false));
    for (size_t i = 0; i < (8 << 20) / sizeof bytes; i++)
        assert_true(h2_client_data(&p, 1, bytes, sizeof bytes, false));
    assert_true(h2_client_frame(&p, NGHTTP2_PING, 0, 0, "12345678", 8));
    for (;;) {  // until all of it was read
        assert_true(h2_client_read(&p, &f, LONG));
        if (f.type == NGHTTP2_PING) break;
        assert_false(f.type == NGHTTP2_WINDOW_UPDATE && f.id == 1);
    }
    assert_true(h2_client_data(&p, 1, "x", 1, false));  // a byte too many
    h2_client_answer(&p, 1, true, LONG);
    assert_int_equal(p.reset, NGHTTP2_FLOW_CONTROL_ERROR);
    assert_true(deepest <= (8 << 20) + 16384);
    h2_client_close(&p);
}

static void calls_end_in_the_middle(void **state) {
    (void)state;
    static char bytes[300000];
    H2Client    p = h2_client_open(listener_address(listener), false);
    assert_true(h2_client_headers(&p, 1, "/flow", false));
    assert_true(h2_client_data(&p, 1, bytes, sizeof bytes, false));
    assert_true(h2_client_reset(&p, 1, NGHTTP2_CANCEL));
    for (int i = 0; ended < 1 && i < 50000; i++) usleep(200);
    assert_int_equal(ended, 1);
    assert_true(h2_client_headers(&p, 3, "/flow", false));
    assert_true(h2_client_data(&p, 3, bytes, sizeof bytes, false));
    h2_client_close(&p);
    for (int i = 0; ended < 2 && i < 50000; i++) usleep(200);
    assert_int_equal(ended, 2);
    assert_int_equal(sent, 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(there_and_back, begin, end),
        cmocka_unit_test_setup_teardown(in_turns, begin, end),
        cmocka_unit_test_setup_teardown(windows_close, begin, end),
        cmocka_unit_test_setup_teardown(calls_end_in_the_middle, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
