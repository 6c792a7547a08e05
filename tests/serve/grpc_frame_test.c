// gRPC framing: message prefixes, timeouts, percent-encoded header text.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/rng.h"
#include "base/text.h"
#include "serve/grpc/grpc_int.h"
#include "tests/runner.h"

static bool compressed;

static uint32_t unframe(const char *bytes, size_t len, Str *m) {
    const char *why = NULL;
    uint32_t    status = grpc_unframe((const unsigned char *)bytes, len, &compressed, m, &why);
    assert_non_null(why);
    return status;
}

static void one_message(void **state) {
    (void)state;
    Str m;
    assert_int_equal(unframe("\0\0\0\0\3abc", 8, &m), GRPC_OK);
    assert_true(m.len == 3 && memcmp(m.at, "abc", 3) == 0);
    assert_int_equal(unframe("\0\0\0\0\0", 5, &m), GRPC_OK);
    assert_int_equal(m.len, 0);
    for (size_t n = 0; n < 8; n++) assert_int_equal(unframe("\0\0\0\0\3abc", n, &m), GRPC_INVALID);
    assert_int_equal(unframe("\0\0\0\0\2abc", 8, &m), GRPC_INVALID);
    assert_int_equal(unframe("\0\xff\xff\xff\xff", 5, &m), GRPC_INVALID);
    assert_false(compressed);
    assert_int_equal(unframe("\1\0\0\0\2ab", 7, &m), GRPC_OK);
    assert_true(compressed && m.len == 2);
    assert_int_equal(unframe("\2\0\0\0\0", 5, &m), GRPC_INVALID);
    unsigned char prefix[GRPC_PREFIX];
    grpc_frame(prefix, 0x01020304);
    assert_memory_equal(prefix, "\0\1\2\3\4", 5);
}

static Str deflated(const void *bytes, size_t len, unsigned char *room, size_t size) {
    uLongf n = size;
    assert_int_equal(compress(room, &n, bytes, len), Z_OK);
    return (Str){(const char *)room, n};
}

static void encodings(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t    status;
    } rows[] = {{"gzip", GRPC_OK},
                {"deflate", GRPC_OK},
                {"identity", GRPC_INVALID},
                {"snappy", GRPC_UNIMPLEMENTED}};
    InflateKind kind;
    const char *why;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ExchangeHeader h = {text_of("grpc-encoding"), text_of(rows[i].name)};
        Exchange       x = {.headers = &h, .n_headers = 1};
        assert_int_equal(grpc_encoding(&x, &kind, &why), rows[i].status);
    }
    assert_int_equal(grpc_encoding(&(Exchange){0}, &kind, &why), GRPC_INVALID);
}

static void compressed_messages(void **state) {
    (void)state;
    static unsigned char plain[300000], packed[310000];
    Arena                a;
    Rng                  rng = {9};
    Str                  out;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    for (size_t i = 0; i < sizeof plain; i++) plain[i] = (unsigned char)(rng_u64(&rng) % 7);
    static const size_t sizes[] = {0, 1, 65535, 65536, 65537, 131072, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        Str    m = deflated(plain, n, packed, sizeof packed);
        arena_rewind(&a, 0);
        assert_int_equal(grpc_expand(INFLATE_DEFLATE, m, n, &a, &out), ERR_OK);
        assert_true(out.len == n && (n == 0 || memcmp(out.at, plain, n) == 0));
        assert_true(a.used <= n + TENSOR_ALIGN);
        if (n > 0) assert_int_equal(grpc_expand(INFLATE_DEFLATE, m, n - 1, &a, &out), ERR_LIMIT);
        for (size_t cut = 0; cut < m.len; cut += 1 + m.len / 8) {
            arena_rewind(&a, 0);
            assert_int_equal(grpc_expand(INFLATE_DEFLATE, (Str){m.at, cut}, n, &a, &out),
                             ERR_PARSE);
        }
    }
    arena_rewind(&a, 0);
    assert_int_equal(grpc_expand(INFLATE_GZIP, (Str){"no gzip", 7}, 100, &a, &out), ERR_PARSE);
    assert_int_equal(grpc_expand(INFLATE_NONE, (Str){"same", 4}, 0, &a, &out), ERR_OK);
    assert_int_equal(out.len, 4);
    arena_finish(&a);
}

static void timeouts(void **state) {
    (void)state;
    const TimeNs day = 86400000000000;
    static const struct {
        const char *text;
        TimeNs      ns;
    } good[] = {{"1n", 1},           {"0S", 1},
                {"20m", 20000000},   {"3u", 3000},
                {"2S", 2000000000},  {"99999999n", 99999999},
                {"1M", 60000000000}, {"1H", 3600000000000},
                {"99999999H", 0},    {"99999999M", 0}};
    static const char *const bad[] = {"",   "1",   "S",  "-1S",  "1.5S", "123456789S",
                                      "1s", "1 S", "S1", "0x1S", NULL};
    TimeNs                   ns;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(grpc_timeout((Str){good[i].text, strlen(good[i].text)}, &ns));
        assert_true(ns == (good[i].ns > 0 ? good[i].ns : day));
    }
    for (const char *const *b = bad; *b != NULL; b++)
        assert_false(grpc_timeout((Str){*b, strlen(*b)}, &ns));
}

static void texts(void **state) {
    (void)state;
    char out[64], small[8];
    grpc_quote("plain 100% \"text\"\n\xc3\xa9", out, sizeof out);
    assert_string_equal(out, "plain 100%25 \"text\"%0A%C3%A9");
    grpc_quote("0123456789", small, sizeof small);
    assert_true(strlen(small) < sizeof small && strncmp(small, "0123456789", strlen(small)) == 0);
    grpc_quote("\n\n\n\n\n\n", small, sizeof small);
    assert_string_equal(small, "%0A%0A");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_message),
        cmocka_unit_test(encodings),
        cmocka_unit_test(compressed_messages),
        cmocka_unit_test(timeouts),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
