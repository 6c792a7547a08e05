#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/cluster/golden.h"
#include "tests/cluster/lucid.h"
#include "tests/runner.h"

typedef struct Expected {
    int64_t  start, end, queue;
    uint32_t preemptions;
} Expected;

static const char *const names[LUCID_POLICIES] = {"fifo", "sjf", "qssf", "srtf", "tiresias"};

static void expect(const LucidJob *j, Expected e) {
    assert_int_equal(j->start, e.start);
    assert_int_equal(j->end, e.end);
    assert_int_equal(j->queue, e.queue);
    assert_int_equal(j->preemptions, e.preemptions);
}

static void expect_run(LucidPolicy p, uint32_t nodes, uint32_t per_node, uint32_t n, LucidJob *jobs,
                       const Expected *expected) {
    Arena a;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_true(lucid_run(p, nodes, per_node, jobs, n, &a));
    for (uint32_t i = 0; i < n; i++) expect(&jobs[i], expected[i]);
    arena_finish(&a);
}

#define EXPECT_RUN(p, nodes, per_node, n, jobs, ...)                                               \
    expect_run(p, nodes, per_node, n, jobs, (Expected[n]){__VA_ARGS__})

// The second job blocks the third, which would fit.
static void test_fifo_blocks(void **state) {
    (void)state;
    LucidJob jobs[] = {{.submit = 0, .duration = 10, .gpus = 6},
                       {.submit = 1, .duration = 20, .gpus = 4},
                       {.submit = 2, .duration = 5, .gpus = 1}};
    EXPECT_RUN(LUCID_FIFO, 1, 8, 3, jobs, {0, 10, 0, 0}, {10, 30, 9, 0}, {10, 15, 8, 0});
}

// The shortest goes first but does not jump over one that waits for room and is shorter still.
static void test_sjf_takes_the_shortest(void **state) {
    (void)state;
    LucidJob jobs[] = {{.submit = 0, .duration = 10, .gpus = 8},
                       {.submit = 1, .duration = 20, .gpus = 1},
                       {.submit = 2, .duration = 5, .gpus = 8},
                       {.submit = 12, .duration = 1, .gpus = 8}};
    EXPECT_RUN(LUCID_SJF, 1, 8, 4, jobs, {0, 10, 0, 0}, {16, 36, 15, 0}, {10, 15, 8, 0},
               {15, 16, 3, 0});
}

// Arrivals at an empty queue are sorted by size, not by service: 1 GPU for 100 s goes first.
static void test_qssf_takes_small_arrivals_first(void **state) {
    (void)state;
    LucidJob jobs[] = {{.submit = 0, .duration = 10, .gpus = 8},
                       {.submit = 0, .duration = 100, .gpus = 1}};
    EXPECT_RUN(LUCID_QSSF, 1, 8, 2, jobs, {100, 110, 100, 0}, {0, 100, 0, 0});
}

// With older waiting jobs all are sorted by service, 60, 80 and 100 at 50 s. The one of 80 finds no
// room and blocks the one of 100, which would.
static void test_qssf_goes_by_service(void **state) {
    (void)state;
    LucidJob jobs[] = {{.submit = 0, .duration = 50, .gpus = 8},
                       {.submit = 1, .duration = 30, .gpus = 2},
                       {.submit = 2, .duration = 10, .gpus = 8},
                       {.submit = 2, .duration = 100, .gpus = 1}};
    EXPECT_RUN(LUCID_QSSF, 1, 8, 4, jobs, {0, 50, 0, 0}, {50, 80, 49, 0}, {80, 90, 78, 0},
               {90, 190, 88, 0});
}

// Equal service: the smaller first, though it came later. Equal in both: order of arrival.
static void test_qssf_breaks_ties_by_size(void **state) {
    (void)state;
    LucidJob jobs[] = {{.submit = 0, .duration = 50, .gpus = 8},
                       {.submit = 1, .duration = 5, .gpus = 8},
                       {.submit = 2, .duration = 8, .gpus = 5},
                       {.submit = 3, .duration = 8, .gpus = 5}};
    EXPECT_RUN(LUCID_QSSF, 1, 8, 4, jobs, {0, 50, 0, 0}, {66, 71, 65, 0}, {50, 58, 48, 0},
               {58, 66, 55, 0});
}

// An undisturbed run takes a second longer than the job.
static void test_srtf_runs_a_second_longer(void **state) {
    (void)state;
    LucidJob jobs[] = {{.submit = 7, .duration = 10, .gpus = 8}};
    EXPECT_RUN(LUCID_SRTF, 1, 8, 1, jobs, {7, 18, 0, 0});
}

// At 4 the first has 100 - 4 = 96 left, more than 10: it stops with 136, waits until the other is
// over at 4 + 11 and needs 137 seconds more.
static void test_srtf_charges_the_stop(void **state) {
    (void)state;
    LucidJob jobs[] = {{.submit = 0, .duration = 100, .gpus = 8},
                       {.submit = 4, .duration = 10, .gpus = 1}};
    EXPECT_RUN(LUCID_SRTF, 1, 8, 2, jobs, {0, 152, 11, 1}, {4, 15, 0, 0});
}

// On equal time left those that wait come first: at 10 both have 90, and the one that runs stops.
static void test_srtf_prefers_those_that_wait(void **state) {
    (void)state;
    LucidJob jobs[] = {{.submit = 0, .duration = 100, .gpus = 8},
                       {.submit = 10, .duration = 90, .gpus = 8}};
    EXPECT_RUN(LUCID_SRTF, 1, 8, 2, jobs, {0, 232, 91, 1}, {10, 101, 0, 0});
}

// No job blocks: the third is behind the first (19 s left at 1) and too large for the 4 GPUs left,
// so the second has them. When the first is over, 30 < 179: the third starts, the second stops with
// 219 and starts again at 52.
static void test_srtf_passes_over_the_large(void **state) {
    (void)state;
    LucidJob jobs[] = {{.submit = 0, .duration = 20, .gpus = 4},
                       {.submit = 0, .duration = 200, .gpus = 4},
                       {.submit = 1, .duration = 30, .gpus = 5}};
    EXPECT_RUN(LUCID_SRTF, 1, 8, 3, jobs, {0, 21, 0, 0}, {0, 272, 31, 1}, {21, 52, 20, 0});
}

// 16 - 5 - 5 = 6 are granted to the third, which no node can hold (3 and 3 are free); the fourth
// finds no quota left, though 6 GPUs idle. At 11 the first is over and both start.
static void test_srtf_spends_quota_in_vain(void **state) {
    (void)state;
    LucidJob jobs[] = {{.submit = 0, .duration = 10, .gpus = 5},
                       {.submit = 0, .duration = 11, .gpus = 5},
                       {.submit = 1, .duration = 40, .gpus = 6},
                       {.submit = 2, .duration = 300, .gpus = 1}};
    EXPECT_RUN(LUCID_SRTF, 2, 8, 4, jobs, {0, 11, 0, 0}, {0, 12, 0, 0}, {11, 52, 10, 0},
               {11, 312, 9, 0});
}

// Decisions at whole minutes only, and a job over at 61 leaves the cluster idle until 120.
static void test_tiresias_decides_by_the_minute(void **state) {
    (void)state;
    LucidJob jobs[] = {{.submit = 0, .duration = 60, .gpus = 8},
                       {.submit = 1, .duration = 30, .gpus = 8}};
    EXPECT_RUN(LUCID_TIRESIAS, 1, 8, 2, jobs, {0, 61, 0, 0}, {120, 151, 119, 0});
}

// With 8 GPUs the limit of 18,000 GPU seconds is passed at 2251: from 2280 on the second, which
// arrived later, is in the upper queue. It runs 601 seconds, to 2881; the first waits for the next
// minute.
static void test_tiresias_steps_down(void **state) {
    (void)state;
    LucidJob jobs[] = {{.submit = 0, .duration = 3000, .gpus = 8},
                       {.submit = 10, .duration = 600, .gpus = 4}};
    EXPECT_RUN(LUCID_TIRESIAS, 1, 8, 2, jobs, {0, 2940 + 760 + 1, 660, 1}, {2280, 2881, 2270, 0});
}

// 12 GPUs: a whole node, and 4 on the emptiest of the others, not on the fullest that would do.
static void test_wide_jobs_take_whole_nodes(void **state) {
    (void)state;
    LucidJob jobs[] = {{.submit = 0, .duration = 100, .gpus = 4},
                       {.submit = 1, .duration = 100, .gpus = 12},
                       {.submit = 2, .duration = 10, .gpus = 4},
                       {.submit = 3, .duration = 10, .gpus = 4},
                       {.submit = 4, .duration = 10, .gpus = 5}};
    EXPECT_RUN(LUCID_FIFO, 3, 8, 5, jobs, {0, 100, 0, 0}, {1, 101, 0, 0}, {2, 12, 0, 0},
               {3, 13, 0, 0}, {100, 110, 96, 0});
}

static void test_refuses_what_never_ends(void **state) {
    (void)state;
    Arena a;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    LucidJob large = {.submit = 0, .duration = 1, .gpus = 17}, none = {.duration = 0, .gpus = 1};
    assert_false(lucid_run(LUCID_FIFO, 2, 8, &large, 1, &a));
    assert_false(lucid_run(LUCID_FIFO, 2, 8, &none, 1, &a));
    arena_finish(&a);
}

static uint32_t count_unequal(const LucidJob *jobs, const Golden *said) {
    uint32_t unequal = 0;
    for (uint32_t i = 0; i < said->n; i++) {
        const double *s = said->rows[i].at;
        unequal += (double)jobs[i].start != s[4] || (double)jobs[i].end != s[5] ||
                   (double)jobs[i].queue != s[6] || jobs[i].preemptions != s[8];
    }
    return unequal;
}

// Every job's start, end, waiting time and preemptions, as the published simulator printed them.
static void test_agrees_with_golden(void **state) {
    (void)state;
    Arena  a;
    Golden trace, said;
    assert_int_equal(arena_init(&a, 64 << 20), ERR_OK);
    if (!golden_read("golden/lucid_philly10n/jobs.csv", true, &a, &trace)) {
        arena_finish(&a);
        print_message("skipped: no golden/lucid_philly10n; COTENANT_CLUSTER_DATA says where\n");
        skip();
    }
    assert_int_equal(trace.n, 1092);
    LucidJob *jobs = arena_new(&a, LucidJob, trace.n);
    for (uint32_t i = 0; i < trace.n; i++) {
        const double *r = trace.rows[i].at;
        jobs[i] =
            (LucidJob){.submit = (int64_t)r[2], .duration = (int64_t)r[3], .gpus = (uint32_t)r[1]};
    }
    for (LucidPolicy p = 0; p < LUCID_POLICIES; p++) {
        char name[64];
        snprintf(name, sizeof name, "golden/lucid_philly10n/%s.csv", names[p]);
        assert_true(golden_read(name, true, &a, &said));
        assert_int_equal(said.n, trace.n);
        assert_true(lucid_run(p, 10, 8, jobs, trace.n, &a));
        assert_int_equal(count_unequal(jobs, &said), 0);
    }
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fifo_blocks),
        cmocka_unit_test(test_sjf_takes_the_shortest),
        cmocka_unit_test(test_qssf_takes_small_arrivals_first),
        cmocka_unit_test(test_qssf_goes_by_service),
        cmocka_unit_test(test_qssf_breaks_ties_by_size),
        cmocka_unit_test(test_srtf_runs_a_second_longer),
        cmocka_unit_test(test_srtf_charges_the_stop),
        cmocka_unit_test(test_srtf_prefers_those_that_wait),
        cmocka_unit_test(test_srtf_passes_over_the_large),
        cmocka_unit_test(test_srtf_spends_quota_in_vain),
        cmocka_unit_test(test_tiresias_decides_by_the_minute),
        cmocka_unit_test(test_tiresias_steps_down),
        cmocka_unit_test(test_wide_jobs_take_whole_nodes),
        cmocka_unit_test(test_refuses_what_never_ends),
        cmocka_unit_test(test_agrees_with_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
