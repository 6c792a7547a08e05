#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "base/rng.h"
#include "base/text.h"
#include "base/str_buf.h"
#include "tests/runner.h"

static Arena arena;

static int setup(void **state) {
    (void)state;
    return arena_init(&arena, 1 << 20) != ERR_OK;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static Str end(StrBuf *s) {
    Str out;
    assert_int_equal(str_buf_end(s, &out), ERR_OK);
    return out;
}

// What jansson reads back is what was put, but for what is no UTF-8.
static void test_json_text(void **state) {
    (void)state;
    Rng rng = {5};
    for (int round = 0; round < 2000; round++) {
        char   text[24] = "";
        StrBuf s;
        for (size_t i = 0; i < rng_below(&rng, 23); i++) text[i] = (char)(1 + rng_below(&rng, 255));
        arena_rewind(&arena, 0);
        str_buf_begin(&s, &arena, 1000);
        str_buf_json(&s, text);
        Str     out = end(&s);
        json_t *back = json_loadb(out.at, out.len, JSON_DECODE_ANY, NULL),
               *same = json_string(text);
        assert_true(json_is_string(back));
        if (same != NULL) assert_string_equal(json_string_value(back), text);
        json_decref(back);
        json_decref(same);
    }
}

static void test_numbers(void **state) {
    (void)state;
    const double special[] = {0, 1, 0.1, 1e-9, 1e15, 1e15 - 1, 123456789012, 1e300, 5e-324, -2.5};
    Rng          rng = {9};
    for (int round = 0; round < 5000; round++) {
        uint64_t bits = rng_u64(&rng);
        double   x = round < 10 ? special[round] : 0;
        StrBuf   s;
        char     text[64];
        if (round >= 10) memcpy(&x, &bits, sizeof x);
        arena_rewind(&arena, 0);
        str_buf_begin(&s, &arena, 1000);
        str_buf_number(&s, x);
        Str out = end(&s);
        assert_in_range(out.len, 1, 30);
        memcpy(text, out.at, out.len);
        text[out.len] = '\0';
        if (isfinite(x))
            assert_true(strtod(text, NULL) == x);
        else
            assert_string_equal(text, "null");
    }
    StrBuf s;
    str_buf_begin(&s, &arena, 1000);
    str_buf_int(&s, UINT64_MAX);
    str_buf_int(&s, 0);
    assert_true(text_equal(end(&s), text_of("184467440737095516150")));
}

static void test_labels(void **state) {
    (void)state;
    StrBuf s;
    str_buf_begin(&s, &arena, 1000);
    str_buf_label(&s, "plain-1.2 a\"b\\c\nd\te\x7f\xff\xc3\xa4");
    assert_true(text_equal(end(&s), text_of("plain-1.2 a\\\"b\\\\c\\nd?e??\xc3\xa4")));
}

// Every limit, by its own and by the arena's: whole, or an error and nothing taken.
static void test_limits(void **state) {
    (void)state;
    for (size_t most = 0; most < 9000; most += 37)
        for (size_t piece = 1; piece < 6000; piece = piece * 3 + 1) {
            static char bytes[6000];
            StrBuf      s;
            Str         out;
            Arena       small = {.base = arena.base,
                                 .used = 100,
                                 .high = 100,
                                 .cap = most % 2 == 0 ? 4196 : arena.cap};
            size_t      room = small.cap - 100 < most ? small.cap - 100 : most, len = 0;
            str_buf_begin(&s, &small, most);
            for (; len < 8000; len += piece) str_buf_put(&s, bytes, piece);
            Err e = str_buf_end(&s, &out);
            assert_int_equal(e, len <= room ? ERR_OK : ERR_LIMIT);
            assert_int_equal(small.used, e == ERR_OK ? 100 + len : 100);
            if (e == ERR_OK) assert_int_equal(out.len, len);
        }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_text),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
