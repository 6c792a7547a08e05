// Incrementally maintained lists against lists rebuilt each time.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "node/live/request_table.h"
#include "tests/runner.h"

enum { ROOM = 24, STEPS = 20000 };

typedef struct Twin {  // by id, in order of arrival
    uint64_t ids[ROOM];
    bool     runs[ROOM];
    uint32_t n;
} Twin;

static uint32_t find(const RequestTable *q, uint64_t id) {
    for (uint32_t i = 0; i < q->n; i++)
        if (q->requests[i].id == id) return i;
    fail_msg("request %llu is gone", (unsigned long long)id);
    return 0;
}

static void compare(const RequestTable *q, const Twin *t) {
    NodeView v = {0};
    uint32_t waiting = 0, running = 0;
    request_table_show(q, &v);
    assert_int_equal(v.n_requests, t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t k = find(q, t->ids[i]);
        assert_int_equal(q->requests[k].state, t->runs[i] ? NODE_RUNNING : NODE_WAITING);
        assert_int_equal((t->runs[i] ? v.running : v.waiting)[q->where[k]], k);
        if (t->runs[i])
            running++;
        else
            assert_int_equal(v.waiting[waiting++], k);
    }
    assert_int_equal(v.n_waiting, waiting);
    assert_int_equal(v.n_running, running);
}

static void twin_drop(Twin *t, uint32_t i) {
    t->n--;
    for (; i < t->n; i++) {
        t->ids[i] = t->ids[i + 1];
        t->runs[i] = t->runs[i + 1];
    }
}

static void step(RequestTable *q, Twin *t, Rng *r, uint64_t id) {
    uint32_t what = (uint32_t)rng_below(r, 3);
    if (what == 0 || t->n == 0) {
        uint32_t i = request_table_add(q, &(NodeRequest){.id = id});
        assert_int_equal(i == UINT32_MAX, t->n == ROOM);
        if (i == UINT32_MAX) return;
        t->ids[t->n] = id;
        t->runs[t->n++] = false;
        return;
    }
    uint32_t i = (uint32_t)rng_below(r, t->n), k = find(q, t->ids[i]);
    if (what == 2) {
        uint64_t last = q->requests[q->n - 1].id;
        uint32_t from = request_table_drop(q, k);
        if (from != k) assert_int_equal(q->requests[k].id, last);
        twin_drop(t, i);
    } else {
        if (t->runs[i])
            request_table_wait(q, k);
        else
            request_table_run(q, k);
        t->runs[i] = !t->runs[i];
    }
}

static void lists_stay_right(void **state) {
    (void)state;
    Arena        a;
    RequestTable q;
    Twin         t = {0};
    Rng          r = {3};
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(request_table_init(&q, ROOM, &a), ERR_OK);
    for (uint64_t i = 0; i < STEPS; i++) {
        step(&q, &t, &r, i);
        compare(&q, &t);
    }
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_stay_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
