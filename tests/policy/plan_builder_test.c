// PlanBuilder and Pack under a policy of random changes: plans are legal (the simulator aborts
// otherwise), and the result is what was built.
#include "tests/policy/cluster_case.h"

#include "policy/cluster/common/colocation.h"
#include "tests/runner.h"

enum { JOBS = 400, SERVERS = 4 };

static Arena arena;

typedef struct RandomPolicy {
    PlanBuilder  builder;
    Rng          rng;
    ClusterSlice had[JOBS];  // the first slice of each task in the last plan
    uint64_t     job[JOBS];  // its job plus 1; 0: waits
} RandomPolicy;

static uint64_t packs, levels, ousted, hopeless;

static size_t wild_size(const ClusterSetup *s, const void *settings) {
    (void)settings;
    RandomPolicy w = {.rng = {0}};
    Carve        c = {.used = sizeof w};
    plan_builder_carve(&w.builder, s, &c);
    return c.used;
}

static void wild_init(void *state, const ClusterSetup *s, const void *settings,
                      const void *loaded) {
    (void)settings;
    (void)loaded;
    RandomPolicy *w = state;
    Carve         c = {.base = state, .used = sizeof *w};
    plan_builder_carve(&w->builder, s, &c);
    w->rng = s->rng;
}

static void check_last(const RandomPolicy *w, const ClusterView *v) {
    for (uint32_t i = 0; i < v->n_running; i++) {
        uint32_t            slot = v->running[i];
        const ClusterSlice *a = &v->tasks[slot].slices[0], *b = &w->had[slot];
        assert_true(w->job[slot] == v->tasks[slot].job.id + 1);
        assert_true(a->mask == b->mask && a->server == b->server && a->gpu_milli == b->gpu_milli);
        assert_true(a->cores_milli == b->cores_milli && a->memory_mib == b->memory_mib);
    }
}

static void note(RandomPolicy *w, const ClusterView *v) {
    for (uint32_t slot = 0; slot < v->setup->n_slots; slot++) {
        uint32_t            n = 0;
        const ClusterSlice *s = plan_builder_slices(&w->builder, slot, &n);
        w->job[slot] = 0;
        if (v->tasks[slot].state == CLUSTER_GONE || s == NULL) continue;
        w->job[slot] = v->tasks[slot].job.id + 1;
        w->had[slot] = s[0];
    }
}

static void change_running(RandomPolicy *w, uint32_t slot) {
    uint32_t n = 0;
    if (pack_alone(&w->builder, slot)) pack_restore(&w->builder, slot);
    const ClusterSlice *s = plan_builder_slices(&w->builder, slot, &n);
    if (s == NULL) return;
    switch (rng_below(&w->rng, 6)) {
    case 0:
        plan_builder_stop(&w->builder, slot);
        if (rng_below(&w->rng, 2) == 0) (void)plan_builder_place(&w->builder, slot);
        break;
    case 1:
        levels +=
            plan_builder_resize(&w->builder, slot, s->gpu_milli, 1000 + rng_unit(&w->rng) * 4000,
                                20000 + rng_unit(&w->rng) * 60000);
        break;
    default: break;
    }
}

static void change_waiting(RandomPolicy *w, const ClusterView *v, uint32_t slot) {
    uint32_t          has = 0;
    const ClusterJob *j = &v->tasks[slot].job;
    PackSplit         x;
    ClusterAction     a;
    if (plan_builder_slices(&w->builder, slot, &has) != NULL ||
        plan_builder_place(&w->builder, slot))
        return;
    hopeless++;
    assert_false(placement_place(&w->builder.free, slot, &a));  // a known misfit does not fit
    for (uint32_t i = 0; i < v->n_running; i++)
        if (pack_try(&w->builder, v->running[i], slot, &x) && x.sum > 1 &&
            pack_join(&w->builder, v->running[i], slot, &x)) {
            packs++;
            return;
        }
    if (rng_below(&w->rng, 3) > 0) return;
    uint32_t free = w->builder.free.n_free;
    bool     placed = plan_builder_preempt(&w->builder, slot, j, v->running, v->n_running);
    ousted += placed;
    if (!placed) assert_int_equal(w->builder.free.n_free, free);
}

static uint32_t wild_decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    RandomPolicy *w = state;
    check_last(w, v);
    plan_builder_begin(&w->builder, v);
    for (uint32_t i = 0; i < v->n_running; i++) change_running(w, v->running[i]);
    for (uint32_t i = 0; i < v->n_waiting; i++) change_waiting(w, v, v->waiting[i]);
    note(w, v);
    uint32_t n = plan_builder_write(&w->builder, out);
    assert_true(n < max);
    out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = v->now + 600 * CLUSTER_SECOND};
    return n;
}

static const ClusterPolicy random_policy = {.name = "random_policy",
                                            .knows = CLUSTER_BLIND,
                                            .preempts = true,
                                            .state_size = wild_size,
                                            .init = wild_init,
                                            .decide = wild_decide};

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 30) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static void test_wild_drafts(void **state) {
    (void)state;
    for (uint32_t with = 0; with < CLUSTER_CASE_KINDS; with += 3) {
        size_t        mark = arena.used;
        ClusterCase   x = cluster_case_random(with, JOBS, with, &arena);
        ClusterResult r;
        ClusterRun    run = {.jobs = &x.jobs,
                             .servers = &x.servers,
                             .profiles = x.profiles,
                             .class_of = x.class_of,
                             .params = x.params,
                             .policy = &random_policy,
                             .seed = with};
        assert_int_equal(cluster_simulate(&run, &arena, &r), ERR_OK);
        arena_rewind(&arena, mark);
    }
    assert_true(packs > 100 && levels > 1000 && ousted > 100 && hopeless > 1000);
}

// Against many random splits in which no task is more than twice as slow as with an equal part.
static void test_split_is_good(void **state) {
    (void)state;
    ClusterCase x = cluster_case_random(CLUSTER_CASE_PROFILES, 2, 7, &arena);
    Rng         r = {3};
    for (uint32_t k = 0; k < 400; k++) {
        ClusterJob a = {.gpus = 1, .gpu_milli = 1000, .cores_milli = 3000, .memory_mib = 64000};
        ClusterJob b = a;
        a.class = (uint32_t)rng_below(&r, x.profiles->n);
        b.class = (uint32_t)rng_below(&r, x.profiles->n);
        ClusterSetup      s = {.profiles = x.profiles, .most_gpus = 8};
        const ClusterJob *jobs[2] = {&a, &b};
        PackSplit         got;
        double best = 0, cores = 2000 + rng_unit(&r) * 7000, mib = 48000 + 80000 * rng_unit(&r);
        if (!pack_may(&s, &a, &b)) continue;
        pack_split(&s, jobs, 2, cores, mib, NULL, &got);
        double share[2] = {profile_pair(x.profiles, a.class, b.class),
                           profile_pair(x.profiles, b.class, a.class)};
        double half[2] = {pack_speed(&s, &a, cores / 2, mib / 2) / 2,
                          pack_speed(&s, &b, cores / 2, mib / 2) / 2};
        for (uint32_t i = 0; i < 2000; i++) {
            double c = rng_unit(&r) * cores, m = rng_unit(&r) * mib;
            double one = pack_speed(&s, &a, c, m), two = pack_speed(&s, &b, cores - c, mib - m);
            double sum = one * share[0] + two * share[1];
            if (one > half[0] && two > half[1] && sum > best) best = sum;
        }
        assert_true(got.sum > 0.85 * best);
        assert_true(got.cores_milli[0] + got.cores_milli[1] < cores + 1e-6);
        assert_true(got.mib[0] + got.mib[1] < mib + 1e-6);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wild_drafts),
        cmocka_unit_test(test_split_is_good),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
