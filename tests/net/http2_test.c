// HTTP/2: calls, their limits, and hostile clients beside a well-behaved one.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/net/h2_server.h"
#include "tests/net/h2_client.h"
#include "tests/runner.h"

enum { LONG = 10000 };

static const TimeNs ms = 1000000;

static H2Client meet(const H2Server *h) {
    return h2_client_open(listener_address(h->listener), false);
}

// A normal call on its own connection.
static void well_served(const H2Server *h) {
    H2Client p = meet(h);
    assert_true(h2_client_headers(&p, 1, "/echo", false));
    assert_true(h2_client_data(&p, 1, "\0\0\0\0\5hello", 10, true));
    h2_client_answer(&p, 1, true, LONG);
    assert_true(p.ended && p.status == 200 && p.grpc == 0 && p.body_len == 10);
    assert_memory_equal(p.body, "\0\0\0\0\5hello", 10);
    h2_client_close(&p);
}

static void answers_calls(void **state) {
    (void)state;
    H2Server *h = h2_server_open(NULL);
    H2Client  p = meet(h);
    for (int32_t i = 0; i < 300; i++) {
        int32_t id = 2 * i + 1;
        assert_true(h2_client_headers(&p, id, "/echo", i % 3 == 0));
        if (i % 3 != 0) assert_true(h2_client_data(&p, id, "\0\0\0\0\3abc", 8, true));
        h2_client_answer(&p, id, true, LONG);
        assert_true(p.ended && p.status == 200 && p.reset == UINT32_MAX);
        assert_int_equal(p.body_len, i % 3 == 0 ? 0 : 8);
        if (i % 3 != 0) assert_int_equal(p.grpc, 0);
    }
    h2_client_close(&p);
    h2_server_eventually(&h->sent, 300);
    h2_server_close(h);
}

static void large_bodies_both_ways(void **state) {
    (void)state;
    enum { BYTES = 3000000 };
    H2Server      *h = h2_server_open(NULL);
    unsigned char *bytes = malloc(BYTES);
    assert_non_null(bytes);
    for (uint32_t i = 0; i < BYTES; i++) bytes[i] = (unsigned char)(i * 2654435761U >> 24);
    h->aligned = 13;
    H2Client p = meet(h);
    for (int32_t id = 1; id < 6; id += 2) {
        size_t len = id == 1 ? BYTES : 700001;
        assert_true(h2_client_headers(&p, id, "/echo", false));
        assert_true(h2_client_data(&p, id, bytes, len, true));
        h2_client_answer(&p, id, true, LONG);
        assert_true(p.ended && p.status == 200 && p.body_len == len);
        assert_memory_equal(p.body, bytes, len);
    }
    h2_client_close(&p);
    free(bytes);
    h2_server_close(h);
}

static void many_calls_at_once(void **state) {
    (void)state;
    H2Server *h = h2_server_open(NULL);
    H2Client  p = meet(h);
    for (int32_t i = 0; i < H2_SERVER_HELD; i++) {
        assert_true(h2_client_headers(&p, 2 * i + 1, "/hold", false));
        assert_true(h2_client_data(&p, 2 * i + 1, "x", 1, true));
    }
    h2_server_eventually(&h->requests, H2_SERVER_HELD);
    h2_server_do(h, h2_server_answer_held);
    for (int32_t i = H2_SERVER_HELD - 1; i >= 0; i--) {
        h2_client_answer(&p, 2 * i + 1, true, LONG);
        assert_true(p.ended && p.status == 200 && p.grpc == 0);
    }
    h2_client_close(&p);
    h2_server_eventually(&h->sent, H2_SERVER_HELD);
    h2_server_close(h);
}

static void early_answers_end_the_call(void **state) {
    (void)state;
    H2Server *h = h2_server_open(NULL);
    H2Client  p = meet(h);
    assert_true(h2_client_headers(&p, 1, "/early", false));
    h2_client_answer(&p, 1, true, LONG);
    assert_true(p.ended && p.status == 404 && p.grpc == 5);
    h2_client_answer(&p, 1, true, LONG);  // and the client need not send the rest
    assert_true(p.reset == NGHTTP2_NO_ERROR);
    assert_true(h2_client_headers(&p, 3, "/echo", true));
    h2_client_answer(&p, 3, true, LONG);
    assert_true(p.ended && p.status == 200);
    h2_client_close(&p);
    h2_server_close(h);
}

static void cancelled_calls_end(void **state) {
    (void)state;
    H2Server *h = h2_server_open(NULL);
    H2Client  p = meet(h);
    assert_true(h2_client_headers(&p, 1, "/hold", false));
    assert_true(h2_client_data(&p, 1, "12345", 5, true));
    h2_server_eventually(&h->requests, 1);
    assert_true(h2_client_reset(&p, 1, NGHTTP2_CANCEL));
    h2_server_eventually(&h->ended, 1);
    assert_int_equal(h->sent, 0);
    h2_server_do(h, h2_server_read_counts);
    assert_true(h->lent != NULL && h->counts.held_bytes >= 5);  // a computation still uses it
    assert_true(h2_client_headers(&p, 3, "/echo", true));
    h2_client_answer(&p, 3, true, LONG);
    assert_true(p.ended && p.status == 200);
    assert_true(h2_client_headers(&p, 5, "/hold", false));  // and a connection that breaks
    assert_true(h2_client_data(&p, 5, "123", 3, true));
    h2_server_eventually(&h->requests, 3);
    h2_client_close(&p);
    h2_server_eventually(&h->ended, 3);
    h2_server_close(h);
}

static void limits_hold(void **state) {
    (void)state;
    ListenerLimits limits = {.body_bytes = 1000, .held_bytes = 3000, .header_bytes = 2000};
    H2Server      *h = h2_server_open(&limits);
    unsigned char  bytes[2000] = {0}, block[4096];
    H2Client       p = meet(h);
    assert_true(h2_client_headers(&p, 1, "/echo", false));
    assert_true(h2_client_data(&p, 1, bytes, 1001, false));
    h2_client_answer(&p, 1, true, LONG);
    assert_true(p.grpc == 8 && strstr(p.message, "too large") != NULL);
    assert_true(h2_client_headers(&p, 3, "/small", false));
    assert_true(h2_client_data(&p, 3, bytes, 11, true));
    h2_client_answer(&p, 3, true, LONG);
    assert_int_equal(p.grpc, 8);
    for (int32_t id = 5; id <= 9; id += 2) {  // three that stay, and one too many
        assert_true(h2_client_headers(&p, id, "/hold", false));
        assert_true(h2_client_data(&p, id, bytes, 1000, true));
    }
    h2_server_eventually(&h->requests, 3);
    assert_true(h2_client_headers(&p, 11, "/echo", false));
    assert_true(h2_client_data(&p, 11, bytes, 1000, true));
    h2_client_answer(&p, 11, true, LONG);
    assert_int_equal(p.grpc, 14);
    h2_server_do(h, h2_server_answer_held);
    h2_client_answer(&p, 9, true, LONG);
    assert_int_equal(p.grpc, 0);
    const char *more[200];
    char        value[101];
    memset(value, 'v', 100);
    value[100] = '\0';
    for (int i = 0; i < 40; i += 2) more[i] = "x-long", more[i + 1] = value;
    more[40] = NULL;
    size_t n = h2_client_block(block, "POST", "/echo", more);
    assert_true(h2_client_frame(&p, NGHTTP2_HEADERS, 5, 13, block, n));
    h2_client_answer(&p, 13, true, LONG);
    assert_int_equal(p.status, 431);
    const char *declared[] = {"content-length", "1001", NULL};
    n = h2_client_block(block, "POST", "/echo", declared);
    assert_true(h2_client_frame(&p, NGHTTP2_HEADERS, 4, 15, block, n));
    h2_client_answer(&p, 15, true, LONG);
    assert_int_equal(p.status, 413);
    h2_client_close(&p);
    h2_server_close(h);
}

// Reads what comes until the connection is closed; true: GOAWAY said why.
static bool calmed(H2Client *p) {
    static H2Frame f;
    bool           said = false;
    while (h2_client_read(p, &f, LONG))
        if (f.type == NGHTTP2_GOAWAY) said |= f.payload[7] == NGHTTP2_ENHANCE_YOUR_CALM;
    assert_true(p->closed);
    return said;
}

static void rapid_resets(void **state) {
    (void)state;
    H2Server *h = h2_server_open(NULL);
    H2Client  p = meet(h);
    bool      open = true;
    int32_t   n = 0;
    for (; open && n < 100000; n++)
        open =
            h2_client_headers(&p, 2 * n + 1, "/echo", false) && h2_client_reset(&p, 2 * n + 1, 8);
    assert_true(n < 100000);
    h2_client_close(&p);
    well_served(h);
    p = meet(h);  // few of them, and the reason is said
    for (n = 0; n < 1500; n++) {
        (void)h2_client_headers(&p, 2 * n + 1, "/echo", false);
        (void)h2_client_reset(&p, 2 * n + 1, 8);
    }
    assert_true(calmed(&p));
    h2_client_close(&p);
    well_served(h);
    h2_server_close(h);
}

static void endless_headers(void **state) {
    (void)state;
    H2Server     *h = h2_server_open(NULL);
    H2Client      p = meet(h);
    unsigned char block[1024], rest[1000];
    memset(rest, 0, sizeof rest);
    size_t n = h2_client_block(block, "POST", "/echo", NULL);
    assert_true(h2_client_frame(&p, NGHTTP2_HEADERS, 0, 1, block, n));
    bool open = true;
    for (int i = 0; open && i < 200000; i++) {
        const char *pair[] = {"x-more", "0123456789", NULL};
        n = h2_client_block(block, "POST", "/", pair);
        size_t skip = h2_client_block(rest, "POST", "/", NULL);
        open = h2_client_frame(&p, NGHTTP2_CONTINUATION, 0, 1, block + skip, n - skip);
    }
    assert_false(open);
    h2_client_close(&p);
    p = meet(h);  // a bomb: one long header, and references to it
    char value[200];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    const char *pair[] = {"x-bomb", value, NULL};
    n = h2_client_block(block, "POST", "/echo", NULL);
    size_t all = h2_client_block(block, "POST", "/echo", pair);
    block[n] = 0x40;  // the literal is to be remembered
    static unsigned char bomb[16000];
    memcpy(bomb, block, all);
    memset(bomb + all, 0xbe, sizeof bomb - all);
    assert_true(h2_client_frame(&p, NGHTTP2_HEADERS, 5, 1, bomb, sizeof bomb));
    assert_true(calmed(&p));
    h2_client_close(&p);
    well_served(h);
    h2_server_close(h);
}

static void floods(void **state) {
    (void)state;
    H2Server            *h = h2_server_open(NULL);
    static const uint8_t types[] = {NGHTTP2_SETTINGS, NGHTTP2_PING, NGHTTP2_DATA, NGHTTP2_PRIORITY};
    for (size_t t = 0; t < sizeof types; t++) {
        H2Client      p = meet(h);
        unsigned char payload[8] = {0};
        size_t        len = types[t] == NGHTTP2_PING ? 8 : types[t] == NGHTTP2_PRIORITY ? 5 : 0;
        int32_t       id = types[t] == NGHTTP2_DATA || types[t] == NGHTTP2_PRIORITY ? 1 : 0;
        if (types[t] == NGHTTP2_DATA) assert_true(h2_client_headers(&p, 1, "/echo", false));
        bool open = true;
        for (int i = 0; open && i < 500000; i++) {
            open = h2_client_frame(&p, types[t], 0, id, payload, len);
            if (i == 1000) well_served(h);
        }
        assert_false(open);
        h2_client_close(&p);
        well_served(h);
    }
    H2Client p = meet(h);  // a body in frames of one byte
    assert_true(h2_client_headers(&p, 1, "/echo", false));
    bool open = true;
    for (int i = 0; open && i < 500000; i++) open = h2_client_frame(&p, NGHTTP2_DATA, 0, 1, "x", 1);
    assert_false(open);
    h2_client_close(&p);
    well_served(h);
    h2_server_close(h);
}

static void set(unsigned char to[6], uint16_t key, uint32_t value) {
    to[0] = (unsigned char)(key >> 8), to[1] = (unsigned char)key;
    for (int i = 0; i < 4; i++) to[2 + i] = (unsigned char)(value >> (24 - 8 * i));
}

static void stalled_windows(void **state) {
    (void)state;
    // A server that had no core for 200 ms may reset the call before the socket is full: then the
    // connection is idle.
    ListenerLimits limits = {.write_ns = 200 * ms, .idle_ns = 2000 * ms};
    H2Server      *h = h2_server_open(&limits);
    H2Client       p = meet(h);
    unsigned char  window[6];
    set(window, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
    assert_true(h2_client_frame(&p, NGHTTP2_SETTINGS, 0, 0, window, 6));
    assert_true(h2_client_headers(&p, 1, "/big?100000", true));
    h2_client_answer(&p, 1, false, LONG);
    assert_true(p.status == 200 && p.reset == NGHTTP2_CANCEL && p.body_len == 0);
    h2_server_eventually(&h->ended, 1);
    assert_int_equal(h->sent, 0);
    h2_client_close(&p);
    p = meet(h);  // windows are wide, but nothing is read
    set(window, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0x7fffffff);
    assert_true(h2_client_frame(&p, NGHTTP2_SETTINGS, 0, 0, window, 6));
    unsigned char wide[4] = {0x7f, 0, 0, 0};
    assert_true(h2_client_frame(&p, NGHTTP2_WINDOW_UPDATE, 0, 0, wide, 4));
    assert_true(h2_client_headers(&p, 1, "/big?50000000", true));
    h2_server_eventually(&h->ended, 2);
    assert_int_equal(h->sent, 0);
    h2_server_until_closed(h);
    h2_client_close(&p);
    well_served(h);
    h2_server_close(h);
}

static void slow_clients(void **state) {
    (void)state;
    ListenerLimits limits = {.header_ns = 150 * ms, .body_ns = 300 * ms, .idle_ns = 400 * ms};
    H2Server      *h = h2_server_open(&limits);
    H2Frame        f;
    H2Client       p = h2_client_open(listener_address(h->listener), true);  // says nothing
    while (h2_client_read(&p, &f, LONG)) {
    }
    assert_true(p.closed);
    h2_client_close(&p);
    p = meet(h);  // headers that never end
    unsigned char block[512];
    size_t        n = h2_client_block(block, "POST", "/echo", NULL);
    assert_true(h2_client_frame(&p, NGHTTP2_HEADERS, 0, 1, block, n));
    assert_true(calmed(&p));
    h2_client_close(&p);
    p = meet(h);  // a body that never ends
    assert_true(h2_client_headers(&p, 1, "/echo", false));
    assert_true(h2_client_data(&p, 1, "x", 1, false));
    h2_client_answer(&p, 1, true, LONG);
    assert_int_equal(p.grpc, 4);
    h2_client_answer(&p, 3, true, LONG);  // and then nothing at all
    assert_true(p.closed && p.goaway == NGHTTP2_NO_ERROR);
    h2_client_close(&p);
    h2_server_close(h);
}

static void other_languages(void **state) {
    (void)state;
    H2Server *h = h2_server_open(NULL);
    H2Client  p = h2_client_open(listener_address(h->listener), true);
    char      said[4096] = "";
    assert_true(h2_client_write(&p, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27));
    size_t n = 0;
    for (ssize_t r = 1; r > 0 && n < sizeof said - 1; n += (size_t)(r > 0 ? r : 0))
        r = read(p.fd, said + n, sizeof said - 1 - n);
    bool found = false;
    for (size_t i = 0; i + 12 < n; i++) found |= memcmp(said + i, "HTTP/1.1 400", 12) == 0;
    assert_true(found);
    h2_client_close(&p);
    p = meet(h);
    (void)h2_client_frame(&p, 0, 0, 0, "DATA on stream 0", 16);
    H2Frame f;
    while (h2_client_read(&p, &f, LONG)) {
    }
    assert_true(p.closed);
    h2_client_close(&p);
    well_served(h);
    h2_server_close(h);
}

static void draining_loses_nothing(void **state) {
    (void)state;
    H2Server *h = h2_server_open(NULL);
    H2Client  busy = meet(h), idle = meet(h);
    assert_true(h2_client_headers(&idle, 1, "/echo", true));
    h2_client_answer(&idle, 1, true, LONG);
    assert_true(h2_client_headers(&busy, 1, "/hold", false));
    assert_true(h2_client_data(&busy, 1, "12345", 5, true));
    h2_server_eventually(&h->requests, 2);
    h2_server_do(h, h2_server_drain);
    assert_true(h2_client_headers(&busy, 3, "/hold", true));  // before it heard of it
    h2_server_eventually(&h->requests, 3);
    h2_client_answer(&idle, 99, true, LONG);
    assert_true(idle.closed && idle.goaway == NGHTTP2_NO_ERROR);
    h2_server_do(h, h2_server_answer_held);
    for (int32_t id = 3; id >= 1; id -= 2) {
        h2_client_answer(&busy, id, true, LONG);
        assert_true(busy.ended && busy.status == 200);
    }
    h2_client_answer(&busy, 99, true, LONG);
    assert_true(busy.closed);
    h2_server_eventually(&h->sent, 3);
    h2_client_close(&busy);
    h2_client_close(&idle);
    for (int i = 0; i < 1000 && !h->drained; i++) {
        usleep(1000);
        h2_server_do(h, h2_server_read_counts);
    }
    assert_true(h->drained);
    h2_server_close(h);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_calls),
        cmocka_unit_test(large_bodies_both_ways),
        cmocka_unit_test(many_calls_at_once),
        cmocka_unit_test(early_answers_end_the_call),
        cmocka_unit_test(cancelled_calls_end),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(rapid_resets),
        cmocka_unit_test(endless_headers),
        cmocka_unit_test(floods),
        cmocka_unit_test(stalled_windows),
        cmocka_unit_test(slow_clients),
        cmocka_unit_test(other_languages),
        cmocka_unit_test(draining_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
