// slack: rejection, order and placement.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/node/common/demand_bound.h"
#include "policy/node/common/core_placement.h"
#include "policy/node/common/request_queue.h"
#include "tests/policy/node_sample.h"
#include "tests/runner.h"

static Arena      arena;
static NodeSample sample;

static int setup(void **state) {
    (void)state;
    Rng rng = {1};
    if (arena_init(&arena, (size_t)1 << 30) != ERR_OK) return -1;
    node_sample_init(&sample, &arena, &rng, 64);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

// The least time of the rest of a request over all versions and core counts.
static double quickest(const NodeRequest *r) {
    const NodeModel *m = sample.tenants[r->tenant].model;
    double           least = 1e30;
    for (uint32_t k = 0; k < m->n_counts; k++) {
        double ns = (double)node_rest(m, m->rest_best, r->next, k, 0);
        if (ns < least) least = ns;
    }
    return least;
}

static void test_refuses_only_the_hopeless(void **state) {
    (void)state;
    Rng              rng = {2};
    NodeSamplePolicy p = node_sample_policy(&sample, &arena, &policy_slack);
    size_t           mark = arena.used;
    uint32_t         refused = 0;
    for (uint32_t i = 0; i < 500; i++) {
        uint32_t       n_waiting = 1 + (uint32_t)rng_below(&rng, 60);
        NodeSampleView at = node_sample_view(&sample, &arena, &rng, n_waiting, i % 6);
        NodeAction     plan[128];
        uint32_t       n = p.policy->decide(p.state, &at.view, plan, 128);
        for (uint32_t a = 0; a < n; a++) {
            if (plan[a].verb != NODE_REJECT) continue;
            const NodeRequest *r = &at.requests[plan[a].request];
            assert_true(at.view.now + (TimeNs)quickest(r) > r->deadline);
            refused++;
        }
        arena_rewind(&arena, mark);
    }
    assert_true(refused > 0);
}

// Alone on an idle machine every feasible request starts.
static void test_starts_who_is_alone(void **state) {
    (void)state;
    Rng              rng = {3};
    NodeSamplePolicy p = node_sample_policy(&sample, &arena, &policy_slack);
    size_t           mark = arena.used;
    for (uint32_t i = 0; i < 300; i++) {
        NodeSampleView     at = node_sample_view(&sample, &arena, &rng, 1, 0);
        const NodeRequest *r = &at.requests[0];
        NodeAction         plan[4];
        uint32_t           n = p.policy->decide(p.state, &at.view, plan, 4);
        assert_int_equal(n, 1);
        if (at.view.now + (TimeNs)quickest(r) <= r->deadline)
            assert_int_equal(plan[0].verb, NODE_START);
        arena_rewind(&arena, mark);
    }
}

static void test_who_waited_gets_more(void **state) {
    (void)state;
    Rng              rng = {4};
    NodeSamplePolicy p = node_sample_policy(&sample, &arena, &policy_slack);
    NodeSampleView   at = node_sample_view(&sample, &arena, &rng, 2, 0);
    NodeAction       plan[4];
    for (uint32_t i = 0; i < 2; i++) {
        at.requests[i].tenant = 1;
        at.requests[i].next = 0;
        at.requests[i].arrival = at.view.now - (i == 0 ? sample.tenants[1].qos_ns / 2 : 0);
        at.requests[i].deadline = at.requests[i].arrival + sample.tenants[1].qos_ns;
    }
    at.view.pressure = 0;
    assert_int_equal(p.policy->decide(p.state, &at.view, plan, 4), 2);
    assert_int_equal(plan[0].request, 0);
    assert_true(plan[0].wanted > plan[1].wanted || cores_count(&plan[1].cores) > plan[1].wanted);
}

static uint32_t slices_used(const Cores *c) {
    uint32_t n = 0;
    for (uint32_t s = 0; s < 16; s++) {
        bool used = false;
        for (uint32_t i = 4 * s; i < 4 * s + 4; i++) used = used || cores_has(c, i);
        n += used;
    }
    return n;
}

static void test_places(void **state) {
    (void)state;
    Rng           rng = {5};
    CorePlacement place;
    Cores         none = {0};
    core_placement_init(&place, &sample.machine);
    Cores all = cores_all(64), eight = core_placement_slices(&place, &all, 8, &none);
    assert_int_equal(slices_used(&eight), 2);
    Cores again = core_placement_slices(&place, &all, 8, &eight);
    assert_memory_equal(&again, &eight, sizeof eight);
    Cores gap = cores_all(64);
    for (uint32_t c = 20; c < 23; c++) cores_remove(&gap, c);
    Cores one = core_placement_slices(&place, &gap, 1, &none);  // does not break a whole slice
    assert_true(cores_has(&one, 23));
    for (uint32_t i = 0; i < 2000; i++) {
        Cores free = {{rng_u64(&rng), 0, 0, 0}}, near = {{rng_u64(&rng), 0, 0, 0}};
        if (free.bits[0] == 0) continue;
        uint32_t n = 1 + (uint32_t)rng_below(&rng, cores_count(&free));
        Cores    got = core_placement_slices(&place, &free, n, &near),
              first = core_placement_first(&free, n);
        assert_true(cores_count(&got) == n && cores_is_subset(&got, &free));
        assert_true(cores_count(&first) == n && cores_is_subset(&first, &free));
        assert_true(slices_used(&got) <= slices_used(&first));
    }
}

static TimeNs by_deadline(const void *policy, const NodeRequest *r) {
    (void)policy;
    return r->deadline;
}

static void test_queue_order(void **state) {
    (void)state;
    Rng            rng = {6};
    NodeSampleView at = node_sample_view(&sample, &arena, &rng, 200, 0);
    RequestQueue   q;
    for (uint32_t i = 0; i < 200; i++) at.requests[i].deadline = (TimeNs)rng_below(&rng, 50);
    request_queue_fill(&q, &at.view, by_deadline, NULL);
    HeapItem last = heap_pop(&q.heap);
    while (!heap_empty(&q.heap)) {
        HeapItem x = heap_pop(&q.heap);
        assert_true(last.key < x.key || (last.key == x.key && last.order < x.order));
        last = x;
    }
}

// Reference: sums at every deadline.
static bool slow_allows(const DemandItem *x, uint32_t n, double cores, double bytes_ns) {
    for (uint32_t i = 0; i < n; i++) {
        double core_ns = 0, bytes = 0, ns = (double)x[i].deadline;
        if (x[i].deadline < x[n - 1].deadline) continue;
        for (uint32_t j = 0; j < n; j++)
            if (x[j].deadline <= x[i].deadline) core_ns += x[j].core_ns, bytes += x[j].bytes;
        if (core_ns > cores * ns || bytes > bytes_ns * ns) return false;
    }
    return true;
}

static void test_demand(void **state) {
    (void)state;
    Rng      rng = {7};
    uint32_t allowed = 0;
    for (uint32_t round = 0; round < 3000; round++) {
        static DemandBound d;
        DemandItem         x[12];
        uint32_t           n = 1 + (uint32_t)rng_below(&rng, 12);
        demand_bound_clear(&d, 8, 2);
        for (uint32_t i = 0; i < n; i++) {
            x[i] = (DemandItem){10 + (TimeNs)rng_below(&rng, 20), (double)rng_below(&rng, 40),
                                (double)rng_below(&rng, 10)};
            if (i + 1 < n) demand_bound_add(&d, x[i]);
        }
        bool is = demand_bound_admits(&d, 0, x[n - 1]);
        assert_true(is == slow_allows(x, n, 8, 2));
        allowed += is;
    }
    assert_true(allowed > 300 && allowed < 2700);
}

// Short requests: one core is enough, however many are free, while others wait.
static void test_short_requests_have_one_core(void **state) {
    (void)state;
    Rng        rng = {7};
    size_t     mark = arena.used;
    NodeTenant tenants[NODE_SAMPLE_TENANTS];
    NodeSample brief = sample;
    memcpy(tenants, sample.tenants, sizeof tenants);
    memcpy(brief.tenants, tenants, sizeof tenants);
    for (uint32_t i = 0; i < NODE_SAMPLE_TENANTS; i++) {
        const NodeModel *m = brief.tenants[i].model;
        brief.tenants[i].qos_ns = (TimeNs)(30 * (double)node_rest(m, m->rest_best, 0, 0, 9));
    }
    TimeNs most = 0;
    for (uint32_t i = 0; i < NODE_SAMPLE_TENANTS; i++)
        if (brief.tenants[i].qos_ns > most) most = brief.tenants[i].qos_ns;
    for (uint32_t i = 0; i < NODE_SAMPLE_TENANTS; i++) brief.tenants[i].qos_ns = most;
    brief.setup.tenants = brief.tenants;
    NodeSamplePolicy p = node_sample_policy(&brief, &arena, &policy_slack);
    NodeSampleView   at = node_sample_view(&brief, &arena, &rng, 40, 0);
    NodeAction       plan[64];
    at.view.pressure = 0;
    at.view.level = 0;
    for (uint32_t i = 0; i < at.view.n_requests; i++) {
        at.requests[i].next = 0;
        at.requests[i].deadline = at.view.now + most;
    }
    uint32_t n = p.policy->decide(p.state, &at.view, plan, 64);
    assert_true(n > 1);
    for (uint32_t i = 0; i + 1 < n; i++) {
        assert_int_equal(plan[i].verb, NODE_START);
        assert_int_equal(cores_count(&plan[i].cores), 1);
    }
    arena_rewind(&arena, mark);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refuses_only_the_hopeless),
        cmocka_unit_test(test_starts_who_is_alone),
        cmocka_unit_test(test_who_waited_gets_more),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_queue_order),
        cmocka_unit_test(test_demand),
        cmocka_unit_test(test_short_requests_have_one_core),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
