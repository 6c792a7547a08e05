// Invariants of every chip policy, on random states of large and small packages.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/policy/chip_sample.h"
#include "tests/runner.h"

enum { MAX = 512 };

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

// Policies that need weights or the future cannot run without the simulator.
static bool stands_alone(const ChipPolicy *p) { return !p->learned && !p->clairvoyant; }

static bool can_run(const ChipView *v, const ChipTask *t, uint32_t unit) {
    const ChipModel *m = v->setup->tenants[t->request.tenant].model;
    return !isinf(chip_cost(m, t->layer, v->setup->kind_of[unit])->ns);
}

typedef struct Plan {
    ChipAction at[MAX];
    uint32_t   n;
    bool       named[CHIP_SAMPLE_SLOTS];  // tasks that start or are dropped
    bool       taken[CHIP_UNITS];         // units on which a layer starts
    uint32_t   starts, drops;
} Plan;

static void check_one(const ChipView *v, const ChipAction *a, Plan *p) {
    if (a->verb == CHIP_WAKE) assert_true(a->at > v->now);
    if (a->verb == CHIP_THROTTLE) assert_true(a->unit < v->setup->n_units && a->cap > 0);
    if (a->verb != CHIP_START && a->verb != CHIP_DROP) return;
    assert_true(a->task < v->n_tasks && !p->named[a->task]);
    assert_int_equal(v->tasks[a->task].unit, CHIP_NONE);
    p->named[a->task] = true;
    p->drops += a->verb == CHIP_DROP;
    if (a->verb == CHIP_DROP) return;
    assert_true(a->unit < v->setup->n_units && !p->taken[a->unit]);
    assert_int_equal(v->units[a->unit].task, CHIP_NONE);
    assert_true(can_run(v, &v->tasks[a->task], a->unit));
    p->taken[a->unit] = true;
    p->starts++;
}

// On an idle package a task must start: no other event would follow.
static void check_goes_on(const ChipView *v, const Plan *p) {
    if (v->n_free == v->setup->n_units && v->n_waiting > 0)
        assert_true(p->starts > 0 || p->drops == v->n_waiting);
}

// No waiting task could run on a unit that is left free.
static void check_busy(const ChipView *v, const Plan *p) {
    for (uint32_t f = 0; f < v->n_free; f++)
        for (uint32_t i = 0; i < v->n_waiting; i++)
            assert_true(p->taken[v->free[f]] || p->named[v->waiting[i]] ||
                        !can_run(v, &v->tasks[v->waiting[i]], v->free[f]));
}

static void decide(const ChipSamplePolicy *s, const ChipView *v, uint32_t max, Plan *out) {
    memset(out, 0, sizeof *out);
    out->n = s->policy->decide(s->state, v, out->at, max);
    assert_true(out->n <= max);
    for (uint32_t i = 0; i < out->n; i++) check_one(v, &out->at[i], out);
}

static void check_same(const Plan *a, const Plan *b) {
    assert_int_equal(a->n, b->n);
    for (uint32_t i = 0; i < a->n; i++) {
        assert_true(a->at[i].verb == b->at[i].verb && a->at[i].task == b->at[i].task);
        assert_true(a->at[i].unit == b->at[i].unit && a->at[i].at == b->at[i].at);
        assert_true(a->at[i].cap == b->at[i].cap);
    }
}

static void make_plan(const ChipSamplePolicy *s, const ChipView *v) {
    ChipPlanCost c = {0};
    if (s->policy->plan == NULL) return;
    s->policy->plan(s->state, v, &c);
    assert_true(c.ops >= 0 && c.macs >= 0 && c.weight_bytes >= 0);
    if (v->n_waiting > 0) assert_true(c.ops + c.macs > 0);
    s->policy->commit(s->state);
}

static void try_policy(const ChipSample *s, const ChipPolicy *policy, Rng *rng) {
    ChipSamplePolicy one = chip_sample_policy(s, &arena, policy);
    ChipSamplePolicy two = chip_sample_policy(s, &arena, policy);
    size_t           mark = arena.used;
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t       n_waiting = (uint32_t)rng_below(rng, i % 2 == 0 ? 5 : 120);
        uint32_t       n_running = (uint32_t)rng_below(rng, 12) * (i % 3 > 0);
        ChipSampleView at = chip_sample_view(s, &arena, rng, n_waiting, n_running);
        uint32_t       max = i % 7 == 0 ? 1 + (uint32_t)rng_below(rng, 4) : MAX;
        Plan           plan, again;
        if (i % 4 == 0) make_plan(&one, &at.view), make_plan(&two, &at.view);
        decide(&one, &at.view, max, &plan);
        if (max == MAX) check_goes_on(&at.view, &plan);
        decide(&two, &at.view, max, &again);
        check_same(&plan, &again);
        arena_rewind(&arena, mark);
    }
}

static void try_moments(uint32_t n_kinds, uint32_t n_each, uint64_t seed) {
    Rng        rng = {seed};
    ChipSample s;
    chip_sample_init(&s, &arena, &rng, n_kinds, n_each);
    for (uint32_t p = 0; policies_chip_at(p) != NULL; p++)
        if (stands_alone(policies_chip_at(p))) try_policy(&s, policies_chip_at(p), &rng);
    arena_rewind(&arena, 0);
}

static void test_plans_are_legal(void **state) {
    (void)state;
    try_moments(2, 4, 1);
    try_moments(3, 2, 2);
    try_moments(2, 32, 3);
}

static void test_small_packages(void **state) {
    (void)state;
    try_moments(1, 1, 4);
    try_moments(2, 1, 5);
}

// Settings with which a keyed-order policy never leaves a unit idle.
static void set(const ChipPolicy *p, void *settings, const char *assignment) {
    Settings with = {p->rows, p->n_rows, settings, &arena};
    settings_default(&with);
    assert_int_equal(settings_set(&with, assignment), ERR_OK);
}

static void check_keeps_busy(const char *name, const char *assignment) {
    Rng               rng = {6};
    ChipSample        s;
    const ChipPolicy *policy = policies_chip_find(name);
    chip_sample_init(&s, &arena, &rng, 2, 4);
    ChipSamplePolicy p = chip_sample_policy(&s, &arena, policy);
    if (assignment != NULL) set(policy, p.settings, assignment);
    policy->init(memset(p.state, 0, policy->state_size(&s.setup, p.settings)), &s.setup, p.settings,
                 NULL);
    for (uint32_t i = 0; i < 200; i++) {
        ChipSampleView at = chip_sample_view(&s, &arena, &rng, (uint32_t)rng_below(&rng, 40),
                                             (uint32_t)rng_below(&rng, 8));
        Plan           plan;
        decide(&p, &at.view, MAX, &plan);
        check_busy(&at.view, &plan);
    }
    arena_rewind(&arena, 0);
}

static void test_no_unit_idles(void **state) {
    (void)state;
    check_keeps_busy("fcfs", NULL);
    check_keeps_busy("edf", "patience=0");
    check_keeps_busy("least_slack", "patience=0");
}

static void test_names(void **state) {
    (void)state;
    for (uint32_t p = 0; policies_chip_at(p) != NULL; p++) {
        const ChipPolicy *policy = policies_chip_at(p);
        assert_ptr_equal(policies_chip_find(policy->name), policy);
        assert_true(strlen(policy->about) > 0);
        assert_true((policy->plan == NULL) == (policy->commit == NULL));
    }
    assert_null(policies_chip_find("none"));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_are_legal),
        cmocka_unit_test(test_small_packages),
        cmocka_unit_test(test_no_unit_idles),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
