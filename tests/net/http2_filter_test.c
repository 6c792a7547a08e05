// RST_STREAM of streams that were never opened is taken out, wherever the bytes are cut; nothing
// else changes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "net/http2_filter.h"
#include "tests/net/h2_client.h"
#include "tests/net/h2_server.h"
#include "tests/runner.h"

enum { ROOM = 4096 };

static size_t put(uint8_t *to, size_t at, uint8_t type, uint32_t stream, const char *payload,
                  size_t len) {
    uint8_t head[9] = {0, (uint8_t)(len >> 8), (uint8_t)len, type, 0, 0, 0, 0, (uint8_t)stream};
    memcpy(to + at, head, 9);
    if (len > 0) memcpy(to + at + 9, payload, len);
    return at + 9 + len;
}

static void only_resets_of_idle_streams_go(void **state) {
    (void)state;
    static const char bait[] = "\0\0\4\3\0\0\0\0\x7f\0\0\0\x8";  // such a frame, as a payload
    uint8_t           in[ROOM], want[ROOM], out[ROOM + HTTP2_FILTER_HELD];
    size_t            n = 24, kept = 24;
    memset(in, 'P', 24);
    memset(want, 'P', 24);
#define KEEP(...) (n = put(in, n, __VA_ARGS__), kept = put(want, kept, __VA_ARGS__))
    KEEP(4, 0, "", 0);
    n = put(in, n, 3, 1, "\0\0\0\x8", 4);
    KEEP(1, 1, "head", 4);
    KEEP(3, 1, "\0\0\0\x8", 4);
    KEEP(0, 1, bait, 13);
    n = put(in, n, 3, 7, "\0\0\0\x8", 4);
    n = put(in, n, 3, 9, "\0\0\0\x8", 4);
    KEEP(1, 5, "", 0);
    KEEP(3, 3, "\0\0\0\x8", 4);
    KEEP(3, 8, "\0\0\0\x8", 4);    // a stream of the server
    KEEP(3, 11, "\0\0\0\x8x", 5);  // malformed: nghttp2 tells
    KEEP(0, 1, "tail", 4);
#undef KEEP
    for (size_t piece = 1; piece <= n; piece++) {
        Http2Filter f = {0};
        size_t      made = 0;
        for (size_t at = 0; at < n; at += piece)
            made += http2_filter(&f, in + at, n - at < piece ? n - at : piece, out + made);
        assert_int_equal(made, kept);
        assert_memory_equal(out, want, kept);
        assert_int_equal(f.dropped, 3);
    }
}

static void cancelled_calls_do_not_end_others(void **state) {
    (void)state;
    H2Server *h = h2_server_open(NULL);
    H2Client  p = h2_client_open(listener_address(h->listener), false);
    assert_true(h2_client_headers(&p, 1, "/echo", false));
    assert_true(h2_client_reset(&p, 3, NGHTTP2_CANCEL));
    assert_true(h2_client_data(&p, 1, "hello", 5, true));
    h2_client_answer(&p, 1, true, 20000);
    assert_true(p.ended && p.status == 200 && p.body_len == 5);
    for (int i = 0; i < 20000 && h2_client_reset(&p, 2001, NGHTTP2_CANCEL); i++) {
    }
    for (H2Frame f; !p.closed && h2_client_read(&p, &f, 20000);) {
    }
    h2_client_close(&p);
    h2_server_close(h);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_resets_of_idle_streams_go),
        cmocka_unit_test(cancelled_calls_do_not_end_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
