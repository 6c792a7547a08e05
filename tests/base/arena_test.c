#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/budget.h"
#include "base/rng.h"
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

// Random allocations and rewinds: memory is zeroed, keeps its content, and is all given back.
static void test_growing(void **state) {
    (void)state;
    enum { STEPS = 4000, DEPTH = 64, FIRST = 4096, MOST = 64 << 20 };
    typedef struct Mark {
        size_t         used, bytes;
        unsigned char *p, fill;
    } Mark;
    Mark   marks[DEPTH];
    Arena  a;
    Rng    r = {7};
    Budget b = {.most = MOST};
    size_t before = arena_reserved_all();
    assert_int_equal(arena_init_growing(&a, FIRST, MOST), ERR_OK);
    assert_true(arena_charge(&a, &b));
    int n = 0;
    for (int i = 0; i < STEPS; i++) {
        if (n == DEPTH || (n > 0 && rng_below(&r, 3) == 0)) {
            int to = (int)rng_below(&r, (uint64_t)n);
            for (int k = 0; k < n; k++)
                for (size_t at = 0; at < marks[k].bytes; at += 997)
                    assert_int_equal(marks[k].p[at], marks[k].fill);
            arena_rewind(&a, marks[to].used);
            n = to;
            if (rng_below(&r, 4) == 0) arena_shrink(&a, a.used);
            continue;
        }
        size_t align = (size_t)1 << rng_below(&r, 7);
        size_t bytes = (size_t)rng_below(&r, (uint64_t)1 << (4 + rng_below(&r, 15)));
        Mark   m = {a.used, bytes, arena_try(&a, bytes, 1, align), (unsigned char)(i % 255 + 1)};
        assert_non_null(m.p);
        assert_int_equal((uintptr_t)m.p % align, 0);
        for (size_t at = 0; at < bytes; at++) assert_int_equal(m.p[at], 0);
        memset(m.p, m.fill, bytes);
        marks[n++] = m;
        assert_true(budget_used(&b) + FIRST >= arena_in_use(&a));
        assert_true(arena_reserved_all() >= before + arena_reserved(&a));
    }
    arena_rewind(&a, 0);
    arena_shrink(&a, 0);
    assert_int_equal(budget_used(&b), 0);
    assert_int_equal(arena_reserved(&a), FIRST);
    arena_finish(&a);
    assert_int_equal(arena_reserved_all(), before);
}

static void test_growth_has_a_limit(void **state) {
    (void)state;
    Arena  a;
    Budget b = {.most = 3 << 20};
    assert_int_equal(arena_init_growing(&a, 4096, 8 << 20), ERR_OK);
    assert_null(arena_try(&a, 9 << 20, 1, 64));
    assert_int_equal(a.refused, 9 << 20);
    assert_null(arena_try(&a, SIZE_MAX, 2, 64));
    assert_non_null(arena_try(&a, 6 << 20, 1, 64));
    assert_null(arena_try(&a, 3 << 20, 1, 64));
    arena_rewind(&a, 0);
    arena_shrink(&a, 0);
    assert_true(arena_charge(&a, &b));
    assert_null(arena_try(&a, 4 << 20, 1, 64));
    assert_int_equal(a.refused, 4 << 20);
    assert_non_null(arena_try(&a, 2 << 20, 1, 64));
    arena_trim(&a);
    assert_true(arena_reserved(&a) < 5 << 20);
    arena_finish(&a);
    assert_int_equal(budget_used(&b), 0);
}

static void test_too_large_to_reserve(void **state) {
    (void)state;
    Arena a;
    assert_int_equal(arena_init(&a, SIZE_MAX / 2), ERR_LIMIT);
    assert_null(a.base);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    assert_int_equal(strstr(err_why(), "raise ulimit -v") != NULL, limit.rlim_cur != RLIM_INFINITY);
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
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_growth_has_a_limit),
        cmocka_unit_test(test_too_large_to_reserve),
        cmocka_unit_test(test_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
