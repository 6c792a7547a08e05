#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "node/live/inbox.h"
#include "tests/runner.h"

enum { WRITERS = 3, EACH = 5000, ROOM = 16 };

typedef struct Writer {
    Inbox   *box;
    uint32_t number;
} Writer;

static void *write_all(void *self) {
    Writer *w = self;
    for (uint32_t i = 0; i < EACH; i++)
        while (!inbox_put(w->box, &(EngineRequest){.tenant = w->number, .arrival = i}))
            (void)sched_yield();
    return NULL;
}

// Each writer's requests come once and in order, however few slots there are.
static void all_arrive_in_order(void **state) {
    (void)state;
    Arena         a;
    Inbox         box;
    EngineRequest ask;
    pthread_t     threads[WRITERS];
    Writer        writers[WRITERS];
    TimeNs        next[WRITERS] = {0};
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(inbox_init(&box, ROOM, &a), ERR_OK);
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (Writer){&box, i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_all, &writers[i]), 0);
    }
    for (uint32_t n = 0; n < WRITERS * EACH;) {
        if (!inbox_take(&box, &ask)) {
            (void)sched_yield();
            continue;
        }
        assert_int_equal(ask.arrival, next[ask.tenant]++);
        n++;
    }
    for (uint32_t i = 0; i < WRITERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(inbox_take(&box, &ask));
    arena_finish(&a);
}

static void full_is_told(void **state) {
    (void)state;
    Arena         a;
    Inbox         box;
    EngineRequest ask;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(inbox_init(&box, 3, &a), ERR_OK);
    for (uint32_t round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < 4; i++)
            assert_true(inbox_put(&box, &(EngineRequest){.tenant = i}));
        assert_false(inbox_put(&box, &(EngineRequest){.tenant = 4}));
        for (uint32_t i = 0; i < 4; i++) {
            assert_true(inbox_take(&box, &ask));
            assert_int_equal(ask.tenant, i);
        }
        assert_false(inbox_take(&box, &ask));
    }
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_is_told),
        cmocka_unit_test(all_arrive_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
