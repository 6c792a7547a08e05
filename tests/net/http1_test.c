// HTTP/1.1 over real sockets: valid requests and their responses.
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

#include "tests/net/http1_server.h"
#include "tests/runner.h"

enum { ROOM = 1 << 20 };
static char body[ROOM];

#define HOST            "Host: a\r\n"
#define POST(path, len) "POST " path " HTTP/1.1\r\n" HOST "Content-Length: " len "\r\n\r\n"

static void a_body_comes_back(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    int          fd = http1_server_connect(h);
    for (int i = 0; i < 3; i++) {
        http1_server_text(fd, POST("/echo", "5") "hello");
        assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
        assert_string_equal(body, "hello");
    }
    http1_server_text(fd, POST("/later", "3") "abc");
    assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
    assert_string_equal(body, "abc");
    close(fd);
    http1_server_close(h);
}

static void any_split_of_a_request_is_the_same_request(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    const char  *text = POST("/echo", "5") "hello";
    for (size_t i = 1; i < strlen(text); i++) {
        int fd = http1_server_connect(h);
        http1_server_send(fd, text, i);
        usleep(300);
        http1_server_text(fd, text + i);
        assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
        assert_string_equal(body, "hello");
        close(fd);
    }
    http1_server_close(h);
}

static void chunks_are_put_together(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    int          fd = http1_server_connect(h);
    for (int i = 0; i < 2; i++) {
        http1_server_text(fd, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                              "5\r\nhello\r\n1;x=y\r\n,\r\n00A\r\n wide worl\r\n1\r\nd\r\n0\r\n"
                              "Trailer: x\r\n\r\n");
        assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
        assert_string_equal(body, "hello, wide world");
    }
    close(fd);
    http1_server_close(h);
}

static void large_bodies_and_answers_pass(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    int          fd = http1_server_connect(h);
    size_t       len = 700000;
    char        *text = malloc(len), head[200];
    for (size_t i = 0; i < len; i++) text[i] = (char)('a' + i % 26);
    for (int i = 0; i < 3; i++) {
        int n = snprintf(head, sizeof head, POST("/echo", "%zu"), len);
        http1_server_send(fd, head, (size_t)n);
        http1_server_send(fd, text, len);
        assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
        assert_int_equal(strlen(body), len);
        assert_memory_equal(body, text, len);
    }
    free(text);
    close(fd);
    http1_server_close(h);
}

static void the_body_is_placed_as_asked(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    int          fd = http1_server_connect(h);
    char         text[200];
    for (int i = 0; i < 130; i += 13) {
        int n = snprintf(text, sizeof text, POST("/aligned?%d", "3") "abc", i);
        http1_server_send(fd, text, (size_t)n);
        assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
        assert_string_equal(body, "0 3");
    }
    close(fd);
    http1_server_close(h);
}

static void pipelined_requests_are_answered_in_order(void **state) {
    (void)state;
    enum { N = 1000 };
    Http1Server *h = http1_server_open(NULL);
    int          fd = http1_server_connect(h);
    char        *text = malloc(N * 100);
    size_t       len = 0;
    for (int i = 0; i < N; i++)
        len +=
            (size_t)sprintf(text + len, POST("/%s", "4") "%04d", i % 50 == 3 ? "later" : "echo", i);
    http1_server_send(fd, text, len);
    for (int i = 0; i < N; i++) {
        assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
        assert_int_equal(strtol(body, NULL, 10), i);
    }
    free(text);
    close(fd);
    http1_server_close(h);
}

// The text of a refusal names the header.
static void wrong_lengths_are_named(void **state) {
    (void)state;
    static const char *const wrong[] = {"Content-Length: 2\r\nContent-Length: 2\r\n",
                                        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
                                        "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
                                        "Content-Length: 2x\r\n", "Content-Length: -2\r\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char         text[200];
        Http1Server *h = http1_server_open(NULL);
        int          fd = http1_server_connect(h);
        int n = snprintf(text, sizeof text, "POST /echo HTTP/1.1\r\n" HOST "%s\r\nok", wrong[i]);
        http1_server_send(fd, text, (size_t)n);
        assert_int_equal(http1_server_answer(fd, body, ROOM), 400);
        assert_non_null(strstr(body, "Content-Length"));
        close(fd);
        http1_server_close(h);
    }
}

static void keep_alive_is_as_the_version_and_the_client_say(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
        bool        stays;
    } rows[] = {
        {"GET /echo HTTP/1.1\r\n" HOST "\r\n", "Content-Length: 0\r\n\r\n", true},
        {"GET /echo HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", "Connection: close", false},
        {"GET /echo HTTP/1.0\r\n\r\n", "Connection: close", false},
        {"GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "Connection: keep-alive", true},
        {"GET /close HTTP/1.1\r\n" HOST "\r\n", "Connection: close", false},
    };
    Http1Server *h = http1_server_open(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int fd = http1_server_connect(h);
        http1_server_text(fd, rows[i].text);
        if (rows[i].stays) {
            assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
            http1_server_text(fd, rows[i].text);
            shutdown(fd, SHUT_WR);
        }
        http1_server_receive(fd, body, ROOM);
        assert_non_null(strstr(body, "HTTP/1.1 200 OK\r\n"));
        assert_non_null(strstr(body, rows[i].says));
        close(fd);
    }
    http1_server_close(h);
}

static void head_has_the_length_and_no_body(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    int          fd = http1_server_connect(h);
    http1_server_text(fd, "HEAD /big?1000 HTTP/1.1\r\n" HOST "\r\nGET /none HTTP/1.1\r\n" HOST
                          "Connection: close\r\n\r\n");
    http1_server_receive(fd, body, ROOM);
    assert_non_null(strstr(body, "Content-Length: 1000\r\n"));
    const char *second = strstr(body, "\r\n\r\nHTTP/1.1 204 No Content\r\n");
    assert_non_null(second);
    assert_null(strstr(second, "Content-Length"));
    close(fd);
    http1_server_close(h);
}

static void headers_of_answers_cannot_break_out(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    int          fd = http1_server_connect(h);
    http1_server_text(fd, "GET /extra?100000 HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    http1_server_receive(fd, body, ROOM);
    assert_null(strstr(body, "Worse"));
    const char *text = strstr(body, "X-Long: ");
    assert_non_null(text);
    assert_int_equal(strcspn(text + 8, "\r"), 100000);
    const char *date = strstr(body, "Date: ");
    assert_non_null(date);
    assert_int_equal(strcspn(date, "\r"), strlen("Date: Sun, 06 Nov 1994 08:49:37 GMT"));
    close(fd);
    http1_server_close(h);
}

static void who_expects_is_told_to_go_on(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    int          fd = http1_server_connect(h);
    http1_server_text(fd, "POST /echo HTTP/1.1\r\n" HOST
                          "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_int_equal(http1_server_answer(fd, body, ROOM), 100);
    http1_server_text(fd, "hi");
    assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
    assert_string_equal(body, "hi");
    http1_server_text(fd, "POST /early HTTP/1.1\r\n" HOST
                          "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_int_equal(http1_server_answer(fd, body, ROOM), 503);
    assert_int_equal(http1_server_answer(fd, body, ROOM),
                     0);  // the body may or may not follow
    close(fd);
    http1_server_close(h);
}

static void an_early_answer_drops_the_body_and_goes_on(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    int          fd = http1_server_connect(h);
    for (int i = 0; i < 3; i++) {
        http1_server_text(fd, POST("/early", "10"));
        assert_int_equal(http1_server_answer(fd, body, ROOM), 503);
        http1_server_text(fd, "0123456789");
        http1_server_text(fd, "POST /early HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                              "5\r\nhello\r\n0\r\n\r\n" POST("/echo", "2") "ok");
        assert_int_equal(http1_server_answer(fd, body, ROOM), 503);
        assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
        assert_string_equal(body, "ok");
    }
    close(fd);
    http1_server_close(h);
}

static void half_closed_clients_get_their_answer(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    assert_int_equal(http1_server_ask(h, POST("/later", "2") "ok"), 200);
    assert_int_equal(http1_server_ask(h, POST("/echo", "3") "ok"), 400);
    assert_int_equal(http1_server_ask(h, "GET /echo HT"), 400);
    assert_int_equal(http1_server_ask(h, "\r\n"), 0);
    http1_server_close(h);
}

static void eventually(const Http1Server *h, int (*count)(const Http1Server *h), int want) {
    for (int i = 0; i < 10000 && count(h) < want; i++) usleep(1000);
    assert_int_equal(count(h), want);
}

#define HOLD(version, more) "POST /hold " version "\r\n" HOST "Content-Length: 2\r\n" more "\r\nok"

// They close with FIN, as a client does that still waits; input beyond the request may be unread.
static void requests_of_clients_that_are_gone_end(void **state) {
    (void)state;
    const char *text[] = {HOLD("HTTP/1.1", ""), HOLD("HTTP/1.0", ""),
                          HOLD("HTTP/1.0", "Connection: keep-alive\r\n"),
                          HOLD("HTTP/1.1", "") HOLD("HTTP/1.1", "")};
    for (int i = 0; i < 5; i++) {
        Http1Server *h = http1_server_open(NULL);
        int          fd = http1_server_connect(h);
        http1_server_text(fd, text[i % 4]);
        eventually(h, http1_server_requests, 1);
        if (i == 4) http1_server_text(fd, text[0]);  // stays in the socket
        assert_int_equal(http1_server_lost(h), 0);
        close(fd);
        eventually(h, http1_server_lost, 1);
        http1_server_close(h);
    }
}

// The response's first bytes come ahead, one at once, one a second later, and not twice.
static void clients_that_wait_half_closed_are_probed(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    const char  *text = POST("/later?1500", "2") "ok" POST("/later", "3") "yes";
    char         byte[2] = "";
    int          fd = http1_server_connect(h);
    http1_server_text(fd, text);
    shutdown(fd, SHUT_WR);
    assert_int_equal(recv(fd, byte, 1, MSG_PEEK), 1);
    assert_string_equal(byte, "H");
    assert_int_equal(http1_server_ended(h), 0);
    assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
    assert_string_equal(body, "ok");
    assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
    assert_string_equal(body, "yes");
    assert_int_equal(recv(fd, byte, 1, 0), 0);
    close(fd);
    http1_server_close(h);
}

static void clients_that_leave_after_a_half_close_are_noticed(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    char         byte[2] = "";
    int          fd = http1_server_connect(h);
    http1_server_text(fd, HOLD("HTTP/1.1", ""));
    shutdown(fd, SHUT_WR);
    assert_int_equal(recv(fd, byte, 1, 0), 1);
    close(fd);
    eventually(h, http1_server_lost, 1);
    http1_server_close(h);
}

static void all_kinds_of_addresses_are_listened_at(void **state) {
    (void)state;
    char folder[] = "/tmp/cotenant-net-XXXXXX", path[64], address[80];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s.sock", folder);
    snprintf(address, sizeof address, "unix:%s", path);
    const char *places[] = {"localhost:0", "[::1]:0", address};
    for (int i = 0; i < 3; i++) {
        Http1Server *h = http1_server_open_at(NULL, places[i]);
        assert_int_equal(http1_server_ask(h, POST("/echo", "2") "ok"), 200);
        http1_server_close(h);
    }
    assert_int_not_equal(access(path, F_OK), 0);
    rmdir(folder);
}

static void draining_answers_what_is_due(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    int          busy = http1_server_connect(h), idle = http1_server_connect(h),
        sent = http1_server_connect(h);
    int late = http1_server_connect(h);
    http1_server_text(idle, POST("/echo", "2") "ok");
    assert_int_equal(http1_server_answer(idle, body, ROOM), 200);
    http1_server_text(busy, POST("/later", "2") "ok");
    while (http1_server_requests(h) < 2) usleep(100);
    http1_server_text(sent, POST("/echo", "2") "hi" POST("/echo", "2") "ho");
    http1_server_drain(h);
    http1_server_text(late, POST("/echo", "2") "on");
    assert_int_equal(http1_server_answer(late, body, ROOM), 200);
    assert_int_equal(http1_server_answer(late, body, ROOM), 0);
    assert_int_equal(http1_server_answer(idle, body, ROOM), 0);
    assert_int_equal(http1_server_answer(busy, body, ROOM), 200);
    assert_int_equal(http1_server_answer(busy, body, ROOM), 0);
    assert_int_equal(http1_server_answer(sent, body, ROOM), 200);
    assert_int_equal(http1_server_answer(sent, body, ROOM), 200);
    assert_int_equal(http1_server_answer(sent, body, ROOM), 0);
    for (int i = 0; i < 1000 && !http1_server_drained(h); i++) usleep(1000);
    assert_true(http1_server_drained(h));
    assert_int_equal(http1_server_lost(h), 0);
    close(busy), close(idle), close(sent), close(late);
    http1_server_close(h);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_comes_back),
        cmocka_unit_test(any_split_of_a_request_is_the_same_request),
        cmocka_unit_test(chunks_are_put_together),
        cmocka_unit_test(large_bodies_and_answers_pass),
        cmocka_unit_test(the_body_is_placed_as_asked),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(wrong_lengths_are_named),
        cmocka_unit_test(keep_alive_is_as_the_version_and_the_client_say),
        cmocka_unit_test(head_has_the_length_and_no_body),
        cmocka_unit_test(headers_of_answers_cannot_break_out),
        cmocka_unit_test(who_expects_is_told_to_go_on),
        cmocka_unit_test(an_early_answer_drops_the_body_and_goes_on),
        cmocka_unit_test(half_closed_clients_get_their_answer),
        cmocka_unit_test(requests_of_clients_that_are_gone_end),
        cmocka_unit_test(clients_that_wait_half_closed_are_probed),
        cmocka_unit_test(clients_that_leave_after_a_half_close_are_noticed),
        cmocka_unit_test(all_kinds_of_addresses_are_listened_at),
        cmocka_unit_test(draining_answers_what_is_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
