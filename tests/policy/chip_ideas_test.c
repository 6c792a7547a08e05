// The characteristic behaviour of each chip policy, on states made for it.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/policy/chip_sample.h"
#include "tests/runner.h"

enum { FAST, LEAN };  // kinds of units

// Two kinds of two units each: the first is four times as fast and demands eight times the
// bandwidth.
static const ChipCost small[] = {{100e3F, 8, 1e6F}, {400e3F, 1, 1e6F}};
static const ChipCost large[] = {{300e3F, 8, 3e6F}, {1200e3F, 1, 3e6F}};

typedef struct Case {
    ChipSample       sample;
    ChipSampleView   at;
    ChipSamplePolicy policy;
    ChipAction       plan[64];
    uint32_t         n;
} Case;

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

// n waiting tasks of one layer; odd ones are large. All have just arrived and have enough time.
static Case *new_case(const char *policy, uint32_t n, const char *const *settings) {
    Rng   rng = {1};
    Case *c = arena_new(&arena, Case, 1);
    chip_sample_init(&c->sample, &arena, &rng, 2, 2);
    c->sample.tenants[0].model = chip_sample_chain(&arena, 1, 2, small);
    c->sample.tenants[1].model = chip_sample_chain(&arena, 1, 2, large);
    c->at = chip_sample_view(&c->sample, &arena, &rng, n, 0);
    for (uint32_t i = 0; i < n; i++) {
        ChipTask *t = &c->at.tasks[i];
        t->request.tenant = i % 2;
        t->layer = 0;
        t->ran = 0;
        t->request.arrival = t->since = c->at.view.now;
        t->request.deadline = c->at.view.now + 100000000;
    }
    c->policy = chip_sample_policy(&c->sample, &arena, policies_chip_find(policy));
    Settings with = {c->policy.policy->rows, c->policy.policy->n_rows, c->policy.settings, &arena};
    for (; settings != NULL && *settings != NULL; settings++)
        assert_int_equal(settings_set(&with, *settings), ERR_OK);
    size_t bytes = c->policy.policy->state_size(&c->sample.setup, c->policy.settings);
    c->policy.state = arena_alloc(&arena, 1, bytes, 64);
    c->policy.policy->init(c->policy.state, &c->sample.setup, c->policy.settings, NULL);
    return c;
}

// A unit is busy with a task for that much longer.
static void busy(Case *c, uint32_t task, uint32_t unit, TimeNs ns) {
    ChipView        *v = &c->at.view;
    uint32_t        *waiting = (uint32_t *)v->waiting, *free = (uint32_t *)v->free, n = 0;
    const ChipModel *m = c->sample.tenants[c->at.tasks[task].request.tenant].model;
    float            asks = chip_cost(m, 0, c->sample.setup.kind_of[unit])->bytes_ns;
    c->at.units[unit] = (ChipUnit){task, v->now + ns, asks, INFINITY};
    c->at.tasks[task].unit = unit;
    v->demand += asks;
    for (uint32_t i = 0; i < v->n_waiting; i++)
        if (waiting[i] != task) waiting[n++] = waiting[i];
    v->n_waiting = n;
    n = 0;
    for (uint32_t i = 0; i < v->n_free; i++)
        if (free[i] != unit) free[n++] = free[i];
    v->n_free = n;
}

static void decide(Case *c) {
    c->n = c->policy.policy->decide(c->policy.state, &c->at.view, c->plan, 64);
}

// The kind on which a task starts; CHIP_NONE: it does not.
static uint32_t kind_of(const Case *c, uint32_t task) {
    for (uint32_t i = 0; i < c->n; i++)
        if (c->plan[i].verb == CHIP_START && c->plan[i].task == task)
            return c->sample.setup.kind_of[c->plan[i].unit];
    return CHIP_NONE;
}

static bool dropped(const Case *c, uint32_t task) {
    for (uint32_t i = 0; i < c->n; i++)
        if (c->plan[i].verb == CHIP_DROP && c->plan[i].task == task) return true;
    return false;
}

static void due(Case *c, uint32_t task, TimeNs ns) {
    c->at.tasks[task].request.deadline = c->at.view.now + ns;
}

static void test_fcfs(void **state) {
    (void)state;
    Case *c = new_case("fcfs", 5, NULL);
    decide(c);
    assert_int_equal(c->n, 4);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(kind_of(c, i), i < 2 ? FAST : LEAN);
    Case *h = new_case("fcfs_h", 5, NULL);
    decide(h);
    assert_int_equal(h->n, 2);  // the others wait for the fast kind
    assert_true(kind_of(h, 0) == FAST && kind_of(h, 1) == FAST);
    arena_rewind(&arena, 0);
}

static void test_edf(void **state) {
    (void)state;
    Case *c = new_case("edf", 4,
                       (const char *[]){"patience=0", "safety_factor=1", "late_action=1", NULL});
    due(c, 3, 900000);
    due(c, 2, 800000);
    due(c, 0, 90000);  // too late: it takes 100000
    decide(c);
    assert_true(kind_of(c, 2) == FAST && kind_of(c, 3) == FAST);
    assert_true(kind_of(c, 1) == LEAN && kind_of(c, 0) == LEAN);
    c = new_case("edf", 4,
                 (const char *[]){"patience=1", "safety_factor=1", "late_action=2", NULL});
    due(c, 0, 90000);
    due(c, 1, 310000);
    decide(c);
    assert_true(dropped(c, 0) && !dropped(c, 1));
    // Behind the other small one a task would end at 200000 on a fast unit, before 400000.
    assert_true(kind_of(c, 1) == FAST && kind_of(c, 2) == FAST && kind_of(c, 3) != FAST);
    arena_rewind(&arena, 0);
}

static void test_least_slack(void **state) {
    (void)state;
    const char *const with[] = {"patience=0", "safety_factor=1", "late_action=1", NULL};
    Case             *c = new_case("least_slack", 4, with);
    due(c, 0, 500000);  // slack 400000
    due(c, 1, 600000);  // slack 300000
    due(c, 2, 520000);
    decide(c);
    assert_true(kind_of(c, 1) == FAST && kind_of(c, 0) == FAST && kind_of(c, 2) == LEAN);
    arena_rewind(&arena, 0);
}

static void test_prema(void **state) {
    (void)state;
    Case *c = new_case("prema", 6, (const char *[]){"patience=0", "step=3", "levels=3", NULL});
    for (uint32_t i = 0; i < 6; i++) c->at.tasks[i].request.arrival -= 10000;
    c->at.tasks[1].request.arrival -= 700000;  // 1 + 0.71 / 0.3: above 3
    c->at.tasks[4].request.arrival -= 150000;  // 1 + 0.16 / 0.1: below
    decide(c);
    assert_true(kind_of(c, 1) == FAST && c->plan[0].task == 1);
    assert_true(kind_of(c, 0) == FAST && c->plan[1].task == 0);  // of the rest the shortest
    assert_true(kind_of(c, 5) == CHIP_NONE && kind_of(c, 3) == CHIP_NONE);
    arena_rewind(&arena, 0);
}

static void test_planaria(void **state) {
    (void)state;
    const char *const with[] = {"patience=0", "safety_factor=1", "ahead=1", "drop=true", NULL};
    Case             *c = new_case("planaria", 6, with);
    due(c, 0, 450000);   // the lean kind is enough
    due(c, 1, 450000);   // needs the fast one
    due(c, 3, 1250000);  // lean
    due(c, 2, 99000);    // infeasible
    due(c, 4, 150000);   // fast
    decide(c);
    assert_true(kind_of(c, 0) == LEAN && kind_of(c, 1) == FAST && kind_of(c, 4) == FAST);
    assert_true(dropped(c, 2) && kind_of(c, 3) == LEAN && kind_of(c, 5) == CHIP_NONE);
    c = new_case("planaria", 2,
                 with);  // lean ones are enough for both, but no other task waits
    decide(c);
    assert_true(kind_of(c, 0) == FAST && kind_of(c, 1) == FAST);
    arena_rewind(&arena, 0);
}

static void test_moca(void **state) {
    (void)state;
    const char *const with[] = {"bias=1", "floor=0.1", "safety_factor=1", "late_action=1", NULL};
    Case             *c = new_case("moca", 3, with);
    c->sample.setup.bytes_ns = 10;
    busy(c, 0, 0, 50000);
    busy(c, 1, 1, 50000);
    due(c, 0, 120000);  // urgent
    busy(c, 2, 2, 50000);
    decide(c);
    float cap[2] = {8, 8}, sum = 1;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->plan[i].verb == CHIP_THROTTLE && c->plan[i].unit < 2)
            cap[c->plan[i].unit] = c->plan[i].cap;
    sum += cap[0] + cap[1];
    assert_true(cap[1] < cap[0] && cap[0] <= 8 && sum < 10.7F);
    c->sample.setup.bytes_ns = 100;  // enough for all
    c->at.units[1].cap = 2;
    decide(c);
    assert_true(c->n == 1 && c->plan[0].unit == 1 && isinf(c->plan[0].cap) != 0);
    arena_rewind(&arena, 0);
}

static void test_moca_pairs(void **state) {
    (void)state;
    static const ChipCost light[] = {{100e3F, 1, 1e6F}, {400e3F, 1, 1e6F}};
    const char *const     with[] = {"heavy=0.5", "crowd=1", "patience=0", "waited=false", NULL};
    Case                 *c = new_case("moca", 4, with);
    c->sample.setup.bytes_ns = 10;
    c->sample.tenants[1].model = chip_sample_chain(&arena, 1, 2, light);
    busy(c, 0, 0, 50000);  // it demands 8 of 10
    busy(c, 3, 2, 5000000);
    due(c, 2, 150000);  // urgent, but heavy
    decide(c);
    assert_true(c->plan[0].verb == CHIP_START && c->plan[0].task == 1);
    arena_rewind(&arena, 0);
}

static void test_dream(void **state) {
    (void)state;
    const char *const with[] = {"patience=0",      "alpha=0", "beta=0",
                                "safety_factor=1", "cap=0.5", NULL};
    Case             *c = new_case("dream", 6, with);
    due(c, 1, 400000);   // 3 / 4
    due(c, 2, 1000000);  // 1 / 10
    due(c, 4, 50000);    // too late
    due(c, 0, 50000);    // too late, and one of three of its tenant's may be dropped
    decide(c);
    assert_true(kind_of(c, 1) == FAST && kind_of(c, 2) == FAST);
    assert_true(dropped(c, 0) && !dropped(c, 4));
    arena_rewind(&arena, 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fcfs),        cmocka_unit_test(test_edf),
        cmocka_unit_test(test_least_slack), cmocka_unit_test(test_prema),
        cmocka_unit_test(test_planaria),    cmocka_unit_test(test_moca),
        cmocka_unit_test(test_moca_pairs),  cmocka_unit_test(test_dream),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
