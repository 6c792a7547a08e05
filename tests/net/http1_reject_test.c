// Requests that HTTP/1.1 connections reject: ambiguous ones, and those beyond limits.
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

#define HOST    "Host: a\r\n"
#define GET     "GET /echo HTTP/1.1\r\n"
#define POST    "POST /echo HTTP/1.1\r\n" HOST
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

typedef struct Row {
    const char *name, *text;
    size_t      len;  // 0: up to the terminator
    int         status;
} Row;

static const Row rows[] = {
    {"both lengths", POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0,
     400},
    {"both lengths, the other way",
     POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 0, 400},
    {"two lengths", POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 0, 400},
    {"the same length twice", POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 0, 400},
    {"negative length", POST "Content-Length: -5\r\n\r\nhello", 0, 400},
    {"length with plus", POST "Content-Length: +5\r\n\r\nhello", 0, 400},
    {"list of lengths", POST "Content-Length: 5, 5\r\n\r\nhello", 0, 400},
    {"length in hexadecimal", POST "Content-Length: 0x5\r\n\r\nhello", 0, 400},
    {"length with a gap", POST "Content-Length: 1 0\r\n\r\nhello", 0, 400},
    {"empty length", POST "Content-Length:\r\n\r\nhello", 0, 400},
    {"length over 2^64", POST "Content-Length: 18446744073709551621\r\n\r\nhello", 0, 400},
    {"length of 2^64 - 1", POST "Content-Length: 18446744073709551615\r\n\r\nhello", 0, 413},
    {"space before colon", GET HOST "X : y\r\n\r\n", 0, 400},
    {"space before the colon of a length", POST "Content-Length : 5\r\n\r\nhello", 0, 400},
    {"tab before colon", GET HOST "X\t: y\r\n\r\n", 0, 400},
    {"space in a name", GET HOST "X y: z\r\n\r\n", 0, 400},
    {"empty name", GET HOST ": z\r\n\r\n", 0, 400},
    {"no colon", GET HOST "X\r\n\r\n", 0, 400},
    {"folded header", GET HOST "X: y\r\n z\r\n\r\n", 0, 400},
    {"folded with tab", GET HOST "X: y\r\n\tz\r\n\r\n", 0, 400},
    {"folded length", POST "Content-Length:\r\n 5\r\n\r\nhello", 0, 400},
    {"space before the first header", GET " " HOST "\r\n", 0, 400},
    {"bare LF in headers", GET HOST "X: y\n\r\n", 0, 400},
    {"bare LF after the request line", "GET /echo HTTP/1.1\n" HOST "\r\n", 0, 400},
    {"bare LF for the last line", GET HOST "\n", 0, 400},
    {"bare CR in a value", GET HOST "X: y\rz\r\n\r\n", 0, 400},
    {"CR CR LF", GET HOST "X: y\r\r\n\r\n", 0, 400},
    {"missing host", GET "\r\n", 0, 400},
    {"two hosts", GET HOST HOST "\r\n", 0, 400},
    {"two hosts in HTTP/1.0", "GET /echo HTTP/1.0\r\n" HOST HOST "\r\n", 0, 400},
    {"host with a path", GET "Host: a/b\r\n\r\n", 0, 400},
    {"host with a space", GET "Host: a b\r\n\r\n", 0, 400},
    {"NUL in a value", GET HOST "X: y\0z\r\n\r\n", sizeof GET HOST "X: y\0z\r\n\r\n" - 1, 400},
    {"NUL in a name", GET HOST "X\0: y\r\n\r\n", sizeof GET HOST "X\0: y\r\n\r\n" - 1, 400},
    {"NUL in a target", "GET /ec\0ho HTTP/1.1\r\n" HOST "\r\n",
     sizeof "GET /ec\0ho HTTP/1.1\r\n" HOST "\r\n" - 1, 400},
    {"DEL in a value", GET HOST "X: \177\r\n\r\n", 0, 400},
    {"xchunked", POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 0, 400},
    {"chunked, identity", POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 0, 400},
    {"gzip, chunked", POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 0, 400},
    {"chunked, chunked", POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 0, 400},
    {"chunked twice",
     POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, 400},
    {"identity", POST "Transfer-Encoding: identity\r\n\r\n", 0, 400},
    {"vertical tab before chunked", POST "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n", 0, 400},
    {"chunked in HTTP/1.0", "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0,
     400},
    {"chunk size 0x5", CHUNKED "0x5\r\nhello\r\n0\r\n\r\n", 0, 400},
    {"chunk size +5", CHUNKED "+5\r\nhello\r\n0\r\n\r\n", 0, 400},
    {"chunk size -1", CHUNKED "-1\r\nhello\r\n0\r\n\r\n", 0, 400},
    {"chunk size with a space", CHUNKED "5 \r\nhello\r\n0\r\n\r\n", 0, 400},
    {"empty chunk size", CHUNKED "\r\nhello\r\n0\r\n\r\n", 0, 400},
    {"chunk size overflow", CHUNKED "10000000000000005\r\nhello\r\n0\r\n\r\n", 0, 400},
    {"chunk size of 15 digits", CHUNKED "fffffffffffffff\r\nhello", 0, 413},
    {"chunk longer than its size", CHUNKED "4\r\nhello\r\n0\r\n\r\n", 0, 400},
    {"chunk with a bare LF", CHUNKED "5\nhello\r\n0\r\n\r\n", 0, 400},
    {"chunk ended by a bare LF", CHUNKED "5\r\nhello\n0\r\n\r\n", 0, 400},
    {"extension with a control character", CHUNKED "5;\1\r\nhello\r\n0\r\n\r\n", 0, 400},
    {"trailer with a bare LF", CHUNKED "0\r\nX: y\n\r\n", 0, 400},
    {"trailer without a colon", CHUNKED "0\r\nX\r\n\r\n", 0, 400},
    {"folded trailer", CHUNKED "0\r\n X: y\r\n\r\n", 0, 400},
    {"lower-case method", "get /echo HTTP/1.1\r\n" HOST "\r\n", 0, 400},
    {"unknown method", "FETCH /echo HTTP/1.1\r\n" HOST "\r\n", 0, 400},
    {"HTTP/9.9", "GET /echo HTTP/9.9\r\n" HOST "\r\n", 0, 505},
    {"HTTP/2.0", "GET /echo HTTP/2.0\r\n" HOST "\r\n", 0, 505},
    {"HTTP/1.2", "GET /echo HTTP/1.2\r\n" HOST "\r\n", 0, 505},
    {"HTTP/0.9", "GET /echo HTTP/0.9\r\n" HOST "\r\n", 0, 505},
    {"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, 505},
    {"no version", "GET /echo\r\n\r\n", 0, 400},
    {"http/1.1", "GET /echo http/1.1\r\n" HOST "\r\n", 0, 400},
    {"two spaces", "GET  /echo HTTP/1.1\r\n" HOST "\r\n", 0, 400},
    {"something after the version", "GET /echo HTTP/1.1 x\r\n" HOST "\r\n", 0, 400},
    {"a record of TLS", "\26\3\1\2\0\1\0\1\374\3\3\r\n\r\n", 15, 400},
    {"CONNECT", "CONNECT a:80 HTTP/1.1\r\n" HOST "\r\n", 0, 405},
    {"authority alone", "GET a:80 HTTP/1.1\r\n" HOST "\r\n", 0, 400},
    {"star", "GET * HTTP/1.1\r\n" HOST "\r\n", 0, 400},
    {"no slash", "GET echo HTTP/1.1\r\n" HOST "\r\n", 0, 400},
    {"another scheme", "GET ftp://a/echo HTTP/1.1\r\n" HOST "\r\n", 0, 400},
    {"no host after http://", "GET http:///echo HTTP/1.1\r\n" HOST "\r\n", 0, 400},
    {"fragment", "GET /echo#x HTTP/1.1\r\n" HOST "\r\n", 0, 400},
    {"overlong UTF-8", "GET /\300\256 HTTP/1.1\r\n" HOST "\r\n", 0, 400},
    {"something else expected", POST "Expect: 200-ok\r\nContent-Length: 2\r\n\r\nhi", 0, 417},
    {"nested encodings", POST "Content-Encoding: gzip, gzip\r\nContent-Length: 2\r\n\r\nhi", 0,
     415},
    {"two encodings",
     POST "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhi", 0,
     415},
    {"an unknown encoding", POST "Content-Encoding: br\r\nContent-Length: 2\r\n\r\nhi", 0, 415},
    {"no gzip", POST "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhi", 0, 400},
    {"empty gzip", POST "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0,
     400},
    {"too large", "POST /echo?most=4 HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", 0, 413},
    {"too large in chunks",
     "POST /echo?most=4 HTTP/1.1\r\n" HOST
     "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
     0, 413},
    {"1 GiB declared", POST "Content-Length: 1073741824\r\n\r\nhello", 0, 413},
};

// One answer, {"error":"..."}, and the end. What follows is not read as another request.
static void each_row_is_refused_and_the_connection_ends(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const Row *r = &rows[i];
        int        fd = http1_server_connect(h);
        http1_server_send(fd, r->text, r->len ? r->len : strlen(r->text));
        http1_server_text(fd, GET HOST "\r\n");
        int status = http1_server_answer(fd, body, ROOM);
        if (status != r->status) print_error("%s: %d\n", r->name, status);
        assert_int_equal(status, r->status);
        assert_memory_equal(body, "{\"error\":\"", 10);
        if (http1_server_answer(fd, body, ROOM) != 0) fail_msg("%s: it goes on", r->name);
        close(fd);
    }
    assert_int_equal(http1_server_requests(h), 0);
    assert_int_equal(http1_server_counts(h).bad, sizeof rows / sizeof rows[0]);
    http1_server_close(h);
}

// The server does not simply reject everything.
static void what_is_allowed_passes(void **state) {
    (void)state;
    static const char *const fine[] = {
        GET            HOST "\r\n",
        "\r\n\r\n" GET HOST "\r\n",
        "GET http://a/echo HTTP/1.1\r\n" HOST "\r\n",
        "GET HTTP://a:80/echo?x=y HTTP/1.1\r\n" HOST "\r\n",
        GET "host: [::1]:8000\r\n\r\n",
        GET "HOST:\r\n\r\n",
        "GET /echo HTTP/1.0\r\n\r\n",
        "GET /echo HTTP/1.0\r\nExpect: anything\r\n\r\n",
        GET HOST "X:\r\nY: \t z \t \r\nZ: \200\377\r\n!#$%&'*+-.^_`|~09azAZ: x\r\n\r\n",
        GET HOST "Content-Length: 2\r\n\r\nhi",
        GET HOST "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        GET HOST
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
        POST "Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\nhi",
        POST "Connection: upgrade\r\nUpgrade: x\r\nTransfer-Encoding: "
             "chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        POST "Content-Length: 0\r\n\r\n",
        POST "Content-Length: 0000000002\r\n\r\nhi",
        POST "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
        POST "Content-Encoding: identity\r\nContent-Length: 2\r\n\r\nhi",
        POST "\r\n",
    };
    Http1Server *h = http1_server_open(NULL);
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        int fd = http1_server_connect(h);
        http1_server_text(fd, fine[i]);
        int status = http1_server_answer(fd, body, ROOM);
        if (status != 200) print_error("%s: %d %s\n", fine[i], status, body);
        assert_int_equal(status, 200);
        if (!strstr(fine[i], "HTTP/1.0")) {  // nothing of it is left
            http1_server_text(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nnext");
            assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
            assert_string_equal(body, "next");
        }
        close(fd);
    }
    assert_int_equal(http1_server_counts(h).bad, 0);
    http1_server_close(h);
}

static int ask_with(const Http1Server *h, const char *before, char fill, size_t n,
                    const char *after) {
    char *text = malloc(n + 1);
    memset(text, fill, n);
    int fd = http1_server_connect(h);
    http1_server_text(fd, before);
    http1_server_send(fd, text, n);
    http1_server_text(fd, after);
    int status = http1_server_answer(fd, body, ROOM);
    close(fd);
    free(text);
    return status;
}

static void long_heads_are_refused_to_the_byte(void **state) {
    (void)state;
    ListenerLimits limits = {.header_bytes = 1024, .headers = 8};
    Http1Server   *h = http1_server_open(&limits);
    const size_t   fixed = strlen(GET HOST "X: \r\n\r\n");
    assert_int_equal(ask_with(h, GET HOST "X: ", 'x', 1024 - fixed, "\r\n\r\n"), 200);
    assert_int_equal(ask_with(h, GET HOST "X: ", 'x', 1025 - fixed, "\r\n\r\n"), 431);
    assert_int_equal(ask_with(h, GET HOST "X: ", 'x', 200000, "\r\n\r\n"), 431);
    assert_int_equal(ask_with(h, "GET /", 'x', 2000, " HTTP/1.1\r\n" HOST "\r\n"), 414);
    assert_int_equal(ask_with(h, "GET /", 'x', 65536, " HTTP/1.1\r\n" HOST "\r\n"), 414);
    assert_int_equal(
        ask_with(h, "", '\r', 0, GET HOST "1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n\r\n"), 200);
    assert_int_equal(
        ask_with(h, "", '\r', 0, GET HOST "1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n8:\r\n\r\n"),
        431);
    http1_server_close(h);
}

static void chunk_extensions_and_trailers_end_somewhere(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    assert_int_equal(ask_with(h, CHUNKED "1;", 'x', 10000, "\r\nx\r\n0\r\n\r\n"), 200);
    assert_int_equal(ask_with(h, CHUNKED "1;", 'x', 20000, "\r\nx\r\n0\r\n\r\n"), 400);
    assert_int_equal(ask_with(h, CHUNKED "1\r\nx\r\n0\r\nX: ", 'x', 20000, "\r\n\r\n"), 400);
    http1_server_close(h);
}

static void many_tiny_chunks_take_linear_time(void **state) {
    (void)state;
    enum { N = 200000 };
    Http1Server *h = http1_server_open(NULL);
    char        *text = malloc(N * 6 + 6);
    for (int i = 0; i < N; i++) memcpy(text + (size_t)i * 6, "1\r\nx\r\n", 6);
    memcpy(text + N * 6, "0\r\n\r\n", 5);
    int fd = http1_server_connect(h);
    http1_server_text(fd, CHUNKED);
    http1_server_send(fd, text, N * 6 + 5);
    assert_int_equal(http1_server_answer(fd, body, ROOM), 200);
    assert_int_equal(strlen(body), N);
    close(fd);
    free(text);
    http1_server_close(h);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_refused_and_the_connection_ends),
        cmocka_unit_test(what_is_allowed_passes),
        cmocka_unit_test(long_heads_are_refused_to_the_byte),
        cmocka_unit_test(chunk_extensions_and_trailers_end_somewhere),
        cmocka_unit_test(many_tiny_chunks_take_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
