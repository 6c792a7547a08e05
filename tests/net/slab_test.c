// Slabs: accounted by touched bytes, kept while in demand, returned to the system.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "net/slab.h"
#include "tests/runner.h"

static void promises_cost_nothing_and_bytes_count(void **state) {
    (void)state;
    SlabPool *p = slab_pool_new(1000000, NULL);
    Slab     *a = slab_take(p, 900000), *b = slab_take(p, 900000);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(budget_used(&p->budget), 0);
    assert_true(a->size >= 900000 && (uintptr_t)a->at % 64 == 0);
    assert_true(slab_touch(p, a, 600000));
    assert_true(slab_touch(p, a, 500000));
    assert_int_equal(budget_used(&p->budget), 600000);
    assert_false(slab_touch(p, b, 400001));
    assert_true(slab_touch(p, b, 400000));
    assert_null(slab_take(p, 1));
    slab_give(p, a);
    assert_int_equal(budget_used(&p->budget), 400000);
    a = slab_take(p, 800000);  // warm: it counts at once
    assert_int_equal(budget_used(&p->budget), 1000000);
    slab_give(p, b);
    slab_give(p, a);
    slab_give(p, NULL);
    assert_int_equal(budget_used(&p->budget), 0);
    slab_pool_close(p);
}

static void a_warm_one_that_does_not_fit_is_left_for_a_cold_one(void **state) {
    (void)state;
    SlabPool *p = slab_pool_new(1000000, NULL);
    Slab     *a = slab_take(p, 900000), *b = slab_take(p, 300000);
    assert_true(slab_touch(p, a, 900000));
    slab_give(p, a);
    assert_true(slab_touch(p, b, 300000));
    a = slab_take(p, 900000);
    assert_non_null(a);
    assert_int_equal(budget_used(&p->budget), 300000);
    slab_give(p, a);
    slab_give(p, b);
    slab_pool_close(p);
}

static void what_nobody_wants_goes_back(void **state) {
    (void)state;
    SlabPool *p = slab_pool_new(0, NULL);
    Slab     *slabs[8];
    for (int i = 0; i < 8; i++) {
        slabs[i] = slab_take(p, 300000);
        assert_true(slab_touch(p, slabs[i], 300000));
    }
    for (int i = 0; i < 8; i++) slab_give(p, slabs[i]);
    assert_int_equal(p->spare, 8 * 300000);
    slab_trim(p);  // all were wanted since the beginning
    assert_int_equal(p->spare, 8 * 300000);
    for (int i = 0; i < 3; i++) slabs[i] = slab_take(p, 300000);
    for (int i = 0; i < 3; i++) slab_give(p, slabs[i]);
    slab_trim(p);
    assert_int_equal(p->spare, 3 * 300000);
    slab_trim(p);
    assert_int_equal(p->spare, 0);
    slab_pool_close(p);
}

// Spare bytes after 20 slabs of 8 MiB were given back.
static size_t spare_of(size_t most) {
    SlabPool *p = slab_pool_new(most, NULL);
    Slab     *slabs[20];
    for (int i = 0; i < 20; i++) {
        slabs[i] = slab_take(p, 8 << 20);
        assert_true(slab_touch(p, slabs[i], 8 << 20));
    }
    for (int i = 0; i < 20; i++) slab_give(p, slabs[i]);
    size_t spare = p->spare;
    slab_pool_close(p);
    return spare;
}

static void spare_memory_is_bounded(void **state) {
    (void)state;
    assert_int_equal(spare_of(0), 64 << 20);
    assert_int_equal(spare_of(192 << 20), 64 << 20);
    assert_int_equal(spare_of(384 << 20), 96 << 20);
}

static void growing_keeps_the_bytes(void **state) {
    (void)state;
    SlabPool *p = slab_pool_new(0, NULL);
    Slab     *s = slab_take(p, 100);
    size_t    used = 0;
    while (used < 3000000) {
        if (used == s->size) {
            s = slab_grow(p, s, used, 2 * s->size);
            assert_non_null(s);
        }
        size_t n = s->size - used < 70000 ? s->size - used : 70000;
        assert_true(slab_touch(p, s, used + n));
        for (size_t i = 0; i < n; i++, used++) s->at[used] = (unsigned char)(used * 7 % 251);
        assert_int_equal(budget_used(&p->budget), used);
    }
    for (size_t i = 0; i < used; i++) assert_int_equal(s->at[i], i * 7 % 251);
    assert_null(slab_grow(p, s, used, SIZE_MAX / 2));
    assert_null(slab_take(p, SIZE_MAX - 10));
    slab_give(p, s);
    assert_int_equal(budget_used(&p->budget), 0);
    slab_pool_close(p);
}

static void what_is_lent_outlives_the_pool(void **state) {
    (void)state;
    SlabPool     *p = slab_pool_new(0, NULL);
    Slab         *s = slab_take(p, 300000), *small = slab_take(p, 10), *back = slab_take(p, 10);
    ExchangeBody *body = slab_lend(p, s), *second = slab_lend(p, small);
    slab_lend(p, back)->give(&back->lent);
    slab_pool_close(p);
    memset(s->at, 7, 300000);
    memset(small->at, 7, 10);
    body->give(body);
    second->give(second);
    slab_pool_close(NULL);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promises_cost_nothing_and_bytes_count),
        cmocka_unit_test(a_warm_one_that_does_not_fit_is_left_for_a_cold_one),
        cmocka_unit_test(what_nobody_wants_goes_back),
        cmocka_unit_test(spare_memory_is_bounded),
        cmocka_unit_test(growing_keeps_the_bytes),
        cmocka_unit_test(what_is_lent_outlives_the_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
