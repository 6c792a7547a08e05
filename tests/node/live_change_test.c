// Changes while the engine runs: the core budget, tenants, the policy; and requests that fail.
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/node/random_policy.h"
#include "tests/node/tenants.h"
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

typedef struct Answers {
    _Atomic uint32_t n, failed, met_or_late;
    char             why[512];
    Tensor           first;  // output of the last one; its numbers are copied
    int64_t          numbers[512];
} Answers;

static void note(void *self, const EngineResult *a) {
    Answers *all = self;
    if (a->failed != NULL) {
        (void)snprintf(all->why, sizeof all->why, "%s", a->failed);
        atomic_fetch_add(&all->failed, 1);
    }
    if (a->outputs != NULL) {
        all->first = a->outputs[0];
        memcpy(all->numbers, a->outputs[0].data,
               (size_t)tensor_count(&all->first) * dtype_size(all->first.dtype));
    }
    atomic_fetch_add(&all->met_or_late, a->outcome != OUTCOME_REJECTED);
    atomic_fetch_add(&all->n, 1);
}

static void ask(NodeLive *l, uint32_t tenant, const Tensor *inputs, Answers *all) {
    TimeNs t = clock_now(clock_monotonic());
    assert_true(node_live_submit(l, &(EngineRequest){.tenant = tenant,
                                                     .arrival = t,
                                                     .deadline = t + 1000000000,
                                                     .inputs = inputs,
                                                     .done = note,
                                                     .self = all}));
}

static void wait_for(const Answers *all, uint32_t n) {
    while (atomic_load(&all->n) < n) (void)usleep(100);
}

// Notes the free cores it sees; runs whole models on one core.
typedef struct Eyes {
    _Atomic uint32_t most_free;
} Eyes;

static size_t pointer_size(const NodeSetup *setup, const void *settings) {
    (void)setup, (void)settings;
    return sizeof(Eyes *);
}

static void keep_pointer(void *state, const NodeSetup *setup, const void *settings) {
    (void)setup;
    memcpy(state, &settings, sizeof settings);
}

static uint32_t look_and_start(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    static const uint8_t versions[RANDOM_LAYERS];
    Eyes                *eyes = *(Eyes **)state;
    Cores                free = v->free;
    uint32_t             n = 0;
    atomic_store(&eyes->most_free, v->n_free + v->n_running);
    for (uint32_t k = 0; k < v->n_waiting && n < max; k++) {
        const NodeRequest *r = &v->requests[v->waiting[k]];
        Cores              one = {0};
        uint32_t           core = cores_next(&free, 0);
        if (core == CORES_MAX) break;
        cores_add(&one, core);
        cores_remove(&free, core);
        out[n++] = (NodeAction){.verb = NODE_START,
                                .request = v->waiting[k],
                                .n_layers = v->setup->tenants[r->tenant].model->n_layers - r->next,
                                .cores = one,
                                .versions = versions};
    }
    return n;
}

static const NodePolicy looker = {
    .name = "looker", .state_size = pointer_size, .init = keep_pointer, .decide = look_and_start};

static void write_limit(const char *dir, const char *text) {
    char  path[512];
    FILE *f = NULL;
    (void)snprintf(path, sizeof path, "%s/cpu.max", dir);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void wait_for_cores(Eyes *eyes, NodeLive *l, uint32_t cores) {
    Answers all = {0};
    for (uint32_t i = 0; atomic_load(&eyes->most_free) != cores; i++) {
        assert_true(i < 5000);
        ask(l, 0, NULL, &all);
        wait_for(&all, i + 1);
        (void)usleep(1000);
    }
}

static void budget_is_followed(void **state) {
    (void)state;
    char                 dir[] = "/tmp/cotenant-live-XXXXXX", path[512];
    CgroupRoots          roots = {"/proc", dir, cgroup_roots.cpu};
    static const uint8_t slices[2];
    NodeMachine          machine = {.n_cores = 2, .n_slices = 1, .slice_of = slices};
    NodeTenant           tenant = {.model = &tiny.table, .name = "tiny", .qos_ns = 1000000};
    NodeSetup            setup = {&machine, &tenant, 1};
    NodeLive            *l = NULL;
    Eyes                 eyes = {0};
    Arena                a;
    Cpu                  cpu;
    assert_non_null(mkdtemp(dir));
    write_limit(dir, "max 100000\n");
    tenant_check(arena_init(&a, 1 << 22));
    tenant_check(cpu_read(&a, &roots, &cpu));
    uint32_t most = cpu_budget(&cpu, &roots).cores > 1 ? 2 : 1;
    tenant_check(node_live_create(
        &l, &(NodeLiveOptions){.cores = 2, .roots = &roots, .budget_ns = 2000000}));
    tenant_check(node_live_add(
        l, &(LiveTenant){.tenant = tenant, .program = &tiny.program, .inputs = tiny.inputs[0]}));
    tenant_check(node_live_use(l, &looker, &eyes, &setup));
    wait_for_cores(&eyes, l, most);
    write_limit(dir, "100000 100000\n");
    wait_for_cores(&eyes, l, 1);
    write_limit(dir, "max 100000\n");
    wait_for_cores(&eyes, l, most);
    node_live_destroy(l);
    arena_finish(&a);
    (void)snprintf(path, sizeof path, "%s/cpu.max", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

// A convolution, a gather by an input index, then an operator with a data-dependent shape.
static void build_troubled(TestTenant *t, bool rest) {
    NetBuilder n;
    *t = (TestTenant){0};
    tenant_check(model_init(&t->model, "troubled"));
    net_init(&n, t->model.graph, 1);
    uint32_t x = net_input(&n, "x", DT_F32, 4, (int64_t[]){1, 8, 6, 6});
    uint32_t k = net_input(&n, "k", DT_I64, 1, (int64_t[]){2});
    uint32_t y = net_conv(&n, "a", x, (NetConv){.out = 8, .kernel = 3, .pad = 1});
    y = net_gather(&n, "b", y, k, 2);
    y = net_activation(&n, NET_RELU, y);
    if (rest) {
        Tensor open = tensor_of(DT_I64, 2, (int64_t[]){4, DIM_UNKNOWN}, NULL);
        y = net_node(&n, (NetNode){OP_NonZero, "c", &y, 1, 0, NULL, false}, open, (NetStat){0, 0});
    }
    net_output(&n, y, "y");
    tenant_make(t, false);
}

static void requests_that_fail_are_told(void **state) {
    (void)state;
    static const uint8_t slices[2];
    NodeMachine          machine = {.n_cores = 2, .n_slices = 1, .slice_of = slices};
    RandomPolicySettings s = {.seed = 9};
    for (uint32_t rest = 0; rest < 2; rest++) {
        TestTenant t;
        NodeLive  *l = NULL;
        Answers    bad = {0}, good = {0};
        build_troubled(&t, rest == 1);
        assert_int_equal(t.program.done != NULL, rest == 1);
        NodeTenant tenant = {.model = &t.table, .name = "troubled", .qos_ns = 1000000};
        NodeSetup  setup = {&machine, &tenant, 1};
        tenant_check(node_live_create(&l, &(NodeLiveOptions){.cores = 2, .fixed = true}));
        tenant_check(node_live_add(
            l, &(LiveTenant){.tenant = tenant, .program = &t.program, .inputs = t.inputs[0]}));
        tenant_check(node_live_use(l, &random_policy, &s, &setup));
        ((int64_t *)t.inputs[1][1].data)[0] = 77;
        tenant_want_one(&t, 0);
        for (uint32_t i = 1; i <= 10; i++) {
            ask(l, 0, t.inputs[1], &bad);
            ask(l, 0, t.inputs[0], &good);
            wait_for(&bad, i);
            wait_for(&good, i);
            good.first.data = good.numbers;
            assert_true(tenant_close(&t.want[0][0], &good.first));
        }
        node_live_destroy(l);
        assert_int_equal(atomic_load(&bad.failed), 10);
        assert_non_null(strstr(bad.why, "77"));
        assert_int_equal(atomic_load(&good.met_or_late), 10);
        tenant_finish(&t);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(budget_is_followed),
        cmocka_unit_test(requests_that_fail_are_told),
    };
    return cmocka_run_group_tests(tests, build, finish);
}
