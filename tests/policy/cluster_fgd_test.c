// fgd: fragmentation, the placement it leads to, and how much of a cluster it fills.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cluster/trace/job_trace.h"
#include "policy/cluster/fgd.h"
#include "tests/policy/cluster_sample.h"
#include "tests/runner.h"

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)16 << 30) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static void near(double a, double b) { assert_true(a > b - 1e-9 && a < b + 1e-9); }

// Of three jobs seen, one asks for half a GPU, two for a whole one with two cores.
static void test_waste_by_hand(void **state) {
    (void)state;
    FgdMix       m = {0};
    ClusterSetup s = {.most_gpus = 8};
    ClusterJob   half = {.gpus = 1, .gpu_milli = 500, .cores_milli = 1000};
    ClusterJob   whole = {.gpus = 1, .gpu_milli = 1000, .cores_milli = 2000, .gpu_types = 1};
    fgd_mix_count(&m, &s, &half);
    fgd_mix_count(&m, &s, &whole);
    fgd_mix_count(&m, &s, &whole);
    assert_true(fgd_mix_update(&m, 8));
    assert_false(fgd_mix_update(&m, 8));
    FgdFree r = {.cores_milli = 4000, .n = 3, .parts = {1000, 600, 300}};
    near(fgd_mix_fragmentation(&m, &r), (300 + 2 * 900) / 3.0);
    r.cores_milli = 1000;  // a whole one cannot run
    near(fgd_mix_fragmentation(&m, &r), (300 + 2 * 1900) / 3.0);
    r.cores_milli = 0;  // no job can
    near(fgd_mix_fragmentation(&m, &r), 1900);
    r.cores_milli = 4000;
    r.type = 1;  // not what whole ones ask for
    near(fgd_mix_fragmentation(&m, &r), (300 + 2 * 1900) / 3.0);
}

static void add(ClusterSample *s, Job j) {
    j.id = "j";
    j.model = j.tenant = JOB_NONE;
    j.submit = s->jobs.n * JOB_SECOND;
    if (j.work == 0) j.work = 1000 * JOB_SECOND;
    s->jobs.at[s->jobs.n++] = j;
}

static ClusterSample empty(uint32_t servers, uint32_t gpus) {
    return (ClusterSample){.servers = cluster_sample_servers(&arena, servers, gpus),
                           .jobs = {.at = arena_new(&arena, Job, 64),
                                    .n_gpu_types = 2,
                                    .gpu_types = (const char **)cluster_sample_types}};
}

// Two servers with one GPU each, of which only the first is of a type that most jobs insist on.
// fifo's job that does not mind takes it; fgd's leaves it alone, so that no job waits.
static void test_leaves_what_others_need(void **state) {
    (void)state;
    ClusterSample s = empty(2, 1);
    for (int i = 0; i < 3; i++)
        add(&s, (Job){.gpus = 1, .gpu_milli = 1000, .gpu_types = 1, .work = JOB_SECOND / 2});
    add(&s, (Job){.gpus = 1, .gpu_milli = 1000});
    add(&s, (Job){.gpus = 1, .gpu_milli = 1000, .gpu_types = 1});
    ClusterResult plain = cluster_sample_run(&s, &arena, "fifo", NULL);
    ClusterResult r = cluster_sample_run(&s, &arena, "fgd", NULL);
    assert_true(plain.ends[4].waited > 0);
    assert_int_equal(r.ends[4].waited, 0);
}

// Half a GPU goes where a half is free, although another server is emptier.
static void test_fills_what_is_begun(void **state) {
    (void)state;
    ClusterSample s = empty(2, 1);
    add(&s, (Job){.gpus = 1, .gpu_milli = 500});
    add(&s, (Job){.gpus = 1, .gpu_milli = 500});
    add(&s, (Job){.gpus = 1, .gpu_milli = 1000});
    ClusterResult r = cluster_sample_run(&s, &arena, "fgd", NULL);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(r.ends[i].waited, 0);
}

static void test_passes_or_blocks(void **state) {
    (void)state;
    static const char *const block[] = {"backfill=false", NULL};
    ClusterSample            s = empty(1, 2);
    add(&s, (Job){.gpus = 1, .gpu_milli = 1000});
    add(&s, (Job){.gpus = 2, .gpu_milli = 1000});
    add(&s, (Job){.gpus = 1, .gpu_milli = 1000, .work = JOB_SECOND});
    ClusterResult r = cluster_sample_run(&s, &arena, "fgd", NULL);
    assert_int_equal(r.ends[2].waited, 0);
    r = cluster_sample_run(&s, &arena, "fgd", block);
    assert_true(r.ends[2].start > r.ends[1].start);
}

static void test_random_traces_end(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        size_t        mark = arena.used;
        ClusterSample s = {0};
        cluster_sample_random(&s, &arena, seed, 400);
        ClusterResult r = cluster_sample_run(&s, &arena, "fgd", NULL);
        for (uint32_t i = 0; i < r.n; i++) assert_true(r.ends[i].finish > s.jobs.at[i].submit);
        assert_true(s.shared > 0 && r.preemptions == 0);
        arena_rewind(&arena, mark);
    }
}

static const char *public_file(const char *name) {
    const char *data = getenv("COTENANT_CLUSTER_DATA"), *src = getenv("SRC");
    if (data != NULL) return arena_printf(&arena, "%s/alibaba-gpu-2023/%s", data, name);
    return arena_printf(&arena, "%s/../shared/data/cluster/alibaba-gpu-2023/%s",
                        src != NULL ? src : ".", name);
}

// All pods in a random order, then some again, until they ask for 1.3 times all GPUs; none ends.
static void inflate(const JobList *pods, uint64_t gpus, uint64_t seed, JobList *out) {
    Rng      r = {seed};
    uint64_t milli = 0, all = gpus * 1300;
    *out = *pods;
    out->n = 0;
    out->at = arena_new(&arena, Job, 4 * (size_t)pods->n);
    for (uint32_t i = pods->n; i > 1; i--) {
        uint32_t k = (uint32_t)rng_below(&r, i);
        Job      x = pods->at[k];
        pods->at[k] = pods->at[i - 1];
        pods->at[i - 1] = x;
    }
    while (milli < all && out->n < 4 * pods->n) {
        uint32_t k = out->n < pods->n ? out->n : (uint32_t)rng_below(&r, pods->n);
        Job      x = pods->at[k];
        x.submit = out->n * JOB_SECOND;
        x.work = 1000000 * JOB_SECOND;
        milli += (uint64_t)x.gpus * x.gpu_milli;
        out->at[out->n++] = x;
    }
}

// The fraction of all GPUs allocated before any job ends.
static double filled(ClusterSample *s, const char *policy) {
    ClusterResult r = cluster_sample_run(s, &arena, policy, NULL);
    double        milli = 0;
    for (uint32_t i = 0; i < r.n; i++)
        if (r.ends[i].start < 900000 * JOB_SECOND)
            milli += (double)s->jobs.at[i].gpus * s->jobs.at[i].gpu_milli;
    return milli / 10 / (double)s->servers.gpus;
}

// Published for this workload, means of ten orders: random 87.5 %, best fit 93.1 %, fgd 95.4 %
// (95.27 to 95.49). Orders here are drawn differently, and the mix is learned on the way.
static void test_published_allocation(void **state) {
    (void)state;
    ClusterSample   s = {0};
    JobList         pods;
    JobTraceOptions o = {0};
    if (server_list_read(public_file("openb_node_list_gpu_node.csv"), &arena, &s.servers) != 0 ||
        trace_read(public_file("openb_pod_list_default.csv"), "openb", &o, &arena, &pods) != 0)
        skip();
    inflate(&pods, s.servers.gpus, 42, &s.jobs);
    double part = filled(&s, "fgd");
    print_message("fgd fills %.2f %% of %u GPUs\n", part, (unsigned)s.servers.gpus);
    assert_true(part > 94.5 && part < 97);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waste_by_hand),       cmocka_unit_test(test_leaves_what_others_need),
        cmocka_unit_test(test_fills_what_is_begun), cmocka_unit_test(test_passes_or_blocks),
        cmocka_unit_test(test_random_traces_end),   cmocka_unit_test(test_published_allocation),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
