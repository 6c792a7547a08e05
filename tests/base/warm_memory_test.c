#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory_map.h"
#include "base/rng.h"
#include "base/warm_memory.h"
#include "tests/runner.h"

enum { PAGE = 4096, MIB = 1 << 20, LIVE = 40, STEPS = 20000 };

static char *mapped(size_t bytes) {
    char *p = memory_map_make(bytes);
    assert_non_null(p);
    memset(p, 1, bytes);
    return p;
}

static void test_ranges_are_kept_joined_and_cut(void **state) {
    (void)state;
    Budget b = {.most = 64 * MIB};
    warm_memory_use(&b);
    char *p = mapped(8 * MIB);
    assert_null(warm_memory_take(PAGE));
    assert_true(warm_memory_give(p + 4 * MIB, 4 * MIB));
    assert_null(warm_memory_take(4 * MIB + PAGE));
    assert_true(warm_memory_give(p, 4 * MIB));
    assert_int_equal(warm_memory_bytes(), 8 * MIB);
    char *q = warm_memory_take(5 * MIB);
    assert_ptr_equal(q, p + 3 * MIB);
    assert_int_equal(q[0], 1);
    assert_int_equal(warm_memory_bytes(), 3 * MIB);
    assert_true(warm_memory_give(q, 5 * MIB));
    warm_memory_use(NULL);
    assert_int_equal(warm_memory_bytes(), 0);
    assert_int_equal(b.kept, 0);
}

static void test_kept_memory_leaves_for_what_is_used(void **state) {
    (void)state;
    Budget b = {.most = 16 * MIB}, part = {.whole = &b};
    warm_memory_use(&b);
    char *p = mapped(13 * MIB);
    assert_false(warm_memory_give(p, 13 * MIB));  // more than three quarters
    assert_true(warm_memory_give(p, 12 * MIB));
    assert_null(budget_short(&part, 16 * MIB));
    assert_true(budget_take(&part, 4 * MIB));
    assert_int_equal(warm_memory_bytes(), 12 * MIB);
    assert_true(budget_take(&part, MIB));
    assert_true(warm_memory_bytes() <= 11 * MIB);
    assert_true(budget_take(&part, 11 * MIB));
    assert_int_equal(warm_memory_bytes(), 0);
    assert_false(warm_memory_give(p + 12 * MIB, MIB));  // nothing is left for it
    budget_give(&part, 16 * MIB);
    memory_map_drop(p + 12 * MIB, MIB);
    warm_memory_use(NULL);
}

static void test_what_stays_unused_is_returned(void **state) {
    (void)state;
    Budget b = {.most = 64 * MIB};
    warm_memory_use(&b);
    assert_true(warm_memory_give(mapped(8 * MIB), 8 * MIB));
    warm_memory_age();
    char *p = warm_memory_take(6 * MIB);
    assert_true(warm_memory_give(p, 6 * MIB));
    warm_memory_age();  // 2 MiB were never used
    assert_int_equal(warm_memory_bytes(), 6 * MIB);
    warm_memory_age();
    assert_int_equal(warm_memory_bytes(), 0);
    warm_memory_use(NULL);
}

// Ranges never overlap, and what is kept is what was given.
static void test_ranges_at_random(void **state) {
    (void)state;
    Budget b = {.most = 256 * MIB};
    struct {
        unsigned char *at;
        size_t         bytes;
    } live[LIVE] = {{NULL, 0}};
    Rng r = {3};
    warm_memory_use(&b);
    for (uint32_t i = 0; i < STEPS; i++) {
        uint32_t k = (uint32_t)rng_below(&r, LIVE);
        if (live[k].at != NULL) {
            size_t last = live[k].bytes - 1;
            assert_true(live[k].at[0] == k && live[k].at[last] == k);
            if (!warm_memory_give(live[k].at, live[k].bytes))
                memory_map_drop(live[k].at, live[k].bytes);
            live[k].at = NULL;
            continue;
        }
        live[k].bytes = (1 + rng_below(&r, 500)) * PAGE;
        live[k].at = warm_memory_take(live[k].bytes);
        if (live[k].at == NULL) live[k].at = memory_map_make(live[k].bytes);
        assert_non_null(live[k].at);
        live[k].at[0] = live[k].at[live[k].bytes - 1] = (unsigned char)k;
    }
    assert_int_equal(b.kept, warm_memory_bytes());
    for (uint32_t k = 0; k < LIVE; k++)
        if (live[k].at != NULL) memory_map_drop(live[k].at, live[k].bytes);
    warm_memory_use(NULL);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_are_kept_joined_and_cut),
        cmocka_unit_test(test_kept_memory_leaves_for_what_is_used),
        cmocka_unit_test(test_what_stays_unused_is_returned),
        cmocka_unit_test(test_ranges_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
