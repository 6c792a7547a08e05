// When connections or memory run out, those that wait for their client make room.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/net/h2_client.h"
#include "tests/net/h2_server.h"
#include "tests/net/http1_server.h"
#include "tests/runner.h"

enum { ROOM = 1 << 16, PLACES = 16, LONG_MS = 20000 };
static const TimeNs IDLE_NS = 1000000000;
static char         body[ROOM];

#define ASK          "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok"
#define PART         "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 200\r\n\r\nx"
#define HOLD         "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok"
#define CHUNKED_PART "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n"

// Whether the server has closed it.
static bool closed(int fd) {
    char byte;
    for (int i = 0; i < 20; i++) {
        ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
        if (n == 0) return true;
        usleep(1000);
    }
    return false;
}

// Incomplete requests of every kind take all places, again and again; a request that is complete is
// never given up for them.
static void incomplete_requests_keep_nobody_out(void **state) {
    (void)state;
    static const char *const kinds[] = {"", "GET /ec", PART, ASK PART, ASK "GET /ec", CHUNKED_PART};
    ListenerLimits           limits = {.connections = PLACES};
    Http1Server             *h = http1_server_open(&limits);
    int                      busy = http1_server_connect(h), fds[PLACES];
    http1_server_text(busy, HOLD);
    while (http1_server_requests(h) < 1) usleep(200);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (int i = 0; i < PLACES; i++) {
            fds[i] = http1_server_connect(h);
            http1_server_text(fds[i], kinds[k]);
        }
        for (int i = 0; i < 5; i++) assert_int_equal(http1_server_ask(h, ASK), 200);
        for (int i = 0; i < PLACES; i++) close(fds[i]);
    }
    assert_false(closed(busy));
    assert_int_equal(http1_server_counts(h).refused, 0);
    assert_true(http1_server_counts(h).evicted > 0);
    close(busy);
    http1_server_close(h);
}

static int connect_v4(const char *address) {
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port =
                                 htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10)),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval     patience = {.tv_sec = 5};
    int                fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

// ::1 and 127.0.0.1 are two clients of a socket for both.
static void an_address_with_many_loses_its_own(void **state) {
    (void)state;
    ListenerLimits limits = {.connections = PLACES};
    Http1Server   *h = http1_server_open_at(&limits, "[::]:0");
    int            other = http1_server_connect(h), fds[4 * PLACES];
    http1_server_text(other, ASK);
    assert_int_equal(http1_server_answer(other, body, ROOM), 200);
    usleep(1200000);  // the oldest, and idle for long
    for (int i = 0; i < 4 * PLACES; i++) {
        fds[i] = connect_v4(http1_server_address(h));
        http1_server_text(fds[i], ASK);
        assert_int_equal(http1_server_answer(fds[i], body, ROOM), 200);
    }
    assert_false(closed(other));
    http1_server_text(other, ASK);
    assert_int_equal(http1_server_answer(other, body, ROOM), 200);
    for (int i = 0; i < 4 * PLACES; i++) close(fds[i]);
    close(other);
    http1_server_close(h);
}

static int ask_times(const Http1Server *h, int times) {
    int fd = http1_server_connect(h);
    for (int i = 0; i < times; i++) {
        http1_server_text(fd, ASK);
        assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
    }
    return fd;
}

// Connections that make a few requests and then hold their place: those that have made fewest are
// closed first, though the one with more requests is idle for longer. All newcomers are served.
static void idle_connections_keep_no_newcomer_out(void **state) {
    (void)state;
    ListenerLimits limits = {.connections = PLACES};
    for (int times = 1; times <= 9; times += 4) {
        Http1Server *h = http1_server_open(&limits);
        int          steady = ask_times(h, 64), fds[4 * PLACES];
        TimeNs       last = clock_monotonic_ns();
        bool         calm = true;  // this test was not delayed so that it is idle for a second
        for (int i = 0; i < 4 * PLACES; i++) {
            fds[i] = ask_times(h, times);
            calm = calm && clock_monotonic_ns() - last < IDLE_NS / 2;
            if (!calm || i % 24 != 0) continue;
            assert_false(closed(steady));
            http1_server_text(steady, ASK);
            assert_int_equal(http1_server_answer(steady, body, ROOM), 200);
            last = clock_monotonic_ns();
        }
        assert_int_equal(http1_server_counts(h).refused, 0);
        assert_true(http1_server_counts(h).evicted >= 3 * PLACES);
        for (int i = 0; i < 4 * PLACES; i++) close(fds[i]);
        close(steady);
        http1_server_close(h);
    }
}

// An idle connection among busy ones has a second; a newcomer waits for its place.
static void an_idle_connection_has_a_second(void **state) {
    (void)state;
    ListenerLimits limits = {.connections = PLACES};
    Http1Server   *h = http1_server_open(&limits);
    int            busy[PLACES];
    for (int i = 0; i < PLACES - 1; i++) {
        busy[i] = http1_server_connect(h);
        http1_server_text(busy[i], HOLD);
    }
    while (http1_server_requests(h) < PLACES - 1) usleep(200);
    TimeNs began = clock_monotonic_ns();
    int    idle = ask_times(h, 1);
    assert_int_equal(http1_server_ask(h, ASK), 200);
    assert_true(clock_monotonic_ns() - began >= IDLE_NS);
    assert_true(closed(idle));
    assert_int_equal(http1_server_counts(h).refused, 0);
    for (int i = 0; i < PLACES - 1; i++) {
        assert_false(closed(busy[i]));
        close(busy[i]);
    }
    close(idle);
    http1_server_close(h);
}

// A newcomer that has not sent its request yet is not closed for others while most connections do
// not read their responses.
static void unread_responses_go_before_newcomers(void **state) {
    (void)state;
    ListenerLimits limits = {.connections = PLACES};
    Http1Server   *h = http1_server_open(&limits);
    int            fds[PLACES];
    for (int i = 0; i < PLACES - 1; i++) {
        fds[i] = http1_server_connect(h);
        http1_server_text(fds[i], "GET /big?8000000 HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    while (http1_server_requests(h) < PLACES - 1) usleep(200);
    usleep(100000);  // they stall
    int newcomer = http1_server_connect(h);
    usleep(20000);
    for (int i = 0; i < 4; i++) assert_int_equal(http1_server_ask(h, ASK), 200);
    http1_server_text(newcomer, ASK);
    assert_int_equal(http1_server_answer(newcomer, body, ROOM), 200);
    for (int i = 0; i < PLACES - 1; i++) close(fds[i]);
    close(newcomer);
    http1_server_close(h);
}

static void responses_that_are_not_read_make_room(void **state) {
    (void)state;
    Budget       budget = {.setting = "buffered_mb", .most = 24 << 20};
    Http1Server *h = http1_server_open_shared(NULL, "127.0.0.1:0", &budget);
    int          fds[3];
    for (int i = 0; i < 3; i++) {  // 24 MB, of which the kernel takes less
        fds[i] = http1_server_connect(h);
        http1_server_text(fds[i], "GET /big?8000000 HTTP/1.1\r\nHost: a\r\n\r\n");
        while (http1_server_requests(h) < i + 1) usleep(200);
    }
    assert_true(http1_server_counts(h).held_bytes < 1 << 20);
    for (int i = 0; i < 300 && http1_server_lost(h) == 0; i++) usleep(10000);
    assert_true(http1_server_lost(h) > 0);  // without a new request: three quarters are used
    assert_int_equal(http1_server_ask(h, "GET /big?60000 HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
    char *text = calloc(1, 7000000);
    int   fd = http1_server_connect(h);
    http1_server_text(fd, "POST /echo?7 HTTP/1.1\r\nHost: a\r\nContent-Length: 7000000\r\n\r\n");
    http1_server_send(fd, text, 7000000);
    assert_int_equal(http1_server_receive(fd, text, 20), 19);
    assert_memory_equal(text, "HTTP/1.1 200", 12);
    for (int i = 0; i < 3; i++) close(fds[i]);
    close(fd), free(text);
    http1_server_close(h);
    assert_int_equal(budget_used(&budget), 0);
}

// All that a listener holds is in the budget, and is given back.
static void everything_is_counted(void **state) {
    (void)state;
    Budget       budget = {.setting = "buffered_mb", .most = 24 << 20};
    Http1Server *h = http1_server_open_shared(NULL, "127.0.0.1:0", &budget);
    int          fds[50];
    for (int i = 0; i < 50; i++) {
        fds[i] = http1_server_connect(h);
        http1_server_text(fds[i], PART);
    }
    while (http1_server_heads(h) < 50) usleep(200);
    size_t held = http1_server_counts(h).held_bytes;
    assert_int_equal(held, budget_used(&budget));
    assert_true(held > 50 * 2048 && held < 50 * 70000);
    for (int i = 0; i < 50; i++) close(fds[i]);
    while (http1_server_counts(h).open > 0) usleep(200);
    assert_int_equal(http1_server_counts(h).held_bytes, 0);
    http1_server_close(h);
    H2Server *s = h2_server_open(NULL);
    H2Client  p = h2_client_open(listener_address(s->listener), false);
    h2_server_do(s, h2_server_read_counts);
    assert_true(s->counts.held_bytes > 4096);
    h2_client_close(&p);
    h2_server_until_closed(s);
    assert_int_equal(s->counts.held_bytes, 0);
    assert_int_equal(budget_used(&s->budget), 0);
    h2_server_close(s);
}

static void windowless(H2Client *p, const char *address) {
    // No table of headers, so that frames can be skipped, and no window.
    static const unsigned char settings[] = {0, 1, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0};
    *p = h2_client_open(address, true);
    assert_true(h2_client_write(p, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24));
    assert_true(h2_client_frame(p, NGHTTP2_SETTINGS, 0, 0, settings, sizeof settings));
}

// Streams without a window are reset when memory is short; the connection and its other calls stay.
static void streams_without_a_window_make_room(void **state) {
    (void)state;
    H2Server *h = h2_server_open_within(NULL, 24 << 20);
    H2Client  p;
    windowless(&p, listener_address(h->listener));
    for (int32_t id = 1; id <= 5; id += 2)
        assert_true(h2_client_headers(&p, id, "/big?7000000", true));
    h2_server_eventually(&h->requests, 3);
    h2_client_answer(&p, 1, false, LONG_MS);
    assert_int_equal(p.reset, NGHTTP2_ENHANCE_YOUR_CALM);
    static const unsigned char window[] = {0, 0, 0, 100};
    assert_true(h2_client_headers(&p, 7, "/echo", false));
    assert_true(h2_client_frame(&p, NGHTTP2_WINDOW_UPDATE, 0, 7, window, 4));
    assert_true(h2_client_data(&p, 7, "hello", 5, true));
    h2_client_answer(&p, 7, false, LONG_MS);
    assert_true(p.ended && p.status == 200 && p.body_len == 5);
    assert_true(budget_used(&h->budget) < 24 << 20);
    h2_client_close(&p);
    h2_server_close(h);
}

// A connection gets no further responses made while it leaves many bytes unread.
static void calls_wait_for_their_client_to_read(void **state) {
    (void)state;
    H2Server *h = h2_server_open(NULL);
    H2Client  p;
    windowless(&p, listener_address(h->listener));
    assert_true(h2_client_headers(&p, 1, "/big?9000000", true));
    h2_server_eventually(&h->requests, 1);
    for (int32_t id = 3; id <= 39; id += 2)
        assert_true(h2_client_headers(&p, id, "/big?9000000", true));
    assert_true(h2_client_frame(&p, NGHTTP2_PING, 0, 0, "12345678", 8));
    for (H2Frame f = {0}; f.type != NGHTTP2_PING;) assert_true(h2_client_read(&p, &f, LONG_MS));
    assert_true(h->requests >= 2 && h->requests <= 4);
    static const unsigned char settings[] = {0, 4, 0x7f, 0xff, 0xff, 0xff}, all[] = {0x7f, 0, 0, 0};
    assert_true(h2_client_frame(&p, NGHTTP2_WINDOW_UPDATE, 0, 0, all, 4));
    assert_true(h2_client_frame(&p, NGHTTP2_SETTINGS, 0, 0, settings, sizeof settings));
    h2_client_answer(&p, 39, true, LONG_MS);
    assert_true(p.ended && p.body_len == 9000000);
    assert_int_equal(h->requests, 20);
    h2_client_close(&p);
    h2_server_close(h);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(incomplete_requests_keep_nobody_out),
        cmocka_unit_test(an_address_with_many_loses_its_own),
        cmocka_unit_test(idle_connections_keep_no_newcomer_out),
        cmocka_unit_test(an_idle_connection_has_a_second),
        cmocka_unit_test(unread_responses_go_before_newcomers),
        cmocka_unit_test(responses_that_are_not_read_make_room),
        cmocka_unit_test(everything_is_counted),
        cmocka_unit_test(streams_without_a_window_make_room),
        cmocka_unit_test(calls_wait_for_their_client_to_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
