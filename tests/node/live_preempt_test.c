// Cores of long blocks: work for one core takes one, long layers are preempted within, blocks that
// cannot be are demoted, and requests that are over are stopped while they run.
#include <stdlib.h>

#include "tests/node/endless.h"
#include "tests/node/live_fixture.h"
#include "tests/runner.h"

enum { CORES = 2, ROWS = 4000, WIDTH = 512, ATTEMPTS = 20, LOOPS = 4 };

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

// Whole models, the youngest request first.
static uint32_t lifo_decide(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    static const uint8_t versions[RANDOM_LAYERS];
    const FifoSettings  *p = *(FifoSettings **)state;
    uint32_t             n = 0;
    Cores                free = v->free;
    for (uint32_t k = v->n_waiting; k-- > 0 && n < max && cores_count(&free) > 0;) {
        const NodeRequest *r = &v->requests[v->waiting[k]];
        out[n++] = (NodeAction){.verb = NODE_START,
                                .request = v->waiting[k],
                                .n_layers = v->setup->tenants[r->tenant].model->n_layers - r->next,
                                .wanted = p->cores,
                                .cores = fifo_take(&free, p->cores),
                                .versions = versions};
    }
    return n;
}

static const NodePolicy lifo_policy = {
    .name = "lifo", .state_size = fifo_size, .init = fifo_init, .decide = lifo_decide};

typedef struct Bed {
    NodeLive    *live;
    NodeMachine  machine;
    FifoSettings rule;
    uint32_t     first, second;  // tenants
} Bed;

static void bed_open(Bed *b, const NodePolicy *policy, uint32_t cores, const TestTenant *of) {
    NodeLiveOptions o = {.cores = cores, .fixed = true};
    LiveTenant      first = live_tenant_of(of), second = live_tenant_of(&tiny);
    *b = (Bed){.rule = {.cores = cores}};
    tenant_check(node_live_create(&b->live, &o));
    b->machine = test_machine(b->live);
    tenant_check(node_live_join(b->live, &first, &b->first));
    tenant_check(node_live_join(b->live, &second, &b->second));
    tenant_check(node_live_set_policy(b->live, policy, &b->rule, &b->machine));
}

static LiveStatus bed_status(const Bed *b, Arena *a) {
    LiveStatus s;
    tenant_check(node_live_status(b->live, a, &s));
    return s;
}

// Waits until so many requests run.
static void bed_wait_running(const Bed *b, uint32_t n) {
    Arena a;
    tenant_check(arena_init(&a, 1 << 20));
    for (uint32_t i = 0; bed_status(b, &a).running < n; i++) {
        if (i > 100000) fail_msg("%u requests do not run", n);
        (void)usleep(100);
        arena_rewind(&a, 0);
    }
    arena_finish(&a);
}

static LiveTenantStatus bed_tenant(const Bed *b, uint32_t tenant) {
    Arena a;
    tenant_check(arena_init(&a, 1 << 20));
    LiveTenantStatus t = bed_status(b, &a).tenants[tenant];
    arena_finish(&a);
    return t;
}

static void net_begin(TestTenant *t, NetBuilder *n, const char *name) {
    *t = (TestTenant){0};
    tenant_check(model_init(&t->model, name));
    net_init(n, t->model.graph, 1);
}

// Three layers with one task each.
static void build_serial(TestTenant *t) {
    NetBuilder n;
    net_begin(t, &n, "serial");
    uint32_t x = net_input(&n, "x", DT_F32, 2, (int64_t[]){1, 4});
    x = net_softmax(&n, net_activation(&n, NET_TANH, x));
    net_output(&n, net_activation(&n, NET_TANH, x), "y");
    tenant_make(t, false);
    for (uint32_t i = 0; i < t->program.n_steps; i++) assert_true(t->program.steps[i].serial);
}

static void serial_layers_take_one_core(void **state) {
    (void)state;
    Bed         b;
    TestTenant  serial;
    TestRequest s = {0}, other = {.of = &tiny};
    build_serial(&serial);
    bed_open(&b, &fifo_policy, CORES, &serial);
    test_request_submit(b.live, &s, (EngineRequest){.tenant = b.first});
    assert_int_equal(test_request_wait(&s)->end, LIVE_DONE);
    assert_int_equal(s.answer.timing.cores_most, 1);
    test_request_submit(b.live, &other, (EngineRequest){.tenant = b.second});
    assert_int_equal(test_request_wait(&other)->end, LIVE_DONE);
    assert_int_equal(other.answer.timing.cores_most, CORES);
    assert_true(other.right);
    node_live_destroy(b.live);
    tenant_finish(&serial);
}

// A convolution, then NonZero: an interpreted tail.
static void build_tailed(TestTenant *t) {
    NetBuilder n;
    net_begin(t, &n, "tailed");
    uint32_t x = net_input(&n, "x", DT_F32, 4, (int64_t[]){1, 8, 20, 20});
    x = net_conv(&n, "a", x, (NetConv){.out = 32, .kernel = 3, .pad = 1});
    Graph    *g = t->model.graph;
    uint32_t *io = arena_new(g->arena, uint32_t, 2);
    io[0] = x;
    io[1] = graph_value(g, "y");
    (void)graph_node(g, (Node){.name = "where",
                               .op = OP_NonZero,
                               .version = 13,
                               .n_in = 1,
                               .n_out = 1,
                               .in = io,
                               .out = io + 1});
    graph_output(g, io[1]);
    tenant_check(graph_sort(g));
    tenant_make(t, false);
    tenant_want_one(t, 0);
    assert_true(t->program.done != NULL);
}

static void tails_are_blocks_on_one_core(void **state) {
    (void)state;
    Bed         b;
    TestTenant  tailed;
    TestRequest s = {0};
    build_tailed(&tailed);
    s.of = &tailed;
    bed_open(&b, &fifo_policy, CORES, &tailed);
    test_request_submit(b.live, &s, (EngineRequest){.tenant = b.first});
    assert_int_equal(test_request_wait(&s)->end, LIVE_DONE);
    assert_true(s.right);
    assert_int_equal(s.answer.timing.cores_most, CORES);
    assert_int_equal(s.answer.timing.cores_least, 1);
    assert_int_equal(s.answer.timing.blocks, 2);
    node_live_destroy(b.live);
    tenant_finish(&tailed);
}

// One product of many rows, and a table that says how long it takes.
static void build_long(TestTenant *t) {
    NetBuilder n;
    net_begin(t, &n, "long");
    uint32_t x = net_input(&n, "x", DT_F32, 2, (int64_t[]){ROWS, WIDTH});
    net_output(&n, net_linear(&n, "a", x, WIDTH), "y");
    tenant_make(t, false);
    tenant_want_one(t, 0);
    float *times =
        arena_new(&t->model.arena, float, (size_t)t->program.n_steps *NODE_VERSIONS *NODE_LEVELS);
    for (uint32_t i = 0; i < t->program.n_steps * NODE_VERSIONS * NODE_LEVELS; i++)
        times[i] = 40000000;
    t->table.times = times;
}

// The younger request starts within the long layer of the older one, and both are right.
static void long_layers_are_preempted(const NodePolicy *policy, uint32_t cores) {
    Bed        b;
    TestTenant slow;
    uint32_t   preempted = 0;
    build_long(&slow);
    bed_open(&b, policy, cores, &slow);
    for (uint32_t i = 0; i < ATTEMPTS && preempted == 0; i++) {
        _Atomic uint32_t order = 0;
        TestRequest      s = {.of = &slow, .order = &order}, other = {.of = &tiny, .order = &order};
        test_request_submit(b.live, &s, (EngineRequest){.tenant = b.first});
        test_request_submit(b.live, &other, (EngineRequest){.tenant = b.second});
        assert_int_equal(test_request_wait(&other)->end, LIVE_DONE);
        assert_int_equal(test_request_wait(&s)->end, LIVE_DONE);
        assert_true(s.right && other.right);
        if (s.answer.timing.blocks > 1) preempted++;
        if (s.answer.timing.blocks > 1) assert_true(other.position < s.position);
    }
    assert_true(preempted > 0);
    assert_true(bed_tenant(&b, b.first).yields > 0);
    node_live_destroy(b.live);
    tenant_finish(&slow);
}

static void long_layers_are_preempted_on_one_core(void **state) {
    (void)state;
    long_layers_are_preempted(&lifo_policy, 1);
}

static void long_layers_are_preempted_on_two_cores(void **state) {
    (void)state;
    long_layers_are_preempted(&lifo_policy, CORES);
}

// Endless blocks on every core, more than there are cores: others are served, whatever the policy.
static void endless_blocks_lose_their_cores(const NodePolicy *policy) {
    Bed         b;
    TestTenant  endless;
    TestRequest s[LOOPS] = {0};
    endless_build(&endless);
    bed_open(&b, policy, CORES, &endless);
    for (uint32_t i = 0; i < LOOPS; i++)
        test_request_submit(b.live, &s[i], (EngineRequest){.tenant = b.first});
    bed_wait_running(&b, CORES);
    for (uint32_t i = 0; i < 3; i++) {
        TestRequest other = {.of = &tiny};
        test_request_submit(b.live, &other, (EngineRequest){.tenant = b.second});
        assert_int_equal(test_request_wait(&other)->end, LIVE_DONE);
        assert_true(other.right);
    }
    for (uint32_t i = 0; i < LOOPS; i++) assert_int_equal(atomic_load(&s[i].answers), 0);
    assert_true(bed_tenant(&b, b.first).demotions > 0);
    for (uint32_t i = 0; i < LOOPS; i++) atomic_store(&s[i].cancelled, true);
    node_live_cancel(b.live);
    for (uint32_t i = 0; i < LOOPS; i++)
        assert_int_equal(test_request_wait(&s[i])->end, LIVE_CANCELLED);
    node_live_leave(b.live, b.first);
    node_live_destroy(b.live);
    tenant_finish(&endless);
}

static void endless_blocks_lose_their_cores_first_in(void **state) {
    (void)state;
    endless_blocks_lose_their_cores(&fifo_policy);
}

static void endless_blocks_lose_their_cores_last_in(void **state) {
    (void)state;
    endless_blocks_lose_their_cores(&lifo_policy);
}

static void running_requests_are_stopped(void **state) {
    (void)state;
    Bed         b;
    TestTenant  endless;
    TestRequest late = {0}, gone = {0};
    endless_build(&endless);
    bed_open(&b, &fifo_policy, 1, &endless);
    test_request_submit(b.live, &late, (EngineRequest){.tenant = b.first, .expire = 30000000});
    assert_int_equal(test_request_wait(&late)->end, LIVE_EXPIRED);
    assert_int_equal(late.answer.timing.blocks, 1);
    test_request_submit(b.live, &gone, (EngineRequest){.tenant = b.first});
    bed_wait_running(&b, 1);
    atomic_store(&gone.cancelled, true);
    node_live_cancel(b.live);
    assert_int_equal(test_request_wait(&gone)->end, LIVE_CANCELLED);
    node_live_destroy(b.live);
    tenant_finish(&endless);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serial_layers_take_one_core),
        cmocka_unit_test(tails_are_blocks_on_one_core),
        cmocka_unit_test(long_layers_are_preempted_on_one_core),
        cmocka_unit_test(long_layers_are_preempted_on_two_cores),
        cmocka_unit_test(endless_blocks_lose_their_cores_first_in),
        cmocka_unit_test(endless_blocks_lose_their_cores_last_in),
        cmocka_unit_test(running_requests_are_stopped),
    };
    return cmocka_run_group_tests(tests, build, finish);
}
