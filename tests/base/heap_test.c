#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "base/heap.h"
#include "tests/runner.h"

enum { N = 2000 };

static void test_by_time_then_in_order(void **state) {
    (void)state;
    Arena a;
    Heap  h;
    Rng   r = {3};
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    heap_init(&h, &a, N);
    assert_true(heap_empty(&h));
    assert_true(heap_next(&h) == INT64_MAX);
    for (uint32_t i = 0; i < N; i++) heap_put(&h, (TimeNs)rng_below(&r, 50), i % 3, i);
    HeapItem last = {.at = -1};
    for (uint32_t i = 0; i < N; i++) {
        assert_true(heap_next(&h) >= last.at);
        HeapItem x = heap_take(&h);
        assert_true(x.at > last.at || (x.at == last.at && x.id > last.id));
        assert_int_equal(x.kind, x.id % 3);
        last = x;
    }
    assert_true(heap_empty(&h));
    arena_finish(&a);
}

static void test_put_and_taken_by_turns(void **state) {
    (void)state;
    Arena  a;
    Heap   h;
    Rng    r = {4};
    TimeNs now = 0;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    heap_init(&h, &a, 64);
    for (uint32_t i = 0; i < 32; i++) heap_put(&h, (TimeNs)rng_below(&r, 100), 0, i);
    for (uint32_t i = 0; i < 5000; i++) {  // every event leads to one more, later
        HeapItem x = heap_take(&h);
        assert_true(x.at >= now);
        now = x.at;
        heap_put(&h, now + (TimeNs)rng_below(&r, 100), 0, i);
        assert_int_equal(h.n, 32);
    }
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_time_then_in_order),
        cmocka_unit_test(test_put_and_taken_by_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
