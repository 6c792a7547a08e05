// The public traces, if available: as many jobs and as much work as published.
// Folder: $COTENANT_CLUSTER_DATA, or ../shared/data/cluster next to the source.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cluster/server_list.h"
#include "cluster/trace/job_trace.h"
#include "cluster/trace/trace_stats.h"
#include "tests/runner.h"

static Arena arena;
static char  folder[1024];

static const char *at(const char *file) { return arena_printf(&arena, "%s/%s", folder, file); }

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 30) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static JobList load(const char *file, const char *format, const JobTraceOptions *o) {
    JobList l = {0};
    if (trace_read(at(file), "auto", o, &arena, &l) != ERR_OK) fail_msg("%s", err_why());
    assert_string_equal(l.format, format);
    return l;
}

static double work_seconds(const JobList *l) {
    double sum = 0;
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i].work > 0) sum += (double)l->at[i].work / 1e9;
    return sum;
}

static TraceStats stats(const JobList *l) {
    TraceStats s;
    assert_int_equal(trace_stats(l, &arena, &s), ERR_OK);
    return s;
}

static uint32_t of_size(const TraceStats *s, uint32_t gpus) {
    for (uint32_t i = 0; i < s->sizes.n; i++)
        if (s->sizes.at[i].gpus == gpus) return s->sizes.at[i].jobs;
    return 0;
}

static void philly(void **state) {
    (void)state;
    static const uint32_t sizes[][2] = {{1, 76627}, {2, 1818}, {4, 1870}, {8, 1643}, {12, 7},
                                        {16, 199},  {24, 7},   {32, 67},  {64, 6},   {128, 3}};
    JobList               l = load("philly/philly_jobs.csv", "philly", NULL);
    TraceStats            s = stats(&l);
    assert_int_equal(l.n, 82247);
    assert_int_equal(l.n_tenants, 15);
    assert_int_equal(s.sizes.n, 10);
    for (int i = 0; i < 10; i++) assert_int_equal(of_size(&s, sizes[i][0]), sizes[i][1]);
    assert_true(s.gpu_seconds == 3521082502.0 && work_seconds(&l) == 1080390950.0);
    assert_true(s.work_s[3] == 1144 && (int)(s.work_mean_s + 0.5) == 13136);
    assert_true(s.last == 9408690 * JOB_SECOND && l.origin == 1504521041 * JOB_SECOND);
}

static void chronus(void **state) {
    (void)state;
    static const struct {
        const char *file;
        uint32_t    strict, soft, best;
        double      minutes;
    } traces[] = {{"chronus/trace_job_Philly_SLO.csv", 30940, 0, 0, 8041615},
                  {"chronus/trace_job_Philly_MIX1.csv", 21724, 0, 9216, 8067642},
                  {"chronus/trace_job_Philly_MIX2.csv", 9276, 18525, 3139, 8140396}};
    for (int i = 0; i < 3; i++) {
        uint32_t n[JOB_CLASSES] = {0};
        JobList  l = load(traces[i].file, "chronus", NULL);
        for (uint32_t k = 0; k < l.n; k++) n[l.at[k].class]++;
        assert_true(n[JOB_STRICT] == traces[i].strict && n[JOB_SOFT] == traces[i].soft);
        assert_true(n[JOB_BEST] == traces[i].best && n[JOB_PLAIN] == 0 && l.n_models == 5);
        assert_true(work_seconds(&l) == 60 * traces[i].minutes);
    }
}

static void muri(void **state) {
    (void)state;
    static const uint32_t jobs[] = {1494, 5755, 992, 2638};
    static const double   gpu_s[] = {1379976364, 2966695253, 420084355, 737647571};
    for (int i = 0; i < 4; i++) {
        JobList l = load(arena_printf(&arena, "muri/trace%d.csv", i + 1), "muri", NULL);
        JobList p = load(arena_printf(&arena, "muri/trace%d_pr.csv", i + 1), "muri", NULL);
        JobList t = load(arena_printf(&arena, "muri/job_type_%d.csv", i + 1), "muri", NULL);
        assert_true(l.n == jobs[i] && p.n == jobs[i] && t.n == 992);
        assert_true(stats(&l).gpu_seconds == gpu_s[i] && p.at[p.n - 1].submit == 0);
        for (uint32_t k = 0; k < l.n; k++) {
            TimeNs off = l.at[k].work - l.at[k].iterations * l.at[k].iteration;
            assert_true(off <= l.at[k].iteration && off >= -l.at[k].iteration);
        }
    }
}

static void tiresias_and_lucid(void **state) {
    (void)state;
    JobList    l = load("tiresias/60_job.csv", "tiresias", NULL);
    JobList    g = load("golden/lucid_philly10n/jobs.csv", "lucid", NULL);
    TraceStats s = stats(&g);
    assert_int_equal(l.n, 60);
    assert_int_equal(g.n, 1092);
    assert_true(of_size(&s, 1) == 1049 && of_size(&s, 4) == 16 && of_size(&s, 8) == 22);
    assert_true(of_size(&s, 16) == 1 && of_size(&s, 32) == 4);
    for (uint32_t i = 0; i < g.n; i++) assert_int_equal(g.at[i].row, i);
}

static void gavel(void **state) {
    (void)state;
    static const char *const vcs[] = {"0e4a51", "103959", "11cb48", "23dbec", "2869ce",
                                      "51b7ef", "6214e9", "6c71a0", "795a4c", "7f04ca",
                                      "925e2b", "b436b2", "e13805", "ed69ec", "ee9e8c"};
    IterationTimes           rates;
    uint32_t                 n = 0, open = 0;
    assert_int_equal(
        iteration_times_read(at("gavel/throughputs_single.csv"), "v100", &arena, &rates), ERR_OK);
    JobTraceOptions o = {.rates = &rates};
    for (int i = 0; i < 15; i++) {
        JobList l =
            load(arena_printf(&arena, "gavel/traces/msr_seed0/%s.trace", vcs[i]), "gavel", &o);
        n += l.n;
        open += stats(&l).unknown;
    }
    assert_int_equal(n, 15264);
    assert_int_equal(open, 0);
    assert_int_equal(load("gavel/traces/max_min_fairness.trace", "gavel", &o).n, 96);
    assert_int_equal(load("gavel/traces/minimize_makespan.trace", "gavel", &o).n, 100);
}

static void synergy_and_pollux(void **state) {
    (void)state;
    IterationTimes rates;
    assert_int_equal(iteration_times_read(at("synergy/models_meta.csv"), NULL, &arena, &rates),
                     ERR_OK);
    JobTraceOptions o = {.rates = &rates};
    JobList         l = load("golden/synergy/static100.trace", "synergy", &o);
    assert_true(l.n == 100 && stats(&l).unknown == 0);
    assert_true(l.at[0].work == 3349 * (6 * JOB_SECOND / 10));
    for (int i = 1; i <= 8; i++)
        assert_int_equal(
            load(arena_printf(&arena, "pollux/workloads/workload-%d.csv", i), "pollux", NULL).n,
            160);
}

static void openb(void **state) {
    (void)state;
    JobList    l = load("alibaba-gpu-2023/openb_pod_list_default.csv", "openb", NULL);
    TraceStats s = stats(&l);
    assert_true(s.jobs == 8152 && s.cpu_only == 1088 && s.fractional == 3078 && s.unknown == 897);
    assert_true(of_size(&s, 1) == 6989 && of_size(&s, 2) + of_size(&s, 4) + of_size(&s, 8) == 75);
    assert_true(work_seconds(&l) == 210028342.0);
    l = load("alibaba-gpu-2023/openb_pod_list_gpuspec33.csv", "openb", NULL);
    assert_int_equal(l.n_gpu_types, 7);
    l = load("alibaba-gpu-2023/openb_pod_list_multigpu50.csv", "openb", NULL);
    assert_true(l.n == 9061 && stats(&l).unknown == 9061);
}

static void servers(void **state) {
    (void)state;
    ServerList l;
    assert_int_equal(
        server_list_read(at("alibaba-gpu-2023/openb_node_list_all_node.csv"), &arena, &l), ERR_OK);
    assert_true(l.n == 1523 && l.gpus == 6212);
    assert_int_equal(
        server_list_read(at("alibaba-gpu-2023/openb_node_list_gpu_node.csv"), &arena, &l), ERR_OK);
    assert_true(l.n == 1213 && l.gpus == 6212);
    assert_int_equal(server_list_read(at("muri/n8g8.csv"), &arena, &l), ERR_OK);
    assert_true(l.n == 8 && l.gpus == 64 && l.at[0].cores_milli == 92000 && l.racks == 1);
    assert_int_equal(server_list_read(at("tiresias/n256g8.csv"), &arena, &l), ERR_OK);
    assert_true(l.n == 256 && l.gpus == 2048 && l.racks == 8 && l.at[255].rack == 7);
}

TEST_MAIN() {
    const char *given = getenv("COTENANT_CLUSTER_DATA"), *src = getenv("SRC");
    (void)snprintf(folder, sizeof folder, "%s%s",
                   given != NULL ? given
                   : src != NULL ? src
                                 : ".",
                   given != NULL ? "" : "/../shared/data/cluster");
    if (access(folder, R_OK) != 0) {
        printf("skipped: no public traces in %s; COTENANT_CLUSTER_DATA names their folder\n",
               folder);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philly), cmocka_unit_test(chronus),
        cmocka_unit_test(muri),   cmocka_unit_test(tiresias_and_lucid),
        cmocka_unit_test(gavel),  cmocka_unit_test(synergy_and_pollux),
        cmocka_unit_test(openb),  cmocka_unit_test(servers),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
