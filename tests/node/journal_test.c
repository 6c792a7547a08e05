#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/live/journal.h"
#include "tests/runner.h"

typedef struct Seen {
    TimeNs   at[64];
    uint64_t request[64];
    uint32_t n;
} Seen;

static void see(void *self, const Record *r) {
    Seen *s = self;
    s->at[s->n] = r->at;
    s->request[s->n++] = r->request;
}

static void drains_by_time(void **state) {
    (void)state;
    Arena               a;
    Journal             j;
    Seen                s = {0};
    static const TimeNs times[] = {5, 1, 5, 3, 9, 0};
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(journal_init(&j, 8, &a), ERR_OK);
    for (uint32_t round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < 6; i++) journal_put(&j, &(Record){.at = times[i], .request = i});
        s.n = 0;
        assert_int_equal(journal_drain(&j, &a, (RecordSink){see, &s}), ERR_OK);
        assert_int_equal(s.n, 6);
        for (uint32_t i = 1; i < s.n; i++)
            assert_true(s.at[i - 1] < s.at[i] ||
                        (s.at[i - 1] == s.at[i] && s.request[i - 1] < s.request[i]));
    }
    assert_int_equal(atomic_load(&j.lost), 0);
    arena_finish(&a);
}

static void full_loses_and_counts(void **state) {
    (void)state;
    Arena   a;
    Journal j;
    Seen    s = {0};
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(journal_init(&j, 8, &a), ERR_OK);
    for (uint32_t i = 0; i < 11; i++) journal_put(&j, &(Record){.at = i});
    assert_int_equal(atomic_load(&j.lost), 3);
    assert_int_equal(journal_drain(&j, &a, (RecordSink){see, &s}), ERR_OK);
    assert_int_equal(s.n, 8);
    assert_int_equal(journal_init(&j, 0, &a), ERR_OK);
    journal_put(&j, &(Record){0});
    assert_int_equal(journal_drain(&j, &a, (RecordSink){0}), ERR_OK);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drains_by_time),
        cmocka_unit_test(full_loses_and_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
