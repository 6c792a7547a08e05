// A network is prepared in the background while another is served, then joins the engine.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/live/background.h"
#include "node/prepared_model.h"
#include "tests/runner.h"

static Host          host;
static PreparedModel first, second;

static void check(Err e) {
    if (e != ERR_OK) fail_msg("%s", err_why());
}

static int open_host(void **state) {
    (void)state;
    check(host_open(&host, 2, "/dev/null/none"));
    return 0;
}

static int close_host(void **state) {
    (void)state;
    host_close(&host);
    return 0;
}

static void check_table(const PreparedModel *s) {
    assert_int_equal(s->table.n_layers, s->program.n_steps);
    for (uint32_t l = 0; l < s->table.n_layers; l++)
        for (uint32_t k = 0; k < s->table.n_counts; k++)
            for (uint32_t level = 0; level < NODE_LEVELS; level++)
                assert_true(node_time(&s->table, l, 0, k, level) > 0);
    assert_true(s->solo_ns[0] > 0 && s->solo_ns[1] > 0);
}

static uint32_t start_all(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    uint32_t n = 0;
    Cores    free = v->free;
    (void)state;
    for (uint32_t k = 0; k < v->n_waiting && n < max; k++) {
        const NodeRequest *r = &v->requests[v->waiting[k]];
        const NodeModel   *m = v->setup->tenants[r->tenant].model;
        uint32_t           core = cores_next(&free, 0);
        Cores              one = {0};
        if (core == CORES_MAX) break;
        cores_add(&one, core);
        cores_remove(&free, core);
        out[n++] = (NodeAction){.verb = NODE_START,
                                .request = v->waiting[k],
                                .n_layers = m->n_layers - r->next,
                                .cores = one,
                                .versions = node_best_versions(m, 0, v->level)};
    }
    return n;
}

static const NodePolicy policy = {.name = "all", .decide = start_all};

static void count(void *self, const EngineResult *a) {
    assert_true(a->outcome != OUTCOME_REJECTED && a->outputs != NULL);
    atomic_fetch_add((_Atomic uint32_t *)self, 1);
}

static void ask(NodeLive *l, uint32_t tenant, _Atomic uint32_t *answers) {
    TimeNs   t = clock_now(clock_monotonic());
    uint32_t before = atomic_load(answers);
    assert_true(node_live_submit(l, &(EngineRequest){.tenant = tenant,
                                                     .arrival = t,
                                                     .deadline = t + 1000000000,
                                                     .done = count,
                                                     .self = answers}));
    while (atomic_load(answers) == before) (void)usleep(50);
}

static Err load_second(void *ctx) {
    (void)ctx;
    return prepared_model_load(&second, "lstm_kws", &host,
                               &(PrepareOptions){.background = true, .runs = 4});
}

static void joins_while_others_run(void **state) {
    (void)state;
    NodeLive        *l = NULL;
    Background      *loader = NULL;
    _Atomic uint32_t answers = 0;
    NodeTenant       tenants[2];
    check(prepared_model_load(&first, "lstm_kws", &host, &(PrepareOptions){.runs = 4}));
    check_table(&first);
    host_quiet(&host);
    LiveTenant a = prepared_model_tenant(&first, "first", 1000000, 1);
    check(node_live_create(&l, &(NodeLiveOptions){.cores = 2, .fixed = true}));
    check(node_live_add(l, &a));
    tenants[0] = a.tenant;
    check(node_live_use(l, &policy, NULL, &(NodeSetup){&host.machine, tenants, 1}));
    check(background_start(&loader, 0.9, load_second, NULL));
    while (!background_done(loader)) ask(l, 0, &answers);
    check(background_join(loader));
    check_table(&second);
    LiveTenant b = prepared_model_tenant(&second, "second", 1000000, 1);
    check(node_live_add(l, &b));
    tenants[1] = b.tenant;
    check(node_live_use(l, &policy, NULL, &(NodeSetup){&host.machine, tenants, 2}));
    for (uint32_t i = 0; i < 20; i++) ask(l, i % 2, &answers);
    node_live_destroy(l);
    prepared_model_finish(&first);
    prepared_model_finish(&second);
}

static void errors_name_the_network(void **state) {
    (void)state;
    PreparedModel s;
    assert_int_not_equal(
        prepared_model_load(&s, "no_such_network", &host, &(PrepareOptions){.background = true}),
        ERR_OK);
    assert_non_null(strstr(err_why(), "no_such_network"));
}

// Measured runs decide how many cores win: differences count, constant costs do not.
static void runs_correct_the_table(void **state) {
    (void)state;
    PreparedModel s;
    check(prepared_model_load(&s, "lstm_kws", &host,
                              &(PrepareOptions){.runs = 1, .background = true}));
    double one = s.solo_ns[0];
    prepared_model_correct(&s, (double[]){one + 5000, 0});  // nothing known of two cores
    assert_true(s.solo_ns[0] == one);
    prepared_model_correct(&s, (double[]){one + 5000, one + 9000});
    assert_int_equal(prepared_model_cores(&s), 1);
    assert_true(s.solo_ns[0] == one);
    check_table(&s);
    prepared_model_correct(&s, (double[]){2 * one, 1.99 * one});  // a tie: one core
    assert_int_equal(prepared_model_cores(&s), 1);
    prepared_model_correct(&s, (double[]){one + 5000, 0.6 * one + 5000});
    assert_int_equal(prepared_model_cores(&s), 2);
    assert_true(s.solo_ns[1] > 0.59 * one && s.solo_ns[1] < 0.61 * one);
    prepared_model_finish(&s);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_while_others_run),
        cmocka_unit_test(errors_name_the_network),
        cmocka_unit_test(runs_correct_the_table),
    };
    return cmocka_run_group_tests(tests, open_host, close_host);
}
