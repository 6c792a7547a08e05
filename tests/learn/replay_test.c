// A replay against a list that is searched from its beginning: what it keeps, and whom it draws.
#include "tests/learn/gradient.h"

#include <stdlib.h>

#include "learn/replay.h"
#include "tests/runner.h"

enum { ROUNDS = 3000, LIST = 20000 };

static uint32_t find_slowly(const double *value, uint32_t n, double at) {
    uint32_t last = 0;
    double   sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (value[i] <= 0) continue;
        last = i;
        sum += value[i];
        if (at < sum) return i;
    }
    return last;
}

// Multiples of 1/16, so that sums are exact in any order.
static void test_sums(void **state) {
    (void)state;
    Rng rng = {1};
    for (uint32_t n = 1; n < 70; n += 3) {
        Arena   a;
        SumTree s;
        double  value[70] = {0}, total = 0;
        assert_int_equal(arena_init(&a, (size_t)1 << 16), ERR_OK);
        sum_tree_init(&s, &a, n);
        for (uint32_t round = 0; round < 300; round++) {
            uint32_t i = (uint32_t)rng_below(&rng, n);
            value[i] = rng_below(&rng, 3) ? (double)rng_below(&rng, 100) / 16 : 0;
            sum_tree_set(&s, i, value[i]);
            total = 0;
            for (uint32_t k = 0; k < n; k++) total += value[k];
            assert_true(sum_tree_total(&s) == total && sum_tree_get(&s, i) == value[i]);
            if (total <= 0) continue;
            double at = (double)rng_below(&rng, (uint64_t)(total * 16) + 1) / 16;  // also on edges
            assert_int_equal(sum_tree_find(&s, at), find_slowly(value, n, at));
        }
        arena_finish(&a);
    }
}

typedef struct Kept {
    uint32_t n;
    float    mark;
} Kept;

// What was added, marked by its number; the replay holds exactly the latest of them.
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
            assert_true(p->weight > 0 && p->weight <= 1);
            replay_set_error(r, p->id, (float)rng_unit(&rng) * 3);
        }
        replay_set_error(r, 0, 1e6f);  // long gone: nothing happens
    }
    size_t full = o.floats / longest - 1;  // what cannot be used at the end is less than a record
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
        check_kept((ReplayOptions){.records = 50, .floats = 400, .alpha = 0.6f, .beta = 0.4f}, 20,
                   seed);
    }
}

// How often each is drawn, and that weights make up for it: with beta 1 the mean is the even one.
static void test_by_error(void **state) {
    (void)state;
    enum { N = 16, DRAWS = 4000 };
    Arena      a;
    Rng        rng = {9};
    ReplayPick picks[N];
    double     drawn[N] = {0}, weight[N] = {0}, total = 0;
    assert_int_equal(arena_init(&a, (size_t)1 << 20), ERR_OK);
    Replay *r = replay_create(
        &a, (ReplayOptions){.records = N, .floats = N, .alpha = 0.5f, .beta = 1, .least = 0.25f});
    for (uint32_t i = 0; i < N; i++) *replay_add(r, 1) = (float)i;
    for (uint32_t i = 0; i < N; i++) replay_set_error(r, i, (float)(i * i));
    for (uint32_t i = 0; i < N; i++) total += i > 0 ? i : 0.5;
    for (uint32_t round = 0; round < DRAWS; round++) {
        replay_draw(r, &rng, N, picks);
        float most = 0;
        for (uint32_t i = 0; i < N; i++) {
            drawn[picks[i].id] += 1;
            weight[picks[i].id] = (double)picks[i].weight;
            most = picks[i].weight > most ? picks[i].weight : most;
        }
        assert_true(most == 1);
        for (uint32_t i = 1; i < N; i++) {
            double ratio = (double)(picks[i].weight / picks[0].weight);
            double chances = fmax(0.5, (double)picks[0].id) / fmax(0.5, (double)picks[i].id);
            assert_true(fabs(ratio - chances) < 1e-4 * chances);
        }
    }
    for (uint32_t i = 0; i < N; i++) {
        double share = drawn[i] / ((double)DRAWS * N), wants = (i > 0 ? i : 0.5) / total;
        assert_true(weight[i] > 0 && fabs(share - wants) < 0.05 * wants + 5e-4);
    }
    *replay_add(r, 1) = 99;  // new ones count as much as the most
    replay_draw(r, &rng, N, picks);
    bool seen = false;
    for (uint32_t i = 0; i < N; i++) seen = seen || picks[i].record[0] == 99;
    assert_true(seen);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_kept),
                                       cmocka_unit_test(test_by_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
