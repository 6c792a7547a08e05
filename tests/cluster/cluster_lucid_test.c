// Our policies under Lucid's rules against the slow reference of its simulator.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cluster/sim/cluster_run.h"
#include "policy/policies.h"
#include "tests/cluster/golden.h"
#include "tests/cluster/lucid.h"
#include "tests/runner.h"

enum { TRACES = 60, JOBS = 120 };

static const char *const names[LUCID_POLICIES] = {"fifo", "sjf", "qssf", "srtf", "tiresias"};

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

static void *settings_of(const ClusterPolicy *p) {
    if (p->settings_size == 0) return NULL;
    Settings s = {.rows = p->rows,
                  .n_rows = p->n_rows,
                  .values = arena_alloc(&arena, 1, p->settings_size, 16),
                  .arena = &arena};
    settings_default(&s);
    return s.values;
}

static ClusterResult run(const char *policy, uint32_t nodes, uint32_t per_node,
                         const LucidJob *jobs, uint32_t n) {
    JobList       l = {.at = arena_new(&arena, Job, n), .n = n};
    ServerList    servers;
    ClusterResult r;
    ServerSpec    server = {.gpus = per_node, .gpu_type = ""};
    for (uint32_t i = 0; i < n; i++)
        l.at[i] = (Job){.id = arena_printf(&arena, "j%u", i),
                        .submit = jobs[i].submit * JOB_SECOND,
                        .work = jobs[i].duration * JOB_SECOND,
                        .gpus = jobs[i].gpus,
                        .gpu_milli = 1000,
                        .model = JOB_NONE,
                        .tenant = JOB_NONE};
    assert_int_equal(server_list_equal(nodes, &server, &arena, &servers), ERR_OK);
    ClusterRun x = {.jobs = &l, .servers = &servers, .policy = policies_cluster_find(policy)};
    assert_non_null(x.policy);
    x.settings = settings_of(x.policy);
    x.knows = x.policy->knows;
    assert_int_equal(cluster_sim_params("lucid", x.policy, &x.params), ERR_OK);
    assert_int_equal(cluster_simulate(&x, &arena, &r), ERR_OK);
    return r;
}

static uint32_t count_unequal(const LucidJob *jobs, const ClusterResult *r) {
    uint32_t unequal = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const ClusterEnd *e = &r->ends[i];
        unequal += e->start != jobs[i].start * JOB_SECOND ||
                   e->finish != jobs[i].end * JOB_SECOND ||
                   e->waited != jobs[i].queue * JOB_SECOND || e->preemptions != jobs[i].preemptions;
    }
    return unequal;
}

// Short and long jobs, narrow and wide ones, many at the same second.
static uint32_t make(Rng *r, uint32_t gpus, LucidJob *jobs) {
    static const uint32_t sizes[] = {1, 1, 1, 1, 2, 2, 3, 4, 5, 8, 8, 12, 16, 20};
    int64_t               now = 0;
    uint32_t              n = 1 + (uint32_t)rng_below(r, JOBS);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t g = sizes[rng_below(r, sizeof sizes / sizeof *sizes)];
        if (rng_below(r, 3) != 0) now += (int64_t)rng_below(r, rng_below(r, 20) == 0 ? 9000 : 200);
        jobs[i] =
            (LucidJob){.submit = now,
                       .duration = 1 + (int64_t)rng_below(r, rng_below(r, 8) == 0 ? 20000 : 600),
                       .gpus = g < gpus ? g : gpus};
    }
    return n;
}

static void test_random_traces(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        size_t   mark = arena.used;
        Rng      r = {seed};
        LucidJob jobs[JOBS];
        uint32_t nodes = 1 + (uint32_t)rng_below(&r, 6), per_node = 1U << rng_below(&r, 4);
        uint32_t n = make(&r, nodes * per_node, jobs);
        for (LucidPolicy p = 0; p < LUCID_POLICIES; p++) {
            assert_true(lucid_run(p, nodes, per_node, jobs, n, &arena));
            ClusterResult x = run(names[p], nodes, per_node, jobs, n);
            assert_int_equal(count_unequal(jobs, &x), 0);
        }
        arena_rewind(&arena, mark);
    }
}

static void test_golden(void **state) {
    (void)state;
    Golden trace, said;
    if (!golden_read("golden/lucid_philly10n/jobs.csv", true, &arena, &trace)) {
        print_message("skipped: no golden/lucid_philly10n; COTENANT_CLUSTER_DATA says where\n");
        skip();
    }
    LucidJob *jobs = arena_new(&arena, LucidJob, trace.n);
    for (LucidPolicy p = 0; p < LUCID_POLICIES; p++) {
        assert_true(golden_read(arena_printf(&arena, "golden/lucid_philly10n/%s.csv", names[p]),
                                true, &arena, &said));
        for (uint32_t i = 0; i < said.n; i++) {
            const double *s = said.rows[i].at;
            jobs[i] = (LucidJob){.submit = (int64_t)s[2],
                                 .duration = (int64_t)s[3],
                                 .start = (int64_t)s[4],
                                 .end = (int64_t)s[5],
                                 .queue = (int64_t)s[6],
                                 .gpus = (uint32_t)s[1],
                                 .preemptions = (uint32_t)s[8]};
        }
        ClusterResult x = run(names[p], 10, 8, jobs, said.n);
        assert_int_equal(x.n, 1092);
        assert_int_equal(count_unequal(jobs, &x), 0);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_traces),
        cmocka_unit_test(test_golden),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
