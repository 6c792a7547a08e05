// ON_MISS_DEGRADE: a request that has missed its deadline, or cannot be promised it, is computed
// behind all others, never rejected for being late, and marked. No test depends on how fast the
// machine is: requests wait behind a closed policy until all of them are there.
#include <stdlib.h>

#include "tests/node/live_fixture.h"
#include "tests/runner.h"

enum { QUEUE = 8 };
static const TimeNs far_ns = INT64_C(4000000000000);

static TestTenant tiny;

static int build(void **state) {
    (void)state;
    tenant_build(&tiny, NULL, 1);
    return 0;
}

static int finish(void **state) {
    (void)state;
    tenant_finish(&tiny);
    return 0;
}

typedef struct Bed {
    NodeLive        *live;
    NodeMachine      machine;
    FifoSettings     rule;
    _Atomic bool     closed;
    _Atomic uint32_t order;
    TestRequest      s[QUEUE];
    NodeModel        heavy;
    float           *rest;
} Bed;

static void bed_open(Bed *b, NodeLiveOptions o, LiveTenant t) {
    uint32_t number = 0;
    o.fixed = true;
    o.cores = 1;
    o.starve_ns = far_ns;  // no request gets a core for having waited long
    tenant_check(node_live_create(&b->live, &o));
    b->machine = test_machine(b->live);
    b->rule.closed = &b->closed;
    atomic_store(&b->closed, true);
    for (uint32_t i = 0; i < QUEUE; i++) b->s[i].order = &b->order;
    tenant_check(node_live_join(b->live, &t, &number));
    tenant_check(node_live_set_policy(b->live, &fifo_policy, &b->rule, &b->machine));
}

// The policy starts requests from now on; all n are computed.
static void bed_run(Bed *b, uint32_t n) {
    atomic_store(&b->closed, false);
    node_live_cancel(b->live);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(test_request_wait(&b->s[i])->end, LIVE_DONE);
        assert_true(b->s[i].right);
    }
}

// Of three that came late, those that may be served late keep their turn; the degraded one loses
// it.
static void missed_on_arrival(void **state) {
    (void)state;
    static const uint32_t position[] = {3, 0, 1, 2};
    Bed                   b = {0};
    bed_open(&b, (NodeLiveOptions){0}, live_tenant_of(&tiny));
    test_request_submit(b.live, &b.s[0],
                        (EngineRequest){.deadline = 1, .on_miss = ON_MISS_DEGRADE});
    test_request_submit(b.live, &b.s[1],
                        (EngineRequest){.deadline = 1, .on_miss = ON_MISS_SERVE_LATE});
    test_request_submit(b.live, &b.s[2],
                        (EngineRequest){.deadline = far_ns, .on_miss = ON_MISS_DEGRADE});
    test_request_submit(b.live, &b.s[3], (EngineRequest){.deadline = far_ns});
    bed_run(&b, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(b.s[i].position, position[i]);
        assert_int_equal(b.s[i].answer.timing.degraded, i == 0);
    }
    assert_int_equal(b.s[0].answer.outcome, OUTCOME_LATE);
    assert_int_equal(b.s[2].answer.outcome, OUTCOME_MET);
    node_live_destroy(b.live);
}

// A higher priority within the tenant does not bring a degraded request forward again.
static void priority_does_not_help(void **state) {
    (void)state;
    Bed b = {0};
    bed_open(&b, (NodeLiveOptions){0}, live_tenant_of(&tiny));
    test_request_submit(b.live, &b.s[0],
                        (EngineRequest){.deadline = 1, .on_miss = ON_MISS_DEGRADE, .priority = 1});
    test_request_submit(b.live, &b.s[1], (EngineRequest){.deadline = far_ns, .priority = 2});
    bed_run(&b, 2);
    assert_int_equal(b.s[0].position, 1);
    assert_int_equal(b.s[1].position, 0);
    node_live_destroy(b.live);
}

// The deadline passes in the queue, and no policy says so.
static void missed_while_waiting(void **state) {
    (void)state;
    Bed b = {0};
    bed_open(&b, (NodeLiveOptions){0}, live_tenant_of(&tiny));
    test_request_submit(b.live, &b.s[0],
                        (EngineRequest){.deadline = 20000000, .on_miss = ON_MISS_DEGRADE});
    test_request_submit(b.live, &b.s[1],
                        (EngineRequest){.deadline = far_ns, .on_miss = ON_MISS_DEGRADE});
    for (TimeNs until = test_now() + 20000000; test_now() <= until;) (void)usleep(1000);
    bed_run(&b, 2);
    assert_int_equal(b.s[0].position, 1);
    assert_int_equal(b.s[1].position, 0);
    assert_true(b.s[0].answer.timing.degraded && !b.s[1].answer.timing.degraded);
    node_live_destroy(b.live);
}

// What a policy rejects as infeasible is degraded, too, in time or not.
static void rejected_by_the_policy(void **state) {
    (void)state;
    Bed b = {.rule = {.rejects = 1}};
    bed_open(&b, (NodeLiveOptions){0}, live_tenant_of(&tiny));
    test_request_submit(b.live, &b.s[0],
                        (EngineRequest){.deadline = far_ns, .on_miss = ON_MISS_DEGRADE});
    test_request_submit(b.live, &b.s[1],
                        (EngineRequest){.deadline = far_ns, .on_miss = ON_MISS_DEGRADE});
    bed_run(&b, 2);
    assert_int_equal(b.s[0].position, 1);
    assert_true(b.s[0].answer.timing.degraded && !b.s[1].answer.timing.degraded);
    assert_int_equal(b.s[0].answer.outcome, OUTCOME_MET);
    node_live_destroy(b.live);
}

// A tenant with request times so long that admission promises only a few of them
// their deadlines. Shares are planned anew when a tenant joins, so that no time has to pass.
static void fill_queue(Bed *b, OnMiss on_miss) {
    LiveTenant t = live_tenant_of(&tiny), idle = t;
    uint32_t   other = 0;
    b->heavy = tiny.table;
    b->rest = calloc(((size_t)b->heavy.n_layers + 1) * NODE_LEVELS, sizeof *b->rest);
    assert_non_null(b->rest);
    b->rest[0] = 1e15F;
    b->heavy.rest_best = b->rest;
    t.tenant.model = &b->heavy;
    t.queue = QUEUE;
    bed_open(b, (NodeLiveOptions){.admit = true}, t);
    test_request_submit(b->live, &b->s[0], (EngineRequest){.on_miss = on_miss});
    tenant_check(node_live_join(b->live, &idle, &other));
    for (uint32_t i = 1; i < QUEUE; i++)
        test_request_submit(b->live, &b->s[i], (EngineRequest){.on_miss = on_miss});
}

// Beyond a quarter of the queue, what cannot be in time is rejected under serve_late; under degrade
// it never is.
static void never_rejected_for_being_late(void **state) {
    (void)state;
    Bed      late = {0}, degrade = {0};
    uint32_t rejected = 0, degraded = 0;
    fill_queue(&late, ON_MISS_SERVE_LATE);
    atomic_store(&late.closed, false);
    node_live_cancel(late.live);
    for (uint32_t i = 0; i < QUEUE; i++)
        rejected += test_request_wait(&late.s[i])->end == LIVE_REFUSED;
    assert_true(rejected > 0);
    node_live_destroy(late.live);
    fill_queue(&degrade, ON_MISS_DEGRADE);
    bed_run(&degrade, QUEUE);
    for (uint32_t i = 0; i < QUEUE; i++) degraded += degrade.s[i].answer.timing.degraded;
    assert_true(degraded > QUEUE / 4);
    node_live_destroy(degrade.live);
    free(late.rest);
    free(degrade.rest);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missed_on_arrival),
        cmocka_unit_test(priority_does_not_help),
        cmocka_unit_test(missed_while_waiting),
        cmocka_unit_test(rejected_by_the_policy),
        cmocka_unit_test(never_rejected_for_being_late),
    };
    return cmocka_run_group_tests(tests, build, finish);
}
