// Stances: their network and gradients, and what each row changes in a run: victims, levels, probes
// and GPUs that are held.
#include "policy/cluster/maifs/stance.h"

#include "tests/policy/maifs_case.h"
#include "tests/runner.h"

enum { JOBS = 60 };

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)4 << 30) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static void test_mean(void **state) {
    (void)state;
    float  even[STANCES] = {0}, one[STANCES] = {0};
    Stance usual = stance_usual(), mean = stance_mean(even);
    assert_true(fabsf(mean.victims - usual.victims) < 1e-5f && mean.hold == 0);
    assert_true(fabsf(mean.levels - usual.levels) < 1e-5f);
    assert_true(fabsf(mean.probes - usual.probes) < 1e-5f);
    for (uint32_t row = 0; row < STANCES; row++) {
        Stance want = stance_row(row);
        one[row] = 40;
        mean = stance_mean(one);
        one[row] = 0;
        assert_true(fabsf(mean.victims - want.victims) < 1e-4f);
        assert_true(fabsf(mean.levels - want.levels) < 1e-4f);
        assert_true(fabsf(mean.probes - want.probes) < 1e-4f);
        assert_true(want.hold > 0 ? mean.hold > 0.8f : mean.hold == 0);
    }
}

static double loss_of(const float *w, size_t n, const float *x, const float *by) {
    float  hidden[4 * STANCE_HIDDEN], logits[4 * STANCES];
    double sum = 0;
    stance_logits(w, n, x, hidden, logits);
    for (size_t i = 0; i < n * STANCES; i++) sum += (double)logits[i] * (double)by[i];
    return sum;
}

static void test_gradient(void **state) {
    (void)state;
    enum { N = 4 };
    static float w[STANCE_PARAMS], g[STANCE_PARAMS];
    float        x[N * STANCE_FEATURES], by[N * STANCES], hidden[N * STANCE_HIDDEN];
    float        logits[N * STANCES];
    Rng          rng = {5};
    gradient_fill(&rng, w, STANCE_PARAMS, 0.5f);
    gradient_fill(&rng, x, N * STANCE_FEATURES, 1);
    gradient_fill(&rng, by, N * STANCES, 1);
    stance_logits(w, N, x, hidden, logits);
    stance_back(w, g, N, x, hidden, by);
    for (uint32_t k = 0; k < 64; k++) {
        size_t      i = rng_below(&rng, STANCE_PARAMS);
        const float step = 1e-3f;
        float       was = w[i];
        w[i] = was + step;
        double up = loss_of(w, N, x, by);
        w[i] = was - step;
        double down = loss_of(w, N, x, by);
        w[i] = was;
        double slope = (up - down) / (2 * (double)step);
        assert_true(fabs(slope - (double)g[i]) < 2e-2 * (1 + fabs(slope)));
    }
}

typedef struct Trail {  // plans before a time, and after it
    TimeNs   until;
    uint64_t before, after;
} Trail;

static void follow(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n) {
    Trail    *t = self;
    uint64_t *sum = v->now < t->until ? &t->before : &t->after;
    for (uint32_t i = 0; i < n; i++)
        *sum = *sum * 31 + plan[i].verb * 7 + plan[i].task + (uint64_t)v->now;
}

// A rollout repeats the run up to its decision.
static void test_rollout(void **state) {
    (void)state;
    TimeNs until = 2000 * CLUSTER_SECOND;
    Trail  trails[2] = {{.until = until}, {.until = until}};
    for (uint32_t i = 0; i < 2; i++) {
        ClusterCase   x = cluster_case_random(CLUSTER_CASE_PROFILES, JOBS, 3, &arena);
        MaifsCase     c = {.mind = MAIFS_RULES,
                           .row = i * STANCE_HOLD,
                           .from = until,
                           .told = "blind",
                           .seed = 3,
                           .after = follow,
                           .watcher = &trails[i]};
        ClusterResult r;
        assert_int_equal(maifs_case_run(&x, &c, &arena, &r), ERR_OK);
    }
    assert_true(trails[0].before != 0 && trails[0].before == trails[1].before);
    assert_true(trails[0].after != trails[1].after);
}

typedef struct Counts {
    uint64_t preempted, probed, resized;
} Counts;

static void count(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n) {
    Counts *c = self;
    (void)v;
    for (uint32_t i = 0; i < n; i++) {
        c->preempted += plan[i].verb == CLUSTER_PREEMPT;
        c->resized += plan[i].verb == CLUSTER_RESIZE;
        c->probed += plan[i].probe;
    }
}

// The same runs with all agents in one row.
static Counts run_all(uint32_t row, double *alive_s) {
    Counts sum = {0};
    *alive_s = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        size_t        mark = arena.used;
        uint32_t      with = CLUSTER_CASE_PROFILES | (seed % 2 ? CLUSTER_CASE_WIDE : 0);
        ClusterCase   x = cluster_case_random(with, JOBS, seed, &arena);
        MaifsCase     c = {.mind = MAIFS_RULES,
                           .row = row,
                           .told = "blind",
                           .seed = seed,
                           .after = count,
                           .watcher = &sum};
        ClusterResult r;
        x.params.stops = (ClusterStopLimits){300 * CLUSTER_SECOND, 4};
        assert_int_equal(maifs_case_run(&x, &c, &arena, &r), ERR_OK);
        *alive_s += (double)r.alive_ns / 1e9;
        arena_rewind(&arena, mark);
    }
    return sum;
}

// Every row changes what is done, each in its way.
static void test_rows(void **state) {
    (void)state;
    double alive_s[STANCES];
    Counts c[STANCES];
    for (uint32_t i = 0; i < STANCES; i++) {
        c[i] = run_all(i, &alive_s[i]);
        print_message("row %u: %lu stops, %lu probes, %lu resizes, %.0f s\n", i,
                      (unsigned long)c[i].preempted, (unsigned long)c[i].probed,
                      (unsigned long)c[i].resized, alive_s[i]);
        assert_true(i == STANCE_USUAL || alive_s[i] != alive_s[STANCE_USUAL]);
    }
    assert_true(c[STANCE_TRUST].probed < c[STANCE_USUAL].probed);
    assert_true(c[STANCE_USUAL].probed < c[STANCE_PROBE].probed);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_rollout),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
