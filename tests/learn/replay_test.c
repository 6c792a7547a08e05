// A replay buffer against a list of all records: what it keeps, and what it draws.
#include "tests/learn/gradient.h"

#include <stdlib.h>

#include "learn/replay.h"
#include "tests/runner.h"

enum { ROUNDS = 3000, LIST = 20000 };

typedef struct Kept {
    uint32_t n;
    float    mark;
} Kept;

// Records marked by their number; the replay holds exactly the latest.
static void check_kept(ReplayOptions o, uint32_t longest, uint64_t seed) {
    static Kept list[LIST];
    Arena       a;
    Rng         rng = {seed};
    ReplayPick  picks[8];
    assert_int_equal(arena_init(&a, (size_t)1 << 22), ERR_OK);
    Replay  *r = replay_create(&a, o);
    uint32_t fewest = UINT32_MAX;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t n = 1 + (uint32_t)rng_below(&rng, longest);
        float   *to = replay_add(r, n);
        list[i] = (Kept){n, (float)i};
        for (uint32_t k = 0; k < n; k++) to[k] = (float)i;
        uint32_t count = replay_count(r);
        assert_true(count >= 1 && count <= o.records && count <= i + 1);
        if (i > ROUNDS / 2 && count < fewest) fewest = count;
        replay_draw(r, &rng, 8, picks);
        for (uint32_t k = 0; k < 8; k++) {
            const ReplayPick *p = &picks[k];
            assert_true(p->id <= i && p->id + count > i);
            assert_int_equal(p->n, list[p->id].n);
            for (uint32_t j = 0; j < p->n; j++) assert_true(p->record[j] == list[p->id].mark);
        }
    }
    size_t full = o.floats / longest - 1;  // the unused end is smaller than a record
    assert_true(fewest >= (full < o.records ? full : o.records));
    arena_finish(&a);
}

static void test_kept(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 4; seed++) {
        check_kept((ReplayOptions){.records = 20, .floats = 400}, 20, seed);
        check_kept((ReplayOptions){.records = 1000, .floats = 400}, 20, seed);
        check_kept((ReplayOptions){.records = 7, .floats = 4000}, 20, seed);
        check_kept((ReplayOptions){.records = 1, .floats = 20}, 20, seed);
    }
}

// Every record is drawn about equally often.
static void test_uniform(void **state) {
    (void)state;
    enum { N = 16, DRAWS = 4000 };
    Arena      a;
    Rng        rng = {9};
    ReplayPick picks[N];
    double     drawn[N] = {0};
    assert_int_equal(arena_init(&a, (size_t)1 << 20), ERR_OK);
    Replay *r = replay_create(&a, (ReplayOptions){.records = N, .floats = N});
    for (uint32_t i = 0; i < N; i++) *replay_add(r, 1) = (float)i;
    for (uint32_t round = 0; round < DRAWS; round++) {
        replay_draw(r, &rng, N, picks);
        for (uint32_t i = 0; i < N; i++) drawn[picks[i].id] += 1;
    }
    for (uint32_t i = 0; i < N; i++) assert_true(fabs(drawn[i] / DRAWS - 1) < 0.1);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kept), cmocka_unit_test(test_uniform)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
