// Synergy's policies in its rounds against the slow reference of its simulator.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/sim/cluster_run.h"
#include "contract/cluster_profile.h"
#include "policy/policies.h"
#include "tests/cluster/golden.h"
#include "tests/cluster/synergy.h"
#include "tests/runner.h"

enum { MODELS = 16, TRACES = 40, JOBS = 60 };

static const char *const orders[] = {"fifo", "srtf", "las", "ftf"};
static const char *const modes[] = {"synergy_fair", "synergy_greedy", "synergy_tune"};

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 28) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static ClusterProfiles *profiles_of(const SynergyModel *models, uint32_t n) {
    ClusterProfiles *p = arena_new(&arena, ClusterProfiles, 1);
    *p = (ClusterProfiles){.at = arena_new(&arena, ClusterProfile, n), .n = n};
    for (uint32_t i = 0; i < n; i++)
        p->at[i].speed = (ProfileGrid){.rows = 1,
                                       .columns = 1,
                                       .row = {models[i].best_cores},
                                       .column = {models[i].best_gb},
                                       .at = {{models[i].speedup}}};
    return p;
}

static JobList list_of(const SynergyModel *models, const SynergyJob *jobs, uint32_t n) {
    JobList l = {.at = arena_new(&arena, Job, n), .n = n, .n_models = MODELS};
    for (uint32_t i = 0; i < n; i++) {
        TimeNs one = (TimeNs)(jobs[i].model->iteration_s * 1e9 + 0.5);
        l.at[i] = (Job){.id = "j",
                        .submit = (TimeNs)(jobs[i].arrival_s * 1e9 + 0.5),
                        .work = one * jobs[i].iterations,
                        .iteration = one,
                        .iterations = jobs[i].iterations,
                        .gpus = jobs[i].gpus,
                        .gpu_milli = 1000,
                        .model = (uint32_t)(jobs[i].model - models),
                        .tenant = JOB_NONE};
    }
    return l;
}

static ClusterResult run(const SynergySetup *u, const SynergyModel *models, uint32_t n_models,
                         const SynergyJob *jobs, uint32_t n) {
    const ClusterPolicy *p = policies_cluster_find(modes[u->share]);
    Settings             s = {.rows = p->rows,
                              .n_rows = p->n_rows,
                              .values = arena_alloc(&arena, 1, p->settings_size, 16),
                              .arena = &arena};
    JobList              l = list_of(models, jobs, n);
    ServerList           servers;
    ClusterResult        r;
    uint32_t            *class_of = arena_new(&arena, uint32_t, n);
    ServerSpec           like = {.gpus = (uint32_t)u->gpus,
                                 .cores_milli = (uint32_t)(u->cores * 1000),
                                 .memory_mib = (uint32_t)(u->gb * 1024),
                                 .gpu_type = ""};
    for (uint32_t i = 0; i < n; i++) class_of[i] = l.at[i].model;
    settings_default(&s);
    assert_int_equal(settings_set(&s, arena_printf(&arena, "order=%s", orders[u->order])), ERR_OK);
    assert_int_equal(server_list_equal(u->servers, &like, &arena, &servers), ERR_OK);
    ClusterRun x = {.jobs = &l,
                    .servers = &servers,
                    .policy = p,
                    .settings = s.values,
                    .profiles = profiles_of(models, n_models),
                    .class_of = class_of,
                    .knows = p->knows};
    assert_int_equal(cluster_sim_params("synergy", p, &x.params), ERR_OK);
    Err e = cluster_simulate(&x, &arena, &r);
    if (e != ERR_OK) print_message("%s\n", err_why());
    assert_int_equal(e, ERR_OK);
    return r;
}

static uint32_t count_unequal(const SynergyJob *jobs, const ClusterResult *r) {
    uint32_t unequal = 0;
    for (uint32_t i = 0; i < r->n; i++)
        unequal += jobs[i].end_s >= 0 &&
                   llabs(r->ends[i].finish - (TimeNs)(jobs[i].end_s * 1e9 + 0.5)) > 1000;
    return unequal;
}

static SynergySetup cluster(uint32_t order, uint32_t share, uint32_t servers) {
    return (SynergySetup){.order = order,
                          .share = share,
                          .servers = servers,
                          .gpus = 8,
                          .cores = 24,
                          .gb = 500,
                          .storage_mbps = 500,
                          .all_at_once = true};
}

static const SynergyModel random_models[] = {
    {"alexnet", 12, 125, 2.94, 0.6},    {"donor", 1, 20, 1, 0.12},
    {"deepspeech", 3, 62.5, 1, 0.757},  {"m5", 6, 187.5, 2.5, 0.6},
    {"mobilenet", 6, 62.5, 1.55, 0.71}, {"res50", 4, 62.5, 1.15, 0.78}};

static uint32_t make(Rng *r, bool all_at_once, SynergyJob *jobs) {
    static const uint32_t sizes[] = {1, 1, 1, 2, 4, 8, 16};
    uint32_t              n = 2 + (uint32_t)rng_below(r, JOBS - 2);
    double                now = all_at_once ? 0 : 100;
    for (uint32_t i = 0; i < n; i++) {
        now += all_at_once ? 0.001 : (double)rng_below(r, 200);
        jobs[i] = (SynergyJob){.model = &random_models[rng_below(r, 6)],
                               .arrival_s = now,
                               .iterations = 1 + (int64_t)rng_below(r, 20000),
                               .gpus = sizes[rng_below(r, sizeof sizes / sizeof *sizes)]};
    }
    return n;
}

static void test_random_traces(void **state) {
    (void)state;
    uint32_t compared = 0;
    for (uint64_t seed = 1; seed <= TRACES; seed++)
        for (uint32_t k = 0; k < 12; k++) {
            size_t       mark = arena.used;
            Rng          r = {seed};
            SynergyJob   jobs[JOBS];
            SynergySetup u = cluster(k % 4, k / 4, 2 + (uint32_t)rng_below(&r, 4));
            u.all_at_once = rng_below(&r, 2) == 0;
            uint32_t n = make(&r, u.all_at_once, jobs);
            bool     done = synergy_run(&u, jobs, n, &arena);
            for (uint32_t i = 0; i < n; i++) done = done && jobs[i].end_s >= 0;
            if (done) {
                ClusterResult x = run(&u, random_models, 6, jobs, n);
                assert_int_equal(count_unequal(jobs, &x), 0);
                compared++;
            }
            arena_rewind(&arena, mark);
        }
    assert_true(compared > TRACES * 6);
}

typedef struct Said {
    const char *file;
    uint32_t    order, share;
} Said;

static const Said said[] = {{"FIFO-fair", 0, 0}, {"FIFO-tune", 0, 2}, {"FIFO", 0, 1},
                            {"SRTF-fair", 1, 0}, {"SRTF-tune", 1, 2}, {"LAS-fair", 2, 0},
                            {"LAS-tune", 2, 2},  {"FTF-fair", 3, 0},  {"FTF-tune", 3, 2}};

static uint32_t read_models(const Golden *meta, SynergyModel *models) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < meta->n && n < MODELS; i++) {
        const double *m = meta->rows[i].at;
        bool          known = m[2] != 1;
        for (uint32_t k = 0; k < n; k++)
            known = known || !strcmp(models[k].name, meta->rows[i].word);
        if (known) continue;
        models[n++] = (SynergyModel){meta->rows[i].word, m[3], m[4], m[7], m[8]};
    }
    return n;
}

static const SynergyModel *model_of(const SynergyModel *models, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(models[i].name, name)) return &models[i];
    return NULL;
}

static void test_golden(void **state) {
    (void)state;
    Golden       trace, meta, ends;
    SynergyModel models[MODELS];
    SynergyJob   jobs[100];
    if (!golden_read("golden/synergy/static100.trace", false, &arena, &trace) ||
        !golden_read("synergy/models_meta.csv", true, &arena, &meta)) {
        print_message("skipped: no golden/synergy; COTENANT_CLUSTER_DATA says where\n");
        skip();
    }
    uint32_t n_models = read_models(&meta, models);
    assert_int_equal(trace.n, 100);
    for (size_t k = 0; k < sizeof said / sizeof *said; k++) {
        assert_true(
            golden_read(arena_printf(&arena, "golden/synergy/static100_%s.csv", said[k].file), true,
                        &arena, &ends));
        for (uint32_t i = 0; i < trace.n; i++) {
            const GoldenRow *r = &trace.rows[i];
            jobs[i] = (SynergyJob){.arrival_s = r->at[2],
                                   .end_s = r->at[2] + ends.rows[i].at[1],
                                   .iterations = (int64_t)r->at[3],
                                   .gpus = (uint32_t)r->at[4]};
            jobs[i].model = model_of(models, n_models, r->word);
            assert_non_null(jobs[i].model);
        }
        SynergySetup  u = cluster(said[k].order, said[k].share, 4);
        ClusterResult x = run(&u, models, n_models, jobs, trace.n);
        assert_int_equal(count_unequal(jobs, &x), 0);
    }
}

// Jobs that come one after the other, with gangs of up to 8 GPUs.
static void test_dynamic(void **state) {
    (void)state;
    Golden       trace, meta;
    SynergyModel models[MODELS];
    uint32_t     compared = 0, ended = 0;
    if (!golden_read("synergy/philly400_dyn.trace", false, &arena, &trace) ||
        !golden_read("synergy/models_meta.csv", true, &arena, &meta)) {
        print_message("skipped: no synergy; COTENANT_CLUSTER_DATA says where\n");
        skip();
    }
    uint32_t    n_models = read_models(&meta, models);
    SynergyJob *jobs = arena_new(&arena, SynergyJob, trace.n);
    for (uint32_t k = 0; k < 24; k++) {
        size_t mark = arena.used;
        for (uint32_t i = 0; i < trace.n; i++) {
            const GoldenRow *r = &trace.rows[i];
            jobs[i] = (SynergyJob){.model = model_of(models, n_models, r->word),
                                   .arrival_s = r->at[2],
                                   .iterations = (int64_t)r->at[3],
                                   .gpus = (uint32_t)r->at[4]};
            assert_non_null(jobs[i].model);
        }
        SynergySetup u = cluster(k % 4, k / 4 % 3, k < 12 ? 4 : 16);
        u.all_at_once = false;
        if (synergy_run(&u, jobs, trace.n, &arena)) {
            ClusterResult x = run(&u, models, n_models, jobs, trace.n);
            assert_int_equal(count_unequal(jobs, &x), 0);
            for (uint32_t i = 0; i < trace.n; i++) ended += jobs[i].end_s >= 0;
            compared++;
        }
        arena_rewind(&arena, mark);
    }
    print_message("%u runs, %u ends\n", compared, ended);
    assert_true(compared > 12 && ended > 12 * 300);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_dynamic),
        cmocka_unit_test(test_random_traces),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
