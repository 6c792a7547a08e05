// Compressed bodies: contents, end, and the limit on decompression bombs.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <unistd.h>
#include <zlib.h>

#include "base/rng.h"
#include "tests/net/http1_server.h"
#include "net/inflate.h"
#include "tests/runner.h"

enum { ROOM = 1 << 20 };
static char body[ROOM];

// window: 31 gzip, 15 zlib, -15 bare.
static size_t pack(int window, const void *in, size_t len, char **out) {
    z_stream z = {0};
    deflateInit2(&z, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
    size_t room = deflateBound(&z, len) + 64;
    *out = malloc(room);
    z.next_in = (Bytef *)(uintptr_t)in;
    z.avail_in = (uInt)len;
    z.next_out = (Bytef *)*out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

static void what_was_packed_comes_out_aligned(void **state) {
    (void)state;
    static const struct {
        int         window;
        InflateKind kind;
    } rows[] = {{31, INFLATE_GZIP}, {15, INFLATE_DEFLATE}, {-15, INFLATE_DEFLATE}};
    Rng   rng = {3};
    char *in = malloc(300000);
    for (size_t i = 0; i < 300000; i++) in[i] = (char)rng_below(&rng, 17);
    for (size_t i = 0; i < 3; i++) {
        for (size_t len = 0; len <= 300000; len = len * 3 + 1) {
            char          *packed;
            void          *memory;
            unsigned char *out;
            size_t         n = pack(rows[i].window, in, len, &packed), got;
            Str            text = {packed, n};
            assert_int_equal(
                inflate_all(rows[i].kind, text, len ? len : 1, len, &memory, &out, &got), ERR_OK);
            assert_int_equal(got, len);
            assert_memory_equal(out, in, len);
            assert_int_equal(((uintptr_t)out + len) % 64, 0);
            free(memory);
            if (len > 1) {
                assert_int_equal(inflate_all(rows[i].kind, text, len - 1, 0, &memory, &out, &got),
                                 ERR_LIMIT);
            }
            free(packed);
        }
    }
    free(in);
}

static void each_truncation_and_any_addition_is_an_error(void **state) {
    (void)state;
    const char     text[] = "the quick brown fox jumps over the lazy dog, and the lazy dog sleeps";
    char          *packed;
    void          *memory;
    unsigned char *out;
    size_t         n = pack(31, text, sizeof text, &packed), got;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(inflate_all(INFLATE_GZIP, (Str){packed, i}, 1000, 0, &memory, &out, &got),
                         ERR_PARSE);
    packed[n] = 'x';
    assert_int_equal(inflate_all(INFLATE_GZIP, (Str){packed, n + 1}, 1000, 0, &memory, &out, &got),
                     ERR_PARSE);
    free(packed);
}

static void encodings_have_names(void **state) {
    (void)state;
    InflateKind kind;
    assert_true(inflate_kind((Str){"GZIP", 4}, &kind) && kind == INFLATE_GZIP);
    assert_true(inflate_kind((Str){"x-gzip", 6}, &kind) && kind == INFLATE_GZIP);
    assert_true(inflate_kind((Str){"deflate", 7}, &kind) && kind == INFLATE_DEFLATE);
    assert_true(inflate_kind((Str){"identity", 8}, &kind) && kind == INFLATE_NONE);
    assert_false(inflate_kind((Str){"br", 2}, &kind));
    assert_false(inflate_kind((Str){"gzip, gzip", 10}, &kind));
}

static int ask_packed(const Http1Server *h, const char *path, const char *packed, size_t n,
                      bool chunked) {
    char head[300];
    int  fd = http1_server_connect(h);
    int  len = chunked ? snprintf(head, sizeof head,
                                  "POST %s HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n"
                                   "Transfer-Encoding: chunked\r\n\r\n%zx\r\n",
                                  path, n)
                       : snprintf(head, sizeof head,
                                  "POST %s HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n"
                                   "Content-Length: %zu\r\n\r\n",
                                  path, n);
    http1_server_send(fd, head, (size_t)len);
    http1_server_send(fd, packed, n);
    if (chunked) http1_server_text(fd, "\r\n0\r\n\r\n");
    int status = http1_server_answer(fd, body, ROOM);
    close(fd);
    return status;
}

static void connections_decompress_bodies(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    char        *in = malloc(900000), *packed;
    for (size_t i = 0; i < 900000; i++) in[i] = (char)('a' + i * i % 19);
    for (size_t len = 1; len <= 900000; len = len * 7 + 2) {
        size_t n = pack(31, in, len, &packed);
        assert_int_equal(ask_packed(h, "/echo", packed, n, false), 200);
        assert_int_equal(strlen(body), len);
        assert_memory_equal(body, in, len);
        assert_int_equal(ask_packed(h, "/echo", packed, n, true), 200);
        assert_int_equal(strlen(body), len);
        assert_int_equal(ask_packed(h, "/aligned?5", packed, n, false), 200);
        assert_int_equal(strtol(body, NULL, 10), 0);
        assert_int_equal(ask_packed(h, "/echo", packed, n - 1, false), 400);
        packed[n] = 0;
        assert_int_equal(ask_packed(h, "/echo", packed, n + 1, false), 400);
        free(packed);
    }
    assert_int_equal(http1_server_counts(h).body_bytes, 0);
    free(in);
    http1_server_close(h);
}

// The handler decompresses elsewhere: it gets what was sent, however it was framed.
static void bodies_stay_packed_on_request(void **state) {
    (void)state;
    Http1Server *h = http1_server_open(NULL);
    char         in[5000], *packed;
    for (size_t i = 0; i < sizeof in; i++) in[i] = (char)('a' + i * i % 19);
    size_t n = pack(31, in, sizeof in, &packed);
    for (int chunked = 0; chunked < 2; chunked++) {
        assert_int_equal(ask_packed(h, "/packed", packed, n, chunked), 200);
        assert_memory_equal(body, packed, n);
        assert_int_equal(ask_packed(h, "/packed?most=10", packed, n, chunked), 413);
        assert_int_equal(ask_packed(h, "/packed", "no gzip", 7, chunked), 200);
    }
    assert_int_equal(http1_server_counts(h).body_bytes, 0);
    free(packed);
    http1_server_close(h);
}

static void a_bomb_ends_at_the_limit(void **state) {
    (void)state;
    ListenerLimits limits = {.body_bytes = 4 << 20, .held_bytes = 16 << 20};
    Http1Server   *h = http1_server_open(&limits);
    char          *zeros = calloc(1, 100 << 20), *packed;
    size_t         n = pack(31, zeros, 100 << 20, &packed);
    free(zeros);
    for (int i = 0; i < 3; i++) assert_int_equal(ask_packed(h, "/echo", packed, n, i & 1), 413);
    assert_int_equal(ask_packed(h, "/echo?most=1000", packed, n < 900 ? n : 900, false), 413);
    assert_int_equal(http1_server_counts(h).body_bytes, 0);
    assert_int_equal(http1_server_ask(h, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
    free(packed);
    http1_server_close(h);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_packed_comes_out_aligned),
        cmocka_unit_test(each_truncation_and_any_addition_is_an_error),
        cmocka_unit_test(encodings_have_names),
        cmocka_unit_test(connections_decompress_bodies),
        cmocka_unit_test(bodies_stay_packed_on_request),
        cmocka_unit_test(a_bomb_ends_at_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
