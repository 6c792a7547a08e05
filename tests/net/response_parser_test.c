// HTTP/1.1 responses: parsed the same whole or in pieces; ambiguous ones are rejected.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "net/response_parser.h"
#include "tests/runner.h"

typedef struct Case {
    const char *text;
    uint32_t    status;
    const char *body;
    bool        close, by_end;  // by_end: the connection's end ends it
} Case;

static const Case good[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", false, false},
    {"HTTP/1.1 200\r\ncontent-LENGTH:5 \t\r\n\r\nhello", 200, "hello", false, false},
    {"HTTP/1.1 204 No Content\r\n\r\n", 204, "", false, false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 200, "", true, false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", true, false},
    {"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", false,
     false},
    {"HTTP/1.1 503 Busy\r\n\r\nall of it", 503, "all of it", true, true},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi",
     false, false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n"
     "0\r\n\r\n",
     200, "hello world", false, false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0A \r\n0123456789\r\n0\r\nX: y\r\n\r\n",
     200, "0123456789", false, false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", false,
     false},
};

static const char *const bad[] = {
    "HTTP/2 200 OK\r\n\r\n",
    "HTTP/1.1 20 OK\r\n\r\n",
    "HTTP/1.1 099 OK\r\n\r\n",
    "HTTP/1.1 2000 OK\r\n\r\n",
    "http/1.1 200 OK\r\n\r\n",
    "\r\n\r\n",
    "HTTP/1.1 101 Switching\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhellothere\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11112222333344445\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\rxhello",
    "HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX: y\r\n folded\r\n\r\n",
    "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX: a\nb\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n",
};

static void begin(ResponseParser *r) {
    *r = (ResponseParser){.head_most = 1024, .body = {.most = 4096}};
    response_parser_begin(r, 4096);
}

static Err take_all(ResponseParser *r, const char *text, size_t len, size_t piece) {
    for (size_t at = 0; at < len;) {
        size_t n = len - at < piece ? len - at : piece, used = 0;
        TRY(response_parser_take(r, text + at, n, &used));
        at += used;
        if (r->step == RESPONSE_DONE) break;
        assert_int_equal(used, n);
    }
    return ERR_OK;
}

static void reads_in_pieces_of_any_size(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        for (size_t piece = 1, len = strlen(good[i].text); piece <= len; piece++) {
            ResponseParser r;
            begin(&r);
            assert_int_equal(take_all(&r, good[i].text, len, piece), ERR_OK);
            if (good[i].by_end) assert_int_equal(response_parser_end(&r), ERR_OK);
            assert_int_equal(r.step, RESPONSE_DONE);
            assert_int_equal(r.status, good[i].status);
            assert_int_equal(r.close, good[i].close);
            assert_int_equal(r.body.len, strlen(good[i].body));
            if (r.body.len > 0) assert_memory_equal(r.body.at, good[i].body, r.body.len);
            response_parser_finish(&r);
        }
}

static void an_early_end_is_an_error(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        for (size_t len = 0; len < strlen(good[i].text); len++) {
            ResponseParser r;
            if (good[i].by_end && len >= strlen(good[i].text) - strlen(good[i].body)) continue;
            begin(&r);
            assert_int_equal(take_all(&r, good[i].text, len, 1024), ERR_OK);
            assert_int_not_equal(response_parser_end(&r), ERR_OK);
            response_parser_finish(&r);
        }
}

static void refuses_what_is_not_clear(void **state) {
    static const size_t pieces[] = {1, 7, 4096};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
            ResponseParser r;
            begin(&r);
            if (take_all(&r, bad[i], strlen(bad[i]), pieces[k]) == ERR_OK)
                fail_msg("taken: %s", bad[i]);
            response_parser_finish(&r);
        }
}

static void keeps_within_bounds(void **state) {
    static char    long_text[8192];
    ResponseParser r;
    size_t         used = 0;
    (void)state;
    memset(long_text, 'a', sizeof long_text);
    memcpy(long_text, "HTTP/1.1 200 OK\r\nX: ", 20);
    begin(&r);
    assert_int_equal(response_parser_take(&r, long_text, sizeof long_text, &used), ERR_LIMIT);
    response_parser_finish(&r);

    begin(&r);
    memcpy(long_text, "HTTP/1.1 200 OK\r\n\r\n", 19);
    assert_int_equal(response_parser_take(&r, long_text, sizeof long_text, &used), ERR_LIMIT);
    response_parser_finish(&r);

    begin(&r);  // more than is wanted is counted, not kept
    response_parser_begin(&r, 3);
    static const char hello[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    assert_int_equal(response_parser_take(&r, hello, sizeof hello - 1, &used), ERR_OK);
    assert_int_equal(r.body.len, 5);
    assert_int_equal(r.body.kept, 3);
    response_parser_finish(&r);
}

static void stops_where_the_answer_ends(void **state) {
    static const char two[] = "HTTP/1.1 200 OK\r\nInference-Header-Content-Length: 2\r\n"
                              "Content-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n";
    ResponseParser    r;
    size_t            used = 0;
    (void)state;
    begin(&r);
    assert_int_equal(response_parser_take(&r, two, sizeof two - 1, &used), ERR_OK);
    assert_int_equal(r.step, RESPONSE_DONE);
    assert_int_equal(r.json_len, 2);
    assert_int_equal(used, sizeof two - 1 - 17);
    response_parser_finish(&r);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_in_pieces_of_any_size), cmocka_unit_test(an_early_end_is_an_error),
        cmocka_unit_test(refuses_what_is_not_clear),   cmocka_unit_test(keeps_within_bounds),
        cmocka_unit_test(stops_where_the_answer_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
