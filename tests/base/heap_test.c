#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "base/heap.h"
#include "tests/runner.h"

enum { N = 2000 };

static void test_by_key_then_order_then_id(void **state) {
    (void)state;
    Arena a;
    Heap  h;
    Rng   r = {3};
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    heap_init(&h, &a, N);
    assert_true(heap_empty(&h) && heap_first_key(&h) == INT64_MAX);
    for (uint32_t i = 0; i < N; i++) heap_push(&h, (int64_t)rng_below(&r, 50), i / 7, i);
    HeapItem last = {.key = -1};
    for (uint32_t i = 0; i < N; i++) {
        assert_true(heap_first_key(&h) >= last.key);
        HeapItem x = heap_pop(&h);
        assert_true(x.key > last.key || (x.key == last.key && x.id > last.id));
        assert_int_equal(x.order, x.id / 7);
        last = x;
    }
    assert_true(heap_empty(&h));
    arena_finish(&a);
}

static void test_built_at_once(void **state) {
    (void)state;
    Arena a;
    Heap  built, pushed;
    Rng   r = {5};
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    heap_init(&built, &a, N);
    heap_init(&pushed, &a, N);
    for (uint32_t i = 0; i < N; i++) {
        built.items[built.n++] = (HeapItem){(int64_t)rng_below(&r, 300), i, i};
        heap_push(&pushed, built.items[i].key, i, i);
    }
    heap_build(&built);
    for (uint32_t i = 0; i < N; i++) assert_int_equal(heap_pop(&built).id, heap_pop(&pushed).id);
    arena_finish(&a);
}

static void test_pushed_and_popped_by_turns(void **state) {
    (void)state;
    Arena   a;
    Heap    h;
    Rng     r = {4};
    int64_t now = 0;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    heap_init(&h, &a, 64);
    for (uint32_t i = 0; i < 32; i++) heap_push(&h, (int64_t)rng_below(&r, 100), 0, i);
    for (uint32_t i = 0; i < 5000; i++) {  // every event leads to one more, later
        HeapItem x = heap_pop(&h);
        assert_true(x.key >= now);
        now = x.key;
        heap_push(&h, now + (int64_t)rng_below(&r, 100), 0, i);
        assert_int_equal(h.n, 32);
    }
    arena_finish(&a);
}

// Keys by id, against a search through all of them.
static void test_indexed(void **state) {
    (void)state;
    enum { IDS = 60 };
    Arena   a;
    Heap    h;
    Rng     r = {6};
    int64_t keys[IDS];
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(heap_init_indexed(&h, &a, IDS), ERR_OK);
    for (uint32_t i = 0; i < IDS; i++) keys[i] = INT64_MAX;
    for (uint32_t step = 0; step < 20000; step++) {
        uint32_t id = (uint32_t)rng_below(&r, IDS), first = 0, n = 0;
        if (rng_below(&r, 3) == 0) {
            heap_remove(&h, id);
            keys[id] = INT64_MAX;
        } else {
            keys[id] = (int64_t)rng_below(&r, 40);
            heap_set(&h, keys[id], 0, id);
        }
        for (uint32_t i = 0; i < IDS; i++) n += keys[i] != INT64_MAX;
        for (uint32_t i = 1; i < IDS; i++) first = keys[i] < keys[first] ? i : first;
        assert_int_equal(h.n, n);
        assert_true(heap_first_key(&h) == keys[first]);
        if (n == 0 || rng_below(&r, 4) != 0) continue;
        assert_int_equal(heap_pop(&h).id, first);
        keys[first] = INT64_MAX;
    }
    arena_finish(&a);
}

static void test_keys_of_doubles(void **state) {
    (void)state;
    static const double x[] = {-INFINITY, -1e300, -2.5, -1e-310, 0, 1e-310, 1, 1.0000001, INFINITY};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
        int64_t key = heap_key_of_double(x[i]);
        assert_true(heap_double_of_key(key) == x[i]);
        if (i > 0) assert_true(heap_key_of_double(x[i - 1]) < key);
    }
    assert_true(heap_key_of_double(-0.0) == heap_key_of_double(0.0));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_key_then_order_then_id),
        cmocka_unit_test(test_built_at_once),
        cmocka_unit_test(test_pushed_and_popped_by_turns),
        cmocka_unit_test(test_indexed),
        cmocka_unit_test(test_keys_of_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
