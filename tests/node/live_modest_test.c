// Tenants that use few cores go first where requests are admitted.
#include "node/live/live_int.h"
#include "tests/node/endless.h"
#include "tests/node/live_fixture.h"
#include "tests/runner.h"

static void use_decays(void **state) {
    (void)state;
    CoreUse u = {0};
    core_use_add(&u, 100, 1000);
    core_use_add(&u, 100, 500);  // clocks of two threads
    assert_true(core_use_ns(&u, 1000) == 200);
    double later = core_use_ns(&u, 1000 + INT64_C(1000000000));
    assert_true(later > 73 && later < 74);
    assert_true(core_use_ns(&u, INT64_C(1000000000000)) < 1e-9);
}

typedef struct Bed {
    NodeLive    *live;
    NodeMachine  machine;
    FifoSettings rule;
    TestTenant   endless, quick;
    uint32_t     busy, modest;  // tenants
} Bed;

static void bed_open(Bed *b, bool admit) {
    NodeLiveOptions o = {
        .cores = 1, .fixed = true, .admit = admit, .watchdog_ns = INT64_C(3600000000000)};
    *b = (Bed){.rule = {.cores = 1}};
    endless_build(&b->endless);
    tenant_build(&b->quick, NULL, 1);
    LiveTenant busy = live_tenant_of(&b->endless), modest = live_tenant_of(&b->quick);
    tenant_check(node_live_create(&b->live, &o));
    b->machine = test_machine(b->live);
    tenant_check(node_live_join(b->live, &busy, &b->busy));
    tenant_check(node_live_join(b->live, &modest, &b->modest));
    tenant_check(node_live_set_policy(b->live, &fifo_policy, &b->rule, &b->machine));
}

// Cores that were taken from the busy tenant's request, which came first, until the other's was
// answered.
static uint64_t taken_back(bool admit, double modest_use) {
    Bed         b;
    TestRequest first = {0}, second = {0};
    bed_open(&b, admit);
    sched_lock(b.live);
    b.live->models[b.busy].use = (CoreUse){1e9, test_now()};
    b.live->models[b.modest].use = (CoreUse){modest_use, test_now()};
    test_request_submit(b.live, &first, (EngineRequest){.tenant = b.busy});
    test_request_submit(b.live, &second, (EngineRequest){.tenant = b.modest});
    sched_unlock(b.live);
    assert_int_equal(test_request_wait(&second)->end, LIVE_DONE);
    sched_lock(b.live);
    uint64_t n = b.live->models[b.busy].yields + b.live->models[b.busy].demotions;
    sched_unlock(b.live);
    atomic_store(&first.cancelled, true);
    node_live_cancel(b.live);
    assert_int_equal(test_request_wait(&first)->end, LIVE_CANCELLED);
    node_live_destroy(b.live);
    tenant_finish(&b.endless);
    tenant_finish(&b.quick);
    return n;
}

static void modest_tenants_go_first(void **state) {
    (void)state;
    assert_int_equal(taken_back(true, 0), 0);
    assert_int_equal(taken_back(true, 1e8), 0);
}

static void others_go_as_the_policy_says(void **state) {
    (void)state;
    assert_true(taken_back(true, 5e8) > 0);
    assert_true(taken_back(false, 0) > 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(use_decays),
        cmocka_unit_test(modest_tenants_go_first),
        cmocka_unit_test(others_go_as_the_policy_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
