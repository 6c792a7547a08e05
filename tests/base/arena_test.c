#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"
#include "tests/runner.h"

static void test_memory_is_zeroed_and_aligned(void **state) {
    (void)state;
    Arena a;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    for (int round = 0; round < 3; round++) {
        for (size_t align = 1; align <= 4096; align *= 2) {
            unsigned char *p = arena_alloc(&a, 3, 5, align);
            assert_int_equal((uintptr_t)p % align, 0);
            for (int i = 0; i < 15; i++) assert_int_equal(p[i], 0);
            memset(p, 0xAB, 15);
        }
        arena_rewind(&a, (size_t)round);
    }
    arena_finish(&a);
    arena_finish(&a);
}

static void test_full(void **state) {
    (void)state;
    Arena a;
    assert_int_equal(arena_init(&a, 4096), ERR_OK);
    assert_null(arena_try(&a, 4097, 1, 1));
    assert_null(arena_try(&a, SIZE_MAX, 2, 1));
    assert_null(arena_try(&a, SIZE_MAX, SIZE_MAX, 1));
    assert_null(arena_try(&a, SIZE_MAX, 1, 64));
    assert_int_equal(a.used, 0);
    assert_non_null(arena_try(&a, 4096, 1, 1));
    assert_non_null(arena_try(&a, 0, 8, 1));
    assert_null(arena_try(&a, 1, 1, 1));
    arena_rewind(&a, 100);
    char *p = arena_try(&a, 3996, 1, 1);
    assert_ptr_equal(p, a.base + 100);
    arena_finish(&a);
}

static void test_too_large_to_reserve(void **state) {
    (void)state;
    Arena a;
    assert_int_equal(arena_init(&a, SIZE_MAX / 2), ERR_LIMIT);
    assert_null(a.base);
    arena_finish(&a);
}

static void test_strings(void **state) {
    (void)state;
    Arena a;
    assert_int_equal(arena_init(&a, 1 << 16), ERR_OK);
    char  source[] = "abc";
    char *copy = arena_str(&a, source);
    source[0] = 'x';
    assert_string_equal(copy, "abc");
    assert_string_equal(arena_printf(&a, "%s-%d", copy, 7), "abc-7");
    assert_string_equal(arena_printf(&a, "%1000d", 1) + 999, "1");
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_zeroed_and_aligned),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_too_large_to_reserve),
        cmocka_unit_test(test_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
