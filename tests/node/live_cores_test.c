// Reserved cores and core limits of tenants hold under any policy.
#include <pthread.h>

#include "tests/node/live_fixture.h"
#include "tests/runner.h"

enum { TENANTS = 3, CORES = 4, EACH = 40 };

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

// Cores in use by tenant, as a policy sees them.
typedef struct Seen {
    _Atomic uint32_t most[TENANTS];  // at once
    _Atomic uint32_t broken;         // times that fewer cores were free than tenant 0 has reserved
    uint32_t         kept;
    uint32_t         cores;  // asked for by every block
} Seen;

static void look(Seen *s, const NodeView *v) {
    uint32_t cores[TENANTS] = {0}, all = 0;
    for (uint32_t k = 0; k < v->n_running; k++) {
        const NodeRequest *r = &v->requests[v->running[k]];
        cores[r->tenant] += cores_count(&r->cores);
        all += cores_count(&r->cores);
    }
    for (uint32_t i = 0; i < TENANTS; i++)
        if (cores[i] > atomic_load(&s->most[i])) atomic_store(&s->most[i], cores[i]);
    bool many = v->n_running > 1 || all > CORES - s->kept;
    if (many && all - cores[0] > CORES - s->kept) atomic_fetch_add(&s->broken, 1);
}

static uint32_t greedy(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    static const uint8_t versions[RANDOM_LAYERS];
    Seen                *s = *(Seen **)state;
    Cores                free = v->free;
    uint32_t             n = 0;
    look(s, v);
    for (uint32_t k = 0; k < v->n_running && n < max && cores_count(&free) > 0; k++)
        out[n++] =
            (NodeAction){.verb = NODE_GROW, .request = v->running[k], .cores = fifo_take(&free, 1)};
    for (uint32_t k = 0; k < v->n_waiting && n < max && cores_count(&free) > 0; k++)
        out[n++] = (NodeAction){.verb = NODE_START,
                                .request = v->waiting[k],
                                .n_layers = 1,
                                .wanted = s->cores,
                                .cores = fifo_take(&free, s->cores),
                                .versions = versions};
    return n;
}

static const NodePolicy taker = {
    .name = "taker", .state_size = fifo_size, .init = fifo_init, .decide = greedy};

static void run(Seen *seen, const LiveTenant *of, uint32_t cores) {
    static TestRequest s[TENANTS * EACH];
    NodeLive          *l = NULL;
    tenant_check(node_live_create(&l, &(NodeLiveOptions){.cores = cores, .fixed = true}));
    NodeMachine m = test_machine(l);
    for (uint32_t i = 0; i < TENANTS; i++) {
        uint32_t number = 0;
        tenant_check(node_live_join(l, &of[i], &number));
    }
    tenant_check(node_live_set_policy(l, &taker, seen, &m));
    memset(s, 0, sizeof s);
    for (uint32_t i = 0; i < TENANTS * EACH; i++) {
        s[i].of = &tiny;
        test_request_submit(l, &s[i], (EngineRequest){.tenant = i % TENANTS});
    }
    for (uint32_t i = 0; i < TENANTS * EACH; i++) {
        assert_int_equal(test_request_wait(&s[i])->end, LIVE_DONE);
        assert_true(s[i].right);
        uint32_t most = of[i % TENANTS].max_cores;
        if (most > 0) assert_true(s[i].answer.timing.cores_most <= most);
    }
    node_live_destroy(l);
}

static void nobody_has_more_than_allowed(void **state) {
    (void)state;
    for (uint32_t cores = 1; cores <= 3; cores++) {
        Seen       seen = {.cores = cores};
        LiveTenant of[TENANTS];
        for (uint32_t i = 0; i < TENANTS; i++) of[i] = live_tenant_of(&tiny);
        of[1].max_cores = 1;
        of[2].max_cores = 2;
        run(&seen, of, CORES);
        assert_true(atomic_load(&seen.most[1]) <= 1);
        assert_true(atomic_load(&seen.most[2]) <= 2);
    }
}

static void what_is_kept_is_left(void **state) {
    (void)state;
    Seen       seen = {.cores = 2, .kept = 2};
    LiveTenant of[TENANTS];
    for (uint32_t i = 0; i < TENANTS; i++) of[i] = live_tenant_of(&tiny);
    of[0].min_cores = 2;
    run(&seen, of, CORES);
    assert_int_equal(atomic_load(&seen.broken), 0);
}

// More cores are reserved than exist: tenants still run, one after the other.
static void keeping_everything_stops_nobody(void **state) {
    (void)state;
    Seen       seen = {.cores = 1};
    LiveTenant of[TENANTS];
    for (uint32_t i = 0; i < TENANTS; i++) of[i] = live_tenant_of(&tiny);
    of[0].min_cores = 1;
    of[1].min_cores = 3;
    run(&seen, of, 1);
    run(&seen, of, 2);
}

// A request that is measured has the cores it names, whatever the policy asks for.
static void measured_requests_have_their_cores(void **state) {
    (void)state;
    Seen        seen = {.cores = 3};
    NodeLive   *l = NULL;
    LiveTenant  t = live_tenant_of(&tiny);
    uint32_t    number = 0;
    TestRequest s;
    tenant_check(node_live_create(&l, &(NodeLiveOptions){.cores = CORES, .fixed = true}));
    NodeMachine m = test_machine(l);
    tenant_check(node_live_join(l, &t, &number));
    tenant_check(node_live_set_policy(l, &taker, &seen, &m));
    memset(&s, 0, sizeof s);
    s.of = &tiny;
    test_request_submit(l, &s, (EngineRequest){.tenant = number, .cores = 1});
    assert_int_equal(test_request_wait(&s)->end, LIVE_DONE);
    assert_true(s.right);
    assert_int_equal(s.answer.timing.cores_least, 1);
    assert_int_equal(s.answer.timing.cores_most, 1);
    node_live_destroy(l);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_has_more_than_allowed),
        cmocka_unit_test(what_is_kept_is_left),
        cmocka_unit_test(keeping_everything_stops_nobody),
        cmocka_unit_test(measured_requests_have_their_cores),
    };
    return cmocka_run_group_tests(tests, build, finish);
}
