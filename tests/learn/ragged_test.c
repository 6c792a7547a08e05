// Rows of a ragged batch: longest first, one step after the other, every item exactly once.
#include "tests/learn/gradient.h"

#include "learn/ragged.h"
#include "tests/runner.h"

enum { SEQS = 40, STEPS = 20 };

static void test_rows(void **state) {
    (void)state;
    Rng rng = {1};
    for (uint32_t round = 0; round < 300; round++) {
        uint32_t len[SEQS], start[STEPS + 1], rank[SEQS], lens[SEQS], total = 0;
        uint32_t n = 1 + (uint32_t)rng_below(&rng, SEQS);
        uint32_t most = 1 + (uint32_t)rng_below(&rng, STEPS);
        bool     seen[SEQS * STEPS] = {0};
        Ragged   r = {.start = start, .rank = rank, .len = lens};
        for (uint32_t i = 0; i < n; i++) {
            len[i] = (uint32_t)rng_below(&rng, most + 1);
            total += len[i];
        }
        ragged_make(&r, len, n);
        assert_int_equal(r.n_rows, total);
        assert_int_equal(r.start[0], 0);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(r.len[r.rank[i]], len[i]);
            assert_true(len[i] <= r.n_steps);
            if (i + 1 < n) {
                assert_true(r.len[i] >= r.len[i + 1]);
                if (len[i] == len[i + 1]) assert_int_equal(r.rank[i] + 1, r.rank[i + 1]);
            }
            for (uint32_t t = 0; t < len[i]; t++) {
                size_t row = ragged_row(&r, i, t);
                assert_true(row < total && !seen[row] && r.rank[i] < ragged_alive(&r, t));
                seen[row] = true;
            }
        }
    }
}

static void test_put(void **state) {
    (void)state;
    static const uint32_t len[] = {2, 0, 3};
    uint32_t              start[4], rank[3], lens[3];
    Ragged                r = {.start = start, .rank = rank, .len = lens};
    const float           first[] = {1, 2, 3, 4}, third[] = {5, 6, 7, 8, 9, 10};
    float                 m[15] = {0};
    ragged_make(&r, len, 3);
    ragged_put(&r, 0, first, 2, m, 3);
    ragged_put(&r, 2, third, 2, m, 3);
    static const float want[] = {5, 6, 0, 1, 2, 0, 7, 8, 0, 3, 4, 0, 9, 10, 0};
    assert_memory_equal(m, want, sizeof m);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_put)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
