// Planaria's allocation against a literal implementation of its rules.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "policy/node/planaria.h"
#include "tests/runner.h"

enum { UNITS = 16, MOST = 24 };

// The next task by descending score; of equal scores the first.
static uint32_t slow_next(const PlanariaTask *t, uint32_t n, const bool *taken) {
    uint32_t best = n;
    for (uint32_t i = 0; i < n; i++)
        if (!taken[i] && (best == n || t[i].score > t[best].score)) best = i;
    return best;
}

static double slow_claim(const PlanariaTask *t, int way) {
    return way == 0 ? t->spare : way == 1 ? fmax(t->score, 0) : fabs(t->score);
}

static int64_t slow_spread(PlanariaTask *t, const uint32_t *by_rank, uint32_t n, int64_t left,
                           int way) {
    double  sum = 0;
    int64_t all = left;
    for (uint32_t i = 0; i < n; i++) sum += slow_claim(&t[by_rank[i]], way);
    if (left <= 0 || sum <= 0) return left;
    for (uint32_t i = 0; i < n; i++) {
        PlanariaTask *x = &t[by_rank[i]];
        int64_t       more = (int64_t)floor((double)all * slow_claim(x, way) / sum + 0.5);
        for (; more > 0 && x->units < x->useful; more--) x->units++, left--;
    }
    for (uint32_t i = 0; i < n; i++) {
        PlanariaTask *x = &t[by_rank[i]];
        while (left > 0 && slow_claim(x, way) > 0 && x->units < x->useful) x->units++, left--;
    }
    for (uint32_t i = n; i-- > 0;) {
        PlanariaTask *x = &t[by_rank[i]];
        while (left < 0 && x->units > x->least) x->units--, left++;
    }
    return left;
}

static void slow_allot(PlanariaTask *t, uint32_t n, uint32_t units) {
    uint32_t by_rank[MOST], sum = 0, feasible = 0;
    bool     taken[MOST] = {false};
    int64_t  left = units;
    for (uint32_t i = 0; i < n; i++) {
        by_rank[i] = slow_next(t, n, taken);
        taken[by_rank[i]] = true;
        sum += t[i].least;
        feasible += t[i].least > 0;
        t[i].units = 0;
    }
    bool all_fit = feasible == n && sum <= units;
    for (uint32_t i = 0; i < n; i++) {
        PlanariaTask *x = &t[by_rank[i]];
        while (left > 0 && x->units < x->least) x->units++, left--;
    }
    left = slow_spread(t, by_rank, n, left, all_fit ? 0 : 1);
    slow_spread(t, by_rank, n, left, 2);
}

static PlanariaTask random_task(Rng *rng, uint32_t i, uint32_t kind) {
    PlanariaTask t = {.request = i, .useful = 1 + (uint32_t)rng_below(rng, UNITS)};
    bool         feasible = kind == 0 || (kind == 1 && rng_below(rng, 3) > 0);
    double       rest = 0.01 + rng_unit64(rng);
    if (feasible) {
        t.least = 1 + (uint32_t)rng_below(rng, t.useful);
        t.spare = 1 / rest;
        t.score = 1 / (rest * t.least);
    } else {
        t.score = -1 / rest;
    }
    return t;
}

static void test_allotment(void **state) {
    (void)state;
    Rng rng = {1};
    for (uint32_t round = 0; round < 3000; round++) {
        uint32_t     n = 1 + (uint32_t)rng_below(&rng, round % 2 == 0 ? 3 : MOST);
        PlanariaTask fast[MOST], slow[MOST] = {0};
        for (uint32_t i = 0; i < n; i++) slow[i] = random_task(&rng, i, round % 3);
        memcpy(fast, slow, sizeof fast);
        planaria_allocate(fast, n, UNITS);
        slow_allot(slow, n, UNITS);
        uint32_t sum = 0;
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(fast[i].units, slow[fast[i].request].units);
            assert_true(i == 0 || fast[i - 1].score >= fast[i].score);
            sum += fast[i].units;
        }
        assert_true(sum <= UNITS && sum > 0);
    }
}

// If all fit, every task gets at least its minimum, and no useful unit stays idle.
static void test_spare(void **state) {
    (void)state;
    PlanariaTask t[2] = {{.request = 0, .least = 4, .useful = 16, .score = 1, .spare = 3},
                         {.request = 1, .least = 4, .useful = 16, .score = 2, .spare = 1}};
    planaria_allocate(t, 2, UNITS);
    assert_int_equal(t[0].request, 1);
    assert_int_equal(t[0].units, 6);
    assert_int_equal(t[1].units, 10);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allotment),
        cmocka_unit_test(test_spare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
