// Requests that end without outputs: full queues, expired deadlines, cancellation, rejection,
// blocks that never end.
#include <signal.h>
#include <sys/wait.h>

#include "tests/node/endless.h"
#include "tests/node/live_fixture.h"
#include "tests/runner.h"

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
    NodeLive    *live;
    NodeMachine  machine;
    FifoSettings rule;
    _Atomic bool closed;
} Bed;

static void bed_open(Bed *b, NodeLiveOptions o, LiveTenant t) {
    uint32_t number = 0;
    o.fixed = true;
    if (o.cores == 0) o.cores = 1;
    tenant_check(node_live_create(&b->live, &o));
    b->machine = test_machine(b->live);
    b->rule.closed = &b->closed;
    tenant_check(node_live_join(b->live, &t, &number));
    tenant_check(node_live_set_policy(b->live, &fifo_policy, &b->rule, &b->machine));
}

// Makes the engine call the policy again.
static void open_door(Bed *b) {
    atomic_store(&b->closed, false);
    node_live_cancel(b->live);
}

static void queues_have_a_bound(void **state) {
    (void)state;
    Bed         b = {.closed = true};
    TestRequest s[6] = {0};
    LiveTenant  t = live_tenant_of(&tiny);
    t.queue = 4;
    bed_open(&b, (NodeLiveOptions){0}, t);
    for (uint32_t i = 0; i < 6; i++) test_request_submit(b.live, &s[i], (EngineRequest){0});
    for (uint32_t i = 4; i < 6; i++) {
        assert_int_equal(test_request_wait(&s[i])->end, LIVE_FULL);
        assert_int_equal(s[i].answer.timing.waiting, 4);
    }
    open_door(&b);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(test_request_wait(&s[i])->end, LIVE_DONE);
    node_live_destroy(b.live);
}

// No event occurs in the engine meanwhile: its timer expires the request.
static void time_runs_out_by_itself(void **state) {
    (void)state;
    Bed         b = {.closed = true};
    TestRequest s[3] = {0};
    bed_open(&b, (NodeLiveOptions){0}, live_tenant_of(&tiny));
    test_request_submit(b.live, &s[0], (EngineRequest){.expire = 30000000});
    test_request_submit(b.live, &s[1], (EngineRequest){.expire = 5000000, .deadline = 1000000});
    test_request_submit(b.live, &s[2], (EngineRequest){0});
    for (uint32_t i = 0; i < 2; i++) {
        const EngineResult *a = test_request_wait(&s[i]);
        assert_int_equal(a->end, LIVE_EXPIRED);
        assert_int_equal(a->timing.queue_ns, a->finish - a->arrival);
        assert_true(a->timing.queue_ns >= (i == 0 ? 30000000 : 5000000));
        assert_true(a->timing.blocks == 0 && a->outputs == NULL);
    }
    assert_int_equal(s[1].answer.timing.late_cause, LIVE_OVERLOAD);
    assert_true(s[1].answer.finish < s[0].answer.finish);
    open_door(&b);
    assert_int_equal(test_request_wait(&s[2])->end, LIVE_DONE);
    node_live_destroy(b.live);
}

// The policy closes after its first block.
static void time_runs_out_between_blocks(void **state) {
    (void)state;
    Bed         b = {.rule = {.layers = 1, .once = true}};
    TestRequest s = {0};
    bed_open(&b, (NodeLiveOptions){0}, live_tenant_of(&tiny));
    test_request_submit(b.live, &s, (EngineRequest){.expire = 300000000});
    const EngineResult *a = test_request_wait(&s);
    assert_int_equal(a->end, LIVE_EXPIRED);
    assert_int_equal(a->timing.blocks, 1);
    assert_true(a->timing.paused_ns > 0);
    assert_true(a->timing.pauses <= 1);
    assert_int_equal(a->timing.queue_ns + a->timing.compute_ns + a->timing.paused_ns,
                     a->finish - a->arrival);
    node_live_destroy(b.live);
}

// The request expires while its first block runs: the second block does not start.
static void time_runs_out_within_a_block(void **state) {
    (void)state;
    Bed         b = {.rule = {.layers = 1, .pause_us = 30000}};
    TestRequest s = {0};
    bed_open(&b, (NodeLiveOptions){0}, live_tenant_of(&tiny));
    test_request_submit(b.live, &s, (EngineRequest){.expire = 10000000});
    const EngineResult *a = test_request_wait(&s);
    assert_int_equal(a->end, LIVE_EXPIRED);
    assert_true(a->timing.blocks <= 1);
    node_live_destroy(b.live);
}

static void owners_may_go(void **state) {
    (void)state;
    Bed         b = {.closed = true};
    TestRequest s[3] = {0};
    bed_open(&b, (NodeLiveOptions){0}, live_tenant_of(&tiny));
    for (uint32_t i = 0; i < 3; i++) test_request_submit(b.live, &s[i], (EngineRequest){0});
    atomic_store(&s[1].cancelled, true);
    node_live_cancel(b.live);
    assert_int_equal(test_request_wait(&s[1])->end, LIVE_CANCELLED);
    assert_int_equal(atomic_load(&s[0].answers) + atomic_load(&s[2].answers), 0);
    open_door(&b);
    assert_int_equal(test_request_wait(&s[0])->end, LIVE_DONE);
    assert_int_equal(test_request_wait(&s[2])->end, LIVE_DONE);
    node_live_destroy(b.live);
}

static void the_late_may_be_served(void **state) {
    (void)state;
    Bed         b = {.rule = {.rejects = 1}};
    TestRequest s[3] = {0};
    bed_open(&b, (NodeLiveOptions){0}, live_tenant_of(&tiny));
    test_request_submit(b.live, &s[0], (EngineRequest){.deadline = 1});
    assert_int_equal(test_request_wait(&s[0])->end, LIVE_REFUSED);
    atomic_store(&b.rule.rejects, 3);
    test_request_submit(b.live, &s[1],
                        (EngineRequest){.deadline = 1, .on_miss = ON_MISS_SERVE_LATE});
    assert_int_equal(test_request_wait(&s[1])->end, LIVE_DONE);
    assert_int_equal(s[1].answer.outcome, OUTCOME_LATE);
    node_live_destroy(b.live);
}

static void ranks_go_first(void **state) {
    (void)state;
    static const double   priority[] = {0, 3, 1, 2, 1};
    static const uint32_t position[] = {2, 4, 0, 3, 1};
    Bed                   b = {.closed = true};
    TestRequest           s[5] = {0};
    _Atomic uint32_t      order = 0;
    bed_open(&b, (NodeLiveOptions){0}, live_tenant_of(&tiny));
    for (uint32_t i = 0; i < 5; i++) {
        s[i].order = &order;
        test_request_submit(b.live, &s[i], (EngineRequest){.priority = priority[i]});
    }
    open_door(&b);
    for (uint32_t i = 0; i < 5; i++) assert_int_equal(test_request_wait(&s[i])->end, LIVE_DONE);
    for (uint32_t i = 0; i < 5; i++) assert_int_equal(s[i].position, position[i]);
    node_live_destroy(b.live);
}

// The policy never continues these requests: the engine does.
static void nobody_starves(void **state) {
    (void)state;
    Bed         b = {.closed = true};
    TestRequest s[3] = {0};
    bed_open(&b, (NodeLiveOptions){.starve_ns = 20000000, .budget_ns = 10000000},
             live_tenant_of(&tiny));
    for (uint32_t i = 0; i < 3; i++)
        test_request_submit(
            b.live, &s[i],
            (EngineRequest){.deadline = 1, .on_miss = i < 2 ? ON_MISS_SERVE_LATE : ON_MISS_REJECT});
    for (uint32_t i = 0; i < 2; i++) {
        s[i].of = &tiny;
        assert_int_equal(test_request_wait(&s[i])->end, LIVE_DONE);
        assert_true(s[i].answer.timing.queue_ns >= 20000000);
    }
    assert_int_equal(atomic_load(&s[2].answers), 0);
    open_door(&b);
    assert_int_equal(test_request_wait(&s[2])->end, LIVE_DONE);
    node_live_destroy(b.live);
}

// After a SIGSTOP, expired requests are not computed, and no block counts as endless.
static void time_runs_out_while_all_stands_still(void **state) {
    (void)state;
    Bed         b = {.closed = true};
    TestRequest s[2] = {0};
    bed_open(&b, (NodeLiveOptions){.watchdog_ns = 200000000}, live_tenant_of(&tiny));
    test_request_submit(b.live, &s[0], (EngineRequest){.expire = 100000000});
    test_request_submit(b.live, &s[1], (EngineRequest){0});
    pid_t self = getpid(), other = fork();
    assert_true(other >= 0);
    if (other == 0) {
        (void)kill(self, SIGSTOP);
        (void)usleep(400000);
        (void)kill(self, SIGCONT);
        _exit(0);
    }
    while (atomic_load(&s[0].answers) == 0) (void)usleep(1000);
    open_door(&b);
    assert_int_equal(test_request_wait(&s[0])->end, LIVE_EXPIRED);
    assert_int_equal(s[0].answer.timing.blocks, 0);
    assert_int_equal(test_request_wait(&s[1])->end, LIVE_DONE);
    assert_int_equal(waitpid(other, NULL, 0), other);
    node_live_destroy(b.live);
}

static void endless_blocks_are_stopped(void **state) {
    (void)state;
    Bed         b = {.rule = {0}};
    TestTenant  endless;
    TestRequest s[2] = {0}, other = {.of = &tiny};
    endless_build(&endless);
    assert_true(endless.program.done != NULL);
    bed_open(&b, (NodeLiveOptions){.watchdog_ns = 80000000}, live_tenant_of(&endless));
    LiveTenant t = live_tenant_of(&tiny);
    uint32_t   number = 0;
    tenant_check(node_live_join(b.live, &t, &number));
    tenant_check(node_live_set_policy(b.live, &fifo_policy, &b.rule, &b.machine));
    for (uint32_t i = 0; i < 2; i++) {
        test_request_submit(b.live, &s[i], (EngineRequest){0});
        assert_int_equal(test_request_wait(&s[i])->end, LIVE_STUCK);
        assert_non_null(strstr(s[i].answer.failed, "took too long"));
        assert_true(s[i].answer.timing.compute_ns >= 70000000);
    }
    test_request_submit(b.live, &other, (EngineRequest){.tenant = number});
    assert_int_equal(test_request_wait(&other)->end, LIVE_DONE);
    assert_true(other.right);
    node_live_leave(b.live, 0);
    node_live_destroy(b.live);
    tenant_finish(&endless);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_have_a_bound),
        cmocka_unit_test(time_runs_out_by_itself),
        cmocka_unit_test(time_runs_out_between_blocks),
        cmocka_unit_test(time_runs_out_within_a_block),
        cmocka_unit_test(owners_may_go),
        cmocka_unit_test(the_late_may_be_served),
        cmocka_unit_test(ranks_go_first),
        cmocka_unit_test(nobody_starves),
        cmocka_unit_test(time_runs_out_while_all_stands_still),
        cmocka_unit_test(endless_blocks_are_stopped),
    };
    return cmocka_run_group_tests(tests, build, finish);
}
