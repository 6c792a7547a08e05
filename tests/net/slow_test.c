// Clients that are slow, stop halfway, never read or send too much take bounded time and memory,
// and others are served.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/net/http1_server.h"
#include "tests/runner.h"

enum { ROOM = 1 << 20, MS = 1000000 };
static char body[ROOM];

#define HOST            "Host: a\r\n"
#define POST(path, len) "POST " path " HTTP/1.1\r\n" HOST "Content-Length: " len "\r\n\r\n"

static double seconds(void) { return (double)clock_now(clock_monotonic()) / 1e9; }

// A byte every few milliseconds, so that an idle timer alone would never end it.
static int drip(Http1Server *h, const char *first, const char *drop) {
    int    fd = http1_server_connect(h), status = 0;
    double start = seconds();
    char   byte;
    http1_server_text(fd, first);
    while (seconds() - start < 20 && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0) {
        send(fd, drop, 1, MSG_NOSIGNAL);
        usleep(3000);
    }
    assert_true(seconds() - start < 19);
    status = http1_server_answer(fd, body, ROOM);
    close(fd);
    return status;
}

static void drips_end_by_the_clock(void **state) {
    (void)state;
    ListenerLimits limits = {.header_ns = 100 * MS, .body_ns = 150 * MS};
    Http1Server   *h = http1_server_open(&limits);
    assert_int_equal(drip(h, "GET /", "x"), 408);
    assert_int_equal(drip(h, "GET /echo HTTP/1.1\r\nX: ", "x"), 408);
    assert_int_equal(drip(h, POST("/echo", "100000"), "x"), 408);
    assert_int_equal(
        drip(h, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nffff\r\n", "x"),
        408);
    assert_int_equal(http1_server_ask(h, POST("/echo", "2") "ok"), 200);
    assert_int_equal(http1_server_counts(h).body_bytes, 0);
    http1_server_close(h);
}

static void who_promises_and_holds_costs_nothing_and_is_ended(void **state) {
    (void)state;
    ListenerLimits limits = {.body_ns = 300 * MS, .held_bytes = 1 << 20};
    Http1Server   *h = http1_server_open(&limits);
    int            fds[40];
    for (int i = 0; i < 40; i++) {
        fds[i] = http1_server_connect(h);
        http1_server_text(fds[i], i % 2 ? POST("/echo", "900000") "0123456789"
                                        : "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n"
                                          "Content-Length: 900000\r\n\r\n");
    }
    while (http1_server_heads(h) < 40) usleep(500);
    assert_true(http1_server_counts(h).body_bytes < 4096);
    assert_int_equal(http1_server_ask(h, POST("/echo", "2") "ok"), 200);
    for (int i = 0; i < 40; i++) {
        int status = http1_server_answer(fds[i], body, ROOM);
        if (status == 100) status = http1_server_answer(fds[i], body, ROOM);
        assert_int_equal(status, 408);
        close(fds[i]);
    }
    http1_server_close(h);
}

static void the_bytes_of_all_bodies_are_bounded(void **state) {
    (void)state;
    ListenerLimits limits = {.held_bytes = 1 << 20};
    Http1Server   *h = http1_server_open(&limits);
    char          *text = calloc(1, 900000);
    int            first = http1_server_connect(h), second = http1_server_connect(h);
    http1_server_text(first, POST("/hold", "900000"));
    http1_server_send(first, text, 900000);
    while (http1_server_requests(h) < 1) usleep(500);
    assert_int_equal(http1_server_counts(h).body_bytes, 900000);
    http1_server_text(second, POST("/echo", "900000"));
    http1_server_send(second, text, 900000);
    assert_int_equal(http1_server_answer(second, body, ROOM), 503);
    assert_int_equal(http1_server_ask(h, POST("/echo", "2") "ok"), 200);
    close(second);
    struct linger reset = {.l_onoff = 1};
    setsockopt(first, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(first);  // with RST: noticed while the answer is waited for
    while (http1_server_ended(h) < http1_server_heads(h)) usleep(500);
    assert_int_equal(http1_server_counts(h).body_bytes, 0);
    second = http1_server_connect(h);
    http1_server_text(second, POST("/echo", "900000"));
    http1_server_send(second, text, 900000);
    assert_int_equal(http1_server_answer(second, body, ROOM), 200);
    close(second);
    free(text);
    http1_server_close(h);
}

static void idle_connections_end_quietly(void **state) {
    (void)state;
    ListenerLimits limits = {.idle_ns = 500 * MS};
    Http1Server   *h = http1_server_open(&limits);
    int            fresh = http1_server_connect(h), used = http1_server_connect(h);
    http1_server_text(used, POST("/echo", "2") "ok");
    assert_int_equal(http1_server_answer(used, body, ROOM), 200);
    assert_int_equal(http1_server_receive(used, body, ROOM), 0);
    assert_int_equal(http1_server_receive(fresh, body, ROOM), 0);
    close(fresh), close(used);
    assert_int_equal(http1_server_counts(h).bad, 0);
    http1_server_close(h);
}

static void who_never_reads_is_given_up(void **state) {
    (void)state;
    ListenerLimits limits = {.write_ns = 100 * MS};
    Http1Server   *h = http1_server_open(&limits);
    int            fd = http1_server_connect(h), size = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    http1_server_text(fd, "GET /big?8000000 HTTP/1.1\r\n" HOST "\r\n");
    double start = seconds();
    while (http1_server_lost(h) == 0 && seconds() - start < 20) {
        assert_int_equal(http1_server_ask(h, POST("/echo", "2") "ok"), 200);
        usleep(5000);
    }
    assert_int_equal(http1_server_lost(h), 1);
    close(fd);
    http1_server_close(h);
}

static void a_slow_reader_gets_all_of_it(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    int          fd = http1_server_connect(h);
    size_t       got = 0;
    http1_server_text(fd, "GET /big?3000000 HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    for (ssize_t n; (n = recv(fd, body, 60000, 0)) > 0; usleep(200)) {
        got += (size_t)n;
        if (got > 2000000) assert_int_equal(body[n - 1] >= 'a' && body[n - 1] < 'a' + 23, 1);
    }
    assert_true(got > 3000000 && got < 3000300);
    close(fd);
    http1_server_close(h);
}

static void resets_at_any_time_are_survived(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "GET /ec",
                                        POST("/echo", "9") "123",
                                        POST("/hold", "2") "ok",
                                        POST("/later", "2") "ok",
                                        "GET /big?8000000 HTTP/1.1\r\n" HOST "\r\n",
                                        "GET /big?8000000 HTTP/1.1\r\n" HOST
                                        "\r\nGET /big?8000000 HTTP/1.1\r\n" HOST "\r\n"};
    Http1Server             *h = http1_server_open(NULL);
    struct linger            reset = {.l_onoff = 1};
    for (int i = 0; i < 210; i++) {
        int fd = http1_server_connect(h);
        http1_server_text(fd, texts[i % 7]);
        usleep((unsigned)(i % 5) * 150);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
    }
    for (int i = 0; i < 1000 && http1_server_counts(h).open > 0; i++) usleep(1000);
    assert_int_equal(http1_server_counts(h).open, 0);
    assert_int_equal(http1_server_heads(h), http1_server_ended(h));
    assert_int_equal(http1_server_counts(h).body_bytes, 0);
    assert_int_equal(http1_server_ask(h, POST("/echo", "2") "ok"), 200);
    http1_server_close(h);
}

static void ten_thousand_pipelined_requests_leave_room_for_others(void **state) {
    (void)state;
    enum { N = 10000 };
    Http1Server *h = http1_server_open(NULL);
    const char  *one = POST("/echo", "2") "ok";
    size_t       len = strlen(one);
    char        *text = malloc(N * len);
    for (size_t i = 0; i < N; i++) memcpy(text + i * len, one, len);
    int fd = http1_server_connect(h);
    http1_server_send(fd, one, len);
    usleep(20000);
    ssize_t answer = recv(fd, body, ROOM, 0);  // all are of the same length
    assert_true(answer > 20 && memcmp(body, "HTTP/1.1 200", 12) == 0);
    for (int i = 0; i < N; i += 500) {
        http1_server_send(fd, text, 500 * len);
        assert_int_equal(http1_server_ask(h, one), 200);
        assert_int_equal(recv(fd, body, 500 * (size_t)answer, MSG_WAITALL), 500 * answer);
        for (ssize_t j = 0; j < 500; j++)
            assert_memory_equal(body + j * answer, "HTTP/1.1 200", 12);
    }
    close(fd);
    int deaf = http1_server_connect(h);  // sends all of them and reads no answer
    int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
    for (size_t at = 0; at < N * len;) {
        ssize_t n = send(deaf, text + at, N * len - at, flags);
        if (n <= 0) break;
        at += (size_t)n;
    }
    assert_int_equal(http1_server_ask(h, one), 200);
    assert_true(http1_server_counts(h).held_bytes < 1 << 20);
    close(deaf);
    free(text);
    http1_server_close(h);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drips_end_by_the_clock),
        cmocka_unit_test(who_promises_and_holds_costs_nothing_and_is_ended),
        cmocka_unit_test(the_bytes_of_all_bodies_are_bounded),
        cmocka_unit_test(idle_connections_end_quietly),
        cmocka_unit_test(who_never_reads_is_given_up),
        cmocka_unit_test(a_slow_reader_gets_all_of_it),
        cmocka_unit_test(resets_at_any_time_are_survived),
        cmocka_unit_test(ten_thousand_pipelined_requests_leave_room_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
