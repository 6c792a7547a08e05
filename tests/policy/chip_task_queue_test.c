// TaskQueue against a linear search for the least key.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "policy/chip/common/dispatch.h"
#include "tests/runner.h"

enum { MOST = 200 };

typedef struct Plain {
    QueuedTask at[MOST];
    uint32_t   n;
} Plain;

static QueuedTask take_least(Plain *p) {
    uint32_t least = 0;
    for (uint32_t i = 1; i < p->n; i++) {
        const QueuedTask *a = &p->at[i], *b = &p->at[least];
        if (a->key < b->key || (a->key == b->key && a->place < b->place)) least = i;
    }
    QueuedTask x = p->at[least];
    p->at[least] = p->at[--p->n];
    return x;
}

static void check_order(Rng *rng, TaskQueue *o) {
    Plain    plain = {.n = (uint32_t)rng_below(rng, MOST)};
    uint32_t pushes = 30;
    task_queue_clear(o);
    for (uint32_t i = 0; i < plain.n; i++) {
        plain.at[i] = (QueuedTask){(double)rng_below(rng, 40), 1000 + i, i};
        task_queue_add(o, plain.at[i].key, plain.at[i].task);
    }
    while (plain.n > 0) {
        QueuedTask want = take_least(&plain), got = task_queue_pop(o);
        assert_int_equal(got.task, want.task);
        assert_true(got.key == want.key);
        if (rng_below(rng, 3) > 0 || pushes-- == 0) continue;
        got.key += (double)rng_below(rng, 20);
        task_queue_push(o, got);
        plain.at[plain.n++] = got;
        if (pushes == 0) break;
    }
}

static void test_least_first(void **state) {
    (void)state;
    HeapItem  room[MOST];
    TaskQueue o = {.heap = {.items = room, .capacity = MOST}};
    Rng       rng = {1};
    for (uint32_t i = 0; i < 300; i++) check_order(&rng, &o);
}

static void test_carved(void **state) {
    (void)state;
    static _Alignas(64) char memory[4096];
    TaskQueue                o;
    Carve                    counts = {0}, takes = {.base = memory};
    task_queue_carve(&o, 10, &counts);
    assert_null(o.heap.items);
    task_queue_carve(&o, 10, &takes);
    assert_true(counts.used == takes.used && counts.used >= 10 * sizeof(HeapItem));
    task_queue_add(&o, 2.0, 7);
    task_queue_add(&o, 1.0, 8);
    assert_int_equal(task_queue_pop(&o).task, 8);
    assert_int_equal(o.heap.n, 1);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_first),
        cmocka_unit_test(test_carved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
