// PREMA's tokens: which requests are candidates, and which of them runs.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/policy/node_sample.h"
#include "tests/runner.h"

static Arena      arena;
static NodeSample sample;
static double     alone[NODE_SAMPLE_TENANTS];  // ns on the fastest core count

static int setup(void **state) {
    (void)state;
    Rng rng = {1};
    if (arena_init(&arena, (size_t)1 << 30) != ERR_OK) return -1;
    node_sample_init(&sample, &arena, &rng, 64);
    for (uint32_t t = 0; t < NODE_SAMPLE_TENANTS; t++) {
        const NodeModel *m = sample.tenants[t].model;
        alone[t] = (double)node_rest(m, m->rest_solo, 0, 0, 0);
        for (uint32_t k = 1; k < m->n_counts; k++)
            if ((double)node_rest(m, m->rest_solo, 0, k, 0) < alone[t])
                alone[t] = (double)node_rest(m, m->rest_solo, 0, k, 0);
    }
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

// Request i of tenant i % 3 has waited waited[i] times its isolated run time.
static uint32_t chosen(const double *waited, uint32_t n) {
    Rng              rng = {2};
    NodeSamplePolicy p = node_sample_policy(&sample, &arena, &policy_prema);
    NodeSampleView   at = node_sample_view(&sample, &arena, &rng, n, 0);
    NodeAction       plan[4];
    for (uint32_t i = 0; i < n; i++) {
        at.requests[i].tenant = i % NODE_SAMPLE_TENANTS;
        at.requests[i].next = 0;
        at.requests[i].computed = 0;
        at.requests[i].arrival = at.view.now - (TimeNs)(waited[i] * alone[i % NODE_SAMPLE_TENANTS]);
    }
    assert_int_equal(p.policy->decide(p.state, &at.view, plan, 4), 1);
    assert_int_equal(plan[0].verb, NODE_START);
    return plan[0].request;
}

static void test_shortest_of_the_candidates(void **state) {
    (void)state;
    assert_true(alone[0] < alone[1] && alone[1] < alone[2]);
    assert_int_equal(chosen((double[]){0.5, 0.7, 0.9}, 3), 0);  // all at least 1 token
    assert_int_equal(chosen((double[]){0.5, 1.9, 2.5}, 3),
                     2);  // 1.5, 2.9 and 3.5: the threshold is 3
    assert_int_equal(chosen((double[]){0.5, 2.1, 7.9}, 3), 1);  // 1.5, 3.1 and 8.9: still 3
    assert_int_equal(chosen((double[]){0.5, 2.1, 8.1}, 3), 2);  // 9.1: now 9
}

static void test_one_at_a_time(void **state) {
    (void)state;
    Rng              rng = {3};
    NodeSamplePolicy p = node_sample_policy(&sample, &arena, &policy_prema);
    NodeSampleView   at = node_sample_view(&sample, &arena, &rng, 5, 1);
    NodeAction       plan[4];
    assert_int_equal(at.view.n_running, 1);
    assert_int_equal(p.policy->decide(p.state, &at.view, plan, 4), 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shortest_of_the_candidates),
        cmocka_unit_test(test_one_at_a_time),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
