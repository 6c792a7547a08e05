// Rules that hold for every policy, over random views of large and small servers.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/policy/node_sample.h"
#include "tests/runner.h"

enum { MAX = 256 };

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

static void check_start(const NodeView *v, const NodeAction *a, Cores *free) {
    const NodeRequest *r = &v->requests[a->request];
    const NodeModel   *m = v->setup->tenants[r->tenant].model;
    assert_int_equal(r->state, NODE_WAITING);
    assert_true(cores_count(&a->cores) > 0 && cores_is_subset(&a->cores, free));
    assert_true(a->n_layers > 0 && r->next + a->n_layers <= m->n_layers);
    assert_non_null(a->versions);
    for (uint32_t l = 0; l < m->n_layers; l++)
        assert_true(a->versions[l] < m->layers[l].n_versions);
    *free = cores_difference(*free, &a->cores);
}

static void check_plan(const NodeView *v, const NodeAction *plan, uint32_t n) {
    Cores free = v->free;
    bool  named[MAX] = {false};
    for (uint32_t i = 0; i < n; i++) {
        const NodeAction *a = &plan[i];
        if (a->verb == NODE_WAKE) continue;
        assert_true(a->request < v->n_requests && !named[a->request]);
        named[a->request] = true;
        const NodeRequest *r = &v->requests[a->request];
        if (a->verb == NODE_START) check_start(v, a, &free);
        if (a->verb == NODE_REJECT) assert_int_equal(r->state, NODE_WAITING);
        if (a->verb != NODE_GROW) continue;
        assert_int_equal(r->state, NODE_RUNNING);
        assert_true(cores_count(&a->cores) > 0 && cores_is_subset(&a->cores, &free));
        free = cores_difference(free, &a->cores);
    }
}

static void check_same(const NodeView *v, const NodeAction *a, const NodeAction *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        assert_true(a[i].verb == b[i].verb && a[i].request == b[i].request);
        assert_true(a[i].n_layers == b[i].n_layers && a[i].wanted == b[i].wanted);
        assert_memory_equal(&a[i].cores, &b[i].cores, sizeof(Cores));
        if (a[i].verb != NODE_START) continue;
        const NodeModel *m = v->setup->tenants[v->requests[a[i].request].tenant].model;
        assert_memory_equal(a[i].versions, b[i].versions, m->n_layers);
    }
}

// On an idle machine some request must start, or no event would follow.
static void check_goes_on(const NodeView *v, const NodeAction *plan, uint32_t n) {
    if (v->n_running > 0 || v->n_waiting == 0) return;
    uint32_t starts = 0, rejects = 0;
    for (uint32_t i = 0; i < n; i++) {
        starts += plan[i].verb == NODE_START;
        rejects += plan[i].verb == NODE_REJECT;
    }
    assert_true(starts > 0 || rejects == v->n_waiting);
}

static void try_moments(uint32_t n_cores, uint64_t seed) {
    Rng        rng = {seed};
    NodeSample s;
    node_sample_init(&s, &arena, &rng, n_cores);
    for (uint32_t p = 0; policies_node_at(p) != NULL; p++) {
        NodeSamplePolicy one = node_sample_policy(&s, &arena, policies_node_at(p));
        NodeSamplePolicy two = node_sample_policy(&s, &arena, policies_node_at(p));
        size_t           mark = arena.used;
        for (uint32_t i = 0; i < 300; i++) {
            uint32_t       n_waiting = (uint32_t)rng_below(&rng, i % 2 == 0 ? 5 : 120);
            uint32_t       n_running = (uint32_t)rng_below(&rng, 12) * (i % 3 > 0);
            NodeSampleView at = node_sample_view(&s, &arena, &rng, n_waiting, n_running);
            uint32_t       max = i % 7 == 0 ? 1 + (uint32_t)rng_below(&rng, 4) : MAX;
            NodeAction     plan[MAX], again[MAX];
            uint32_t       n = one.policy->decide(one.state, &at.view, plan, max);
            assert_true(n <= max);
            check_plan(&at.view, plan, n);
            if (max == MAX) check_goes_on(&at.view, plan, n);
            assert_int_equal(two.policy->decide(two.state, &at.view, again, max), n);
            check_same(&at.view, plan, again, n);
            arena_rewind(&arena, mark);
        }
    }
    arena_rewind(&arena, 0);
}

static void test_plans_are_legal(void **state) {
    (void)state;
    try_moments(64, 1);
    try_moments(64, 2);
    try_moments(7, 3);
}

static void test_small_machines(void **state) {
    (void)state;
    try_moments(2, 4);
    try_moments(1, 5);
}

static void test_names(void **state) {
    (void)state;
    for (uint32_t p = 0; policies_node_at(p) != NULL; p++) {
        const NodePolicy *policy = policies_node_at(p);
        assert_ptr_equal(policies_node_find(policy->name), policy);
        assert_true(strlen(policy->about) > 0);
    }
    assert_null(policies_node_find("none"));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_are_legal),
        cmocka_unit_test(test_small_machines),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
