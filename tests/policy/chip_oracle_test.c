// The requests that the oracle rejects, against exhaustive search; the filter.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/chip/oracle/oracle_int.h"
#include "tests/policy/chip_sample.h"
#include "tests/runner.h"

enum { MOST = 10 };

static Arena arena;

static int setup(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 30) == ERR_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

// Whether all requests of a set meet their deadlines on one machine, by deadline.
static bool holds(const ChipRequest *r, const float *work, uint32_t n, uint32_t set) {
    double left[MOST], now = 0;
    for (uint32_t i = 0; i < n; i++) left[i] = set >> i & 1 ? (double)work[i] : 0;
    for (;;) {
        uint32_t best = n;
        double   until = INFINITY;
        for (uint32_t i = 0; i < n; i++) {
            if (!(left[i] > 0)) continue;
            if ((double)r[i].arrival > now)
                until = fmin(until, (double)r[i].arrival);
            else if (best == n || r[i].deadline < r[best].deadline)
                best = i;
        }
        if (best == n && isinf(until)) return true;
        if (best == n) {
            now = until;
            continue;
        }
        double step = fmin(left[best], until - now);
        left[best] -= step;
        now += step;
        if (left[best] <= 0 && now > (double)r[best].deadline + 1e-6) return false;
        if (left[best] <= 1e-9) left[best] = 0;
    }
}

static void test_what_is_kept_holds(void **state) {
    (void)state;
    Rng      rng = {1};
    uint32_t kept_all = 0, best_all = 0;
    for (uint32_t trial = 0; trial < 200; trial++) {
        ChipRequest requests[MOST] = {0};
        OracleAdmit a;
        uint32_t    n = 1 + (uint32_t)rng_below(&rng, MOST), kept = 0, set = 0, best = 0;
        Carve       from = {.base = arena_alloc(&arena, 1, 4096, 64)};
        TimeNs      now = 0;
        oracle_admit_carve(&a, requests, n, &from);
        for (uint32_t i = 0; i < n; i++) {
            now += (TimeNs)rng_below(&rng, 30);
            a.work[i] = (float)(1 + rng_below(&rng, 60));
            requests[i] = (ChipRequest){.id = i, .arrival = now};
            requests[i].deadline = now + (TimeNs)a.work[i] + (TimeNs)rng_below(&rng, 60);
        }
        oracle_admit(&a, 1.0);
        for (uint32_t i = 0; i < n; i++)
            if (!a.rejected[i]) kept++, set |= 1U << i;
        assert_true(holds(requests, a.work, n, set));
        for (uint32_t other = 0; other < 1U << n; other++)
            if (holds(requests, a.work, n, other)) {
                uint32_t size = (uint32_t)__builtin_popcount(other);
                best = size > best ? size : best;
            }
        assert_true(kept <= best);
        kept_all += kept;
        best_all += best;
        arena_rewind(&arena, 0);
    }
    assert_true(kept_all >= best_all * 0.95);
}

static void test_speed_decides(void **state) {
    (void)state;
    ChipRequest r[] = {{.id = 0, .deadline = 100}, {.id = 1, .deadline = 100}};
    OracleAdmit a;
    Carve       from = {.base = arena_alloc(&arena, 1, 4096, 64)};
    oracle_admit_carve(&a, r, 2, &from);
    a.work[0] = 60;
    a.work[1] = 50;
    oracle_admit(&a, 1.2);
    assert_true(!a.rejected[0] && !a.rejected[1]);
    oracle_admit(&a, 1.0);
    assert_true(a.rejected[0] && !a.rejected[1]);  // the larger one
    oracle_admit(&a, 0.4);
    assert_true(a.rejected[0] && a.rejected[1]);
    arena_rewind(&arena, 0);
}

// Requests that are not required are dropped; the inner policy decides as if they had not arrived.
static void test_filter(void **state) {
    (void)state;
    Rng        rng = {2};
    ChipSample s;
    chip_sample_init(&s, &arena, &rng, 2, 4);
    ChipSamplePolicy inner = chip_sample_policy(&s, &arena, policies_chip_find("fcfs"));
    uint8_t          verdicts[CHIP_SAMPLE_SLOTS] = {0};
    OracleFilter with = {.inner = inner.policy, .settings = inner.settings, .verdicts = verdicts};
    const ChipPolicy *filter = oracle_filter(inner.policy);
    void             *own = arena_alloc(&arena, 1, filter->state_size(&s.setup, &with), 64);
    filter->init(own, &s.setup, &with, NULL);
    assert_true(filter->plan == NULL && oracle_filter(policies_chip_find("magma"))->plan != NULL);
    for (uint32_t i = 0; i < 100; i++) {
        ChipSampleView at = chip_sample_view(&s, &arena, &rng, 20, 4);
        ChipAction     plan[256], other[256];
        uint32_t       waiting[CHIP_SAMPLE_SLOTS], dropped = 0;
        ChipView       seen = at.view;
        seen.waiting = waiting;
        seen.n_waiting = 0;
        for (uint32_t k = 0; k < at.view.n_tasks; k++)
            verdicts[k] = rng_below(&rng, 2) == 0 ? ORACLE_REQUIRED : ORACLE_REJECTED;
        for (uint32_t k = 0; k < at.view.n_waiting; k++)
            if (verdicts[at.view.waiting[k]] == ORACLE_REQUIRED)
                waiting[seen.n_waiting++] = at.view.waiting[k];
        uint32_t n = filter->decide(own, &at.view, plan, 256);
        uint32_t want = inner.policy->decide(inner.state, &seen, other, 256);
        while (dropped < n && plan[dropped].verb == CHIP_DROP)
            assert_int_equal(verdicts[plan[dropped++].task], ORACLE_REJECTED);
        assert_int_equal(dropped, at.view.n_waiting - seen.n_waiting);
        assert_int_equal(n, dropped + want);
        for (uint32_t k = 0; k < want; k++)
            assert_true(plan[dropped + k].task == other[k].task &&
                        plan[dropped + k].unit == other[k].unit);
    }
    arena_rewind(&arena, 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_kept_holds),
        cmocka_unit_test(test_speed_decides),
        cmocka_unit_test(test_filter),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
