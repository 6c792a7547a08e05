// Our policies under Muri's rules against the slow reference of its simulator.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/sim/cluster_run.h"
#include "cluster/trace/job_trace.h"
#include "policy/policies.h"
#include "tests/cluster/muri.h"
#include "tests/runner.h"

enum { TRACES = 60, JOBS = 150 };

static const char *const names[MURI_POLICIES] = {"srtf", "srsf", "tiresias"};

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 29) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static void *settings_of(const ClusterPolicy *p) {
    if (p->settings_size == 0) return NULL;
    Settings s = {.rows = p->rows,
                  .n_rows = p->n_rows,
                  .values = arena_alloc(&arena, 1, p->settings_size, 16),
                  .arena = &arena};
    settings_default(&s);
    return s.values;
}

static ClusterResult run(const char *policy, uint32_t nodes, const JobList *l,
                         const TimeNs *overheads) {
    ServerList    servers;
    ClusterResult r;
    ServerSpec    server = {.gpus = 8, .gpu_type = ""};
    assert_int_equal(server_list_equal(nodes, &server, &arena, &servers), ERR_OK);
    ClusterRun x = {.jobs = l,
                    .servers = &servers,
                    .overheads = overheads,
                    .policy = policies_cluster_find(policy)};
    x.settings = settings_of(x.policy);
    x.knows = x.policy->knows;
    assert_int_equal(cluster_sim_params("muri", x.policy, &x.params), ERR_OK);
    if (cluster_simulate(&x, &arena, &r) != ERR_OK) fail_msg("%s", err_why());
    return r;
}

static MuriJob *jobs_of(const JobList *l, const TimeNs *overheads) {
    MuriJob *jobs = arena_new(&arena, MuriJob, l->n);
    for (uint32_t i = 0; i < l->n; i++)
        jobs[i] = (MuriJob){.submit = l->at[i].submit,
                            .work = l->at[i].work,
                            .overhead = overheads[i],
                            .gpus = l->at[i].gpus};
    return jobs;
}

static void compare(MuriPolicy p, uint32_t nodes, const JobList *l, const TimeNs *overheads,
                    const char *what) {
    MuriJob      *jobs = jobs_of(l, overheads);
    ClusterResult r = run(names[p], nodes, l, overheads);
    assert_true(muri_run(p, nodes, 8, jobs, l->n, &arena));
    for (uint32_t i = 0; i < l->n; i++) {
        const ClusterEnd *e = &r.ends[i];
        if (e->start == jobs[i].start && e->finish == jobs[i].end &&
            e->preemptions == jobs[i].preemptions)
            continue;
        fail_msg("%s %s job %u: %lld to %lld with %u, reference %lld to %lld with %u", what,
                 names[p], i, (long long)e->start, (long long)e->finish, e->preemptions,
                 (long long)jobs[i].start, (long long)jobs[i].end, jobs[i].preemptions);
    }
}

static const char *const models[] = {"vgg16", "a2c", "bert", "dqn", "resnet18", "unheard"};

// Short and long jobs, narrow and wide ones, many at the same second, some alike.
static JobList make(Rng *r, uint32_t nodes) {
    JobList l = {.n = 1 + (uint32_t)rng_below(r, JOBS),
                 .models = arena_new(&arena, const char *, 6)};
    TimeNs  now = 0;
    memcpy(l.models, models, sizeof models);
    l.n_models = 6;
    l.at = arena_new(&arena, Job, l.n);
    for (uint32_t i = 0; i < l.n; i++) {
        uint32_t gpus = 1U << rng_below(r, rng_below(r, 2) == 0 ? 6 : 3);
        if (rng_below(r, 3) != 0) now += (TimeNs)rng_below(r, 900) * JOB_SECOND;
        l.at[i] =
            (Job){.id = arena_printf(&arena, "j%u", i),
                  .submit = now,
                  .iteration = (TimeNs)(1 + rng_below(r, 900)) * 1000000,
                  .iterations = 1 + (int64_t)rng_below(r, rng_below(r, 8) == 0 ? 90000 : 5000),
                  .gpus = gpus < 8 * nodes ? gpus : 8,
                  .gpu_milli = 1000,
                  .model = (uint32_t)rng_below(r, 6),
                  .tenant = JOB_NONE};
        if (i > 0 && rng_below(r, 4) == 0) {
            l.at[i].iteration = l.at[i - 1].iteration;
            l.at[i].iterations = l.at[i - 1].iterations;
        }
    }
    return l;
}

static void test_random_traces(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        size_t        mark = arena.used;
        Rng           r = {seed};
        uint32_t      nodes = 1 + (uint32_t)rng_below(&r, 6);
        const TimeNs *overheads = NULL;
        JobList       l = make(&r, nodes);
        assert_int_equal(muri_rules_apply(&l, &arena, &overheads), ERR_OK);
        for (MuriPolicy p = 0; p < MURI_POLICIES; p++)
            compare(p, nodes, &l, overheads, arena_printf(&arena, "seed %d", (int)seed));
        arena_rewind(&arena, mark);
    }
}

// One node: the second, shorter job stops the first one, which loses its overhead of 7 s only by
// the event after that.
static void test_by_hand(void **state) {
    (void)state;
    Job           at[] = {{.id = "a", .gpus = 8, .iteration = JOB_SECOND, .iterations = 1000},
                          {.id = "b",
                           .submit = 100 * JOB_SECOND,
                           .gpus = 4,
                           .iteration = JOB_SECOND,
                           .iterations = 200},
                          {.id = "c",
                           .submit = 400 * JOB_SECOND,
                           .gpus = 8,
                           .iteration = JOB_SECOND,
                           .iterations = 1000}};
    const char   *model[] = {"resnet18"};
    JobList       l = {.at = at, .n = 3, .models = model, .n_models = 1};
    const TimeNs *overheads = NULL;
    for (int i = 0; i < 3; i++) at[i].gpu_milli = 1000;
    assert_int_equal(muri_rules_apply(&l, &arena, &overheads), ERR_OK);
    assert_true(overheads[0] == 7 * JOB_SECOND && overheads[1] == 5 * JOB_SECOND);
    assert_true(at[0].work == 1015 * JOB_SECOND && at[1].work == 203 * JOB_SECOND);
    ClusterResult r = run("srtf", 1, &l, overheads);
    // a: 100 s less 7; waits to 303; 97 s less 7 until c arrives; then 832 s left.
    assert_true(r.ends[1].start == 100 * JOB_SECOND && r.ends[1].finish == 303 * JOB_SECOND);
    assert_true(r.ends[0].start == 0 && r.ends[0].preemptions == 1);
    assert_true(r.ends[0].finish == (400 + 1015 - 93 - 90) * JOB_SECOND);
    assert_true(r.ends[2].start == r.ends[0].finish && r.ends[2].preemptions == 0);
}

static const char *path_of(const char *name) {
    const char *data = getenv("COTENANT_CLUSTER_DATA"), *src = getenv("SRC");
    if (data != NULL) return arena_printf(&arena, "%s/muri/%s", data, name);
    return arena_printf(&arena, "%s/../shared/data/cluster/muri/%s", src != NULL ? src : ".", name);
}

static void test_published_traces(void **state) {
    (void)state;
    static const char *const files[] = {"trace1.csv",     "trace2.csv",     "trace3.csv",
                                        "trace4.csv",     "trace1_pr.csv",  "trace2_pr.csv",
                                        "trace3_pr.csv",  "trace4_pr.csv",  "job_type_1.csv",
                                        "job_type_2.csv", "job_type_3.csv", "job_type_4.csv"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t          mark = arena.used;
        JobTraceOptions o = {0};
        JobList         l;
        const TimeNs   *overheads = NULL;
        if (trace_read(path_of(files[i]), "muri", &o, &arena, &l) != ERR_OK) {
            print_message("skipped: no %s; COTENANT_CLUSTER_DATA says where\n", path_of(files[i]));
            skip();
        }
        assert_int_equal(muri_rules_apply(&l, &arena, &overheads), ERR_OK);
        for (MuriPolicy p = 0; p < MURI_POLICIES; p++) compare(p, 8, &l, overheads, files[i]);
        arena_rewind(&arena, mark);
    }
}

static void test_refused(void **state) {
    (void)state;
    const TimeNs *overheads = NULL;
    Job           j = {.id = "a", .gpus = 3, .gpu_milli = 1000, .iteration = 1, .iterations = 1};
    JobList       l = {.at = &j, .n = 1};
    assert_int_equal(muri_rules_apply(&l, &arena, &overheads), ERR_ARG);
    j.gpus = 2;
    j.iterations = 0;
    assert_int_equal(muri_rules_apply(&l, &arena, &overheads), ERR_ARG);
    j.iterations = INT64_MAX;
    j.iteration = JOB_SECOND;
    assert_int_equal(muri_rules_apply(&l, &arena, &overheads), ERR_LIMIT);
    ClusterSimParams p;
    assert_int_equal(cluster_sim_params("muri", policies_cluster_find("maifs"), &p), ERR_ARG);
    assert_non_null(strstr(err_why(), "shortest-gpu"));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_random_traces),
        cmocka_unit_test(test_published_traces),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
