#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/cluster/golden.h"
#include "tests/cluster/synergy.h"
#include "tests/runner.h"

typedef struct Run {
    const char  *file;
    SynergyOrder order;
    SynergyShare share;
} Run;

static const Run runs[] = {
    {"FIFO-fair", SYNERGY_FIFO, SYNERGY_FAIR}, {"FIFO-tune", SYNERGY_FIFO, SYNERGY_TUNE},
    {"FIFO", SYNERGY_FIFO, SYNERGY_GREEDY},    {"SRTF-fair", SYNERGY_SRTF, SYNERGY_FAIR},
    {"SRTF-tune", SYNERGY_SRTF, SYNERGY_TUNE}, {"LAS-fair", SYNERGY_LAS, SYNERGY_FAIR},
    {"LAS-tune", SYNERGY_LAS, SYNERGY_TUNE},   {"FTF-fair", SYNERGY_FTF, SYNERGY_FAIR},
    {"FTF-tune", SYNERGY_FTF, SYNERGY_TUNE}};

static const SynergyModel plain = {"plain", 1, 20, 1, 1}, hungry = {"hungry", 12, 125, 3, 1},
                          slow = {"slow", 1, 20, 1, 0.7}, greedy = {"greedy", 9, 125, 2, 1},
                          wide = {"wide", 9, 62.5, 4, 1};

static SynergySetup cluster(SynergyOrder order, SynergyShare share, uint32_t servers, double gpus) {
    return (SynergySetup){.order = order,
                          .share = share,
                          .servers = servers,
                          .gpus = gpus,
                          .cores = 3 * gpus,
                          .gb = 62.5 * gpus,
                          .storage_mbps = 62.5 * gpus,
                          .all_at_once = true};
}

static void expect_run(SynergySetup setup, uint32_t n, SynergyJob *jobs, const double *end_s) {
    Arena a;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_true(synergy_run(&setup, jobs, n, &a));
    for (uint32_t i = 0; i < n; i++) assert_true(jobs[i].end_s == end_s[i]);
    arena_finish(&a);
}

#define EXPECT_RUN(setup, n, jobs, ...) expect_run(setup, n, jobs, (double[n]){__VA_ARGS__})

// A job ends with a round, and a round is as many whole iterations as fit: 428 of 0.7 s.
static void test_rounds(void **state) {
    (void)state;
    SynergyJob jobs[] = {{.model = &plain, .iterations = 300, .gpus = 1},
                         {.model = &plain, .iterations = 301, .gpus = 1},
                         {.model = &slow, .iterations = 428, .gpus = 1},
                         {.model = &slow, .iterations = 429, .gpus = 1}};
    EXPECT_RUN(cluster(SYNERGY_FIFO, SYNERGY_FAIR, 1, 8), 4, jobs, 301, 601, 301, 601);
}

// Two have all 24 cores. Greedy leaves the others out, however little they need.
static void test_greedy_skips(void **state) {
    (void)state;
    SynergyJob jobs[] = {{.model = &hungry, .iterations = 900, .gpus = 1},
                         {.model = &hungry, .iterations = 900, .gpus = 1},
                         {.model = &hungry, .iterations = 900, .gpus = 1},
                         {.model = &plain, .iterations = 300, .gpus = 1}};
    EXPECT_RUN(cluster(SYNERGY_FIFO, SYNERGY_GREEDY, 1, 8), 4, jobs, 301, 301, 601, 601);
}

// Tune lets the third in with its share, 3 cores, and takes them from the first, which drops to its
// own share: 300 iterations in the first round instead of 900, like the third.
static void test_tune_takes_back(void **state) {
    (void)state;
    SynergyJob jobs[] = {{.model = &hungry, .iterations = 900, .gpus = 1},
                         {.model = &hungry, .iterations = 900, .gpus = 1},
                         {.model = &hungry, .iterations = 900, .gpus = 1}};
    EXPECT_RUN(cluster(SYNERGY_FIFO, SYNERGY_TUNE, 1, 8), 3, jobs, 601, 301, 601);
}

// Two GPUs, 12 cores. At 301 the first two have run at speed 1 and seem to need 600 s each, the
// third 500: it goes first. At their best they would need 300. The second, left out, is taken for
// its best speed after that, 300 s, behind the third's 200.
static void test_srtf_goes_by_the_last_speed(void **state) {
    (void)state;
    SynergySetup two = cluster(SYNERGY_SRTF, SYNERGY_TUNE, 1, 2);
    two.cores = 12, two.gb = 250;
    SynergyJob jobs[] = {{.model = &greedy, .iterations = 900, .gpus = 1},
                         {.model = &greedy, .arrival_s = 0.001, .iterations = 900, .gpus = 1},
                         {.model = &plain, .arrival_s = 50, .iterations = 500, .gpus = 1}};
    EXPECT_RUN(two, 3, jobs, 601, 901, 901);
}

// The one with two GPUs has attained 600 after a round, and waits until the other has as much.
static void test_las_counts_gpu_time(void **state) {
    (void)state;
    SynergyJob jobs[] = {{.model = &plain, .iterations = 600, .gpus = 2},
                         {.model = &plain, .arrival_s = 0.001, .iterations = 900, .gpus = 1}};
    EXPECT_RUN(cluster(SYNERGY_LAS, SYNERGY_FAIR, 1, 2), 2, jobs, 1201, 1501);
}

// (1 + 300) / 300 against (1 + 3000) / 3000: the long one is less delayed, and stays so.
static void test_ftf_serves_the_least_delayed(void **state) {
    (void)state;
    SynergyJob jobs[] = {{.model = &plain, .iterations = 300, .gpus = 1},
                         {.model = &plain, .iterations = 3000, .gpus = 1}};
    EXPECT_RUN(cluster(SYNERGY_FTF, SYNERGY_FAIR, 1, 1), 2, jobs, 3301, 3001);
}

// Three GPUs lie on two servers of two; the large one is not waited for, nor does it block.
static void test_jobs_spread(void **state) {
    (void)state;
    SynergyJob jobs[] = {{.model = &plain, .iterations = 300, .gpus = 3},
                         {.model = &plain, .arrival_s = 0.1, .iterations = 300, .gpus = 2},
                         {.model = &plain, .arrival_s = 0.2, .iterations = 300, .gpus = 1}};
    EXPECT_RUN(cluster(SYNERGY_FIFO, SYNERGY_FAIR, 2, 2), 3, jobs, 301, 601, 301);
}

// 4 GPUs would like 36 cores and get 24, half way from its share of 12: speed 1 + 3 / 2 = 2.5.
static void test_best_is_cut_to_a_server(void **state) {
    (void)state;
    SynergyJob jobs[] = {{.model = &wide, .iterations = 750, .gpus = 4}};
    EXPECT_RUN(cluster(SYNERGY_FIFO, SYNERGY_TUNE, 1, 8), 1, jobs, 301);
    jobs[0].iterations++;
    EXPECT_RUN(cluster(SYNERGY_FIFO, SYNERGY_TUNE, 1, 8), 1, jobs, 601);
}

// Rounds at multiples of 300 from the first arrival on, and a round without jobs is the last.
static void test_arrivals(void **state) {
    (void)state;
    SynergySetup setup = cluster(SYNERGY_FIFO, SYNERGY_FAIR, 1, 8);
    setup.all_at_once = false;
    SynergyJob jobs[] = {{.model = &plain, .arrival_s = 391.8, .iterations = 300, .gpus = 1},
                         {.model = &plain, .arrival_s = 900, .iterations = 1, .gpus = 1},
                         {.model = &plain, .arrival_s = 1200.1, .iterations = 1, .gpus = 1}};
    EXPECT_RUN(setup, 3, jobs, 900, 1200, -1);
}

static SynergyModel *read_models(Arena *a, const Golden *meta) {
    SynergyModel *models = arena_new(a, SynergyModel, meta->n);
    for (uint32_t i = 0; i < meta->n; i++) {
        const double *m = meta->rows[i].at;
        models[i] = (SynergyModel){.name = meta->rows[i].word,
                                   .best_cores = m[3],
                                   .best_gb = m[4],
                                   .speedup = m[7],
                                   .iteration_s = m[8]};
    }
    return models;
}

// The first row of a name with one GPU is the profile, for jobs of any size.
static SynergyJob *read_jobs(Arena *a, const Golden *trace, const Golden *meta) {
    const SynergyModel *models = read_models(a, meta);
    SynergyJob         *jobs = arena_new(a, SynergyJob, trace->n);
    for (uint32_t i = 0; i < trace->n; i++) {
        const GoldenRow *r = &trace->rows[i];
        jobs[i] = (SynergyJob){
            .arrival_s = r->at[2], .iterations = (int64_t)r->at[3], .gpus = (uint32_t)r->at[4]};
        for (uint32_t m = 0; m < meta->n && !jobs[i].model; m++)
            if (meta->rows[m].at[2] == 1 && !strcmp(models[m].name, r->word))
                jobs[i].model = &models[m];
        assert_non_null(jobs[i].model);
    }
    return jobs;
}

// Every completion time, to the millisecond they are written with.
static void test_agrees_with_golden(void **state) {
    (void)state;
    Arena  a;
    Golden trace, meta, said;
    assert_int_equal(arena_init(&a, 64 << 20), ERR_OK);
    if (!golden_read("golden/synergy/static100.trace", false, &a, &trace) ||
        !golden_read("synergy/models_meta.csv", true, &a, &meta)) {
        arena_finish(&a);
        print_message("skipped: no golden/synergy; COTENANT_CLUSTER_DATA says where\n");
        skip();
    }
    SynergyJob *jobs = read_jobs(&a, &trace, &meta);
    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
        char name[64];
        snprintf(name, sizeof name, "golden/synergy/static100_%s.csv", runs[r].file);
        assert_true(golden_read(name, true, &a, &said));
        assert_int_equal(said.n, 100);
        assert_int_equal(trace.n, 100);
        SynergySetup setup = cluster(runs[r].order, runs[r].share, 4, 8);
        assert_true(synergy_run(&setup, jobs, trace.n, &a));
        for (uint32_t i = 0; i < said.n; i++)
            assert_int_equal(lround(1000 * (jobs[i].end_s - jobs[i].arrival_s)),
                             lround(1000 * said.rows[i].at[1]));
    }
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_greedy_skips),
        cmocka_unit_test(test_tune_takes_back),
        cmocka_unit_test(test_srtf_goes_by_the_last_speed),
        cmocka_unit_test(test_las_counts_gpu_time),
        cmocka_unit_test(test_ftf_serves_the_least_delayed),
        cmocka_unit_test(test_jobs_spread),
        cmocka_unit_test(test_best_is_cut_to_a_server),
        cmocka_unit_test(test_arrivals),
        cmocka_unit_test(test_agrees_with_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
