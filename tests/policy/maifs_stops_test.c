// maifs under limits on stops: a task's stops are spread over its work, and a task that may be
// stopped no more shares its GPUs with nothing but short tasks.
#include "tests/policy/maifs_case.h"
#include "tests/runner.h"

enum { JOBS = 120, MOST = 2 };

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)2 << 30) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

typedef struct Stops {
    TimeNs   since[JOBS], left[JOBS];  // of a running job before a decision
    uint32_t stops[JOBS];
    double   hasty;  // stops before their time; least part of the work left that a job ran
    double   least;
    uint64_t later, settled, beside;  // second stops; running settled tasks; those beside them
} Stops;

static void note(void *self, const ClusterView *v, const void *state) {
    Stops *s = self;
    (void)state;
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        s->since[t->job.id] = t->since;
        s->left[t->job.id] = cluster_left(v, t);
        s->stops[t->job.id] = t->preemptions;
    }
}

static bool meet(const ClusterTask *a, const ClusterTask *b) {
    for (uint32_t i = 0; i < a->n_slices; i++)
        for (uint32_t k = 0; k < b->n_slices; k++)
            if (a->slices[i].server == b->slices[k].server &&
                (a->slices[i].mask & b->slices[k].mask) != 0)
                return true;
    return false;
}

static void check_settled(Stops *s, const ClusterView *v, const ClusterTask *t) {
    s->settled++;
    for (uint32_t k = 0; k < v->n_running; k++) {
        const ClusterTask *o = &v->tasks[v->running[k]];
        if (o == t || !meet(o, t)) continue;
        s->beside++;
        if (o->entry < t->entry || cluster_left(v, o) > 600 * CLUSTER_SECOND) s->hasty++;
    }
}

static void check(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n) {
    Stops *s = self;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t id = v->tasks[plan[i].task].job.id;
        if (plan[i].verb != CLUSTER_PREEMPT || s->stops[id] == 0) continue;
        double part = (double)(v->now - s->since[id]) * (MOST - s->stops[id] + 1) /
                      fmax((double)s->left[id], 1e9);
        s->later++;
        s->least = fmin(s->least, part);
    }
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        if (t->preemptions >= MOST && t->job.gpus > 0) check_settled(s, v, t);
    }
}

static Stops run_all(const char *const *set) {
    Stops sum = {.least = INFINITY};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        size_t        mark = arena.used;
        uint32_t      with = CLUSTER_CASE_PROFILES | (seed % 2 ? CLUSTER_CASE_WIDE : 0);
        ClusterCase   x = cluster_case_random(with, JOBS, seed, &arena);
        Stops         s = {.least = INFINITY};
        MaifsCase     c = {.mind = (MaifsMind)(seed % MAIFS_MINDS),
                           .set = set,
                           .seed = seed,
                           .watch = note,
                           .after = check,
                           .watcher = &s};
        ClusterResult r;
        x.params.stops = (ClusterStopLimits){.max_stops = MOST};
        assert_int_equal(maifs_case_run(&x, &c, &arena, &r), ERR_OK);
        sum.hasty += s.hasty;
        sum.least = fmin(sum.least, s.least);
        sum.later += s.later;
        sum.settled += s.settled;
        sum.beside += s.beside;
        arena_rewind(&arena, mark);
    }
    return sum;
}

static void test_stops(void **state) {
    (void)state;
    static const char *const without[] = {"pace=0", "last_alone=no", NULL};
    Stops                    with = run_all(NULL), free = run_all(without);
    print_message(
        "second stops %lu, least part %.3f, beside settled %lu of %lu; without %lu, %.3f, "
        "%lu of %lu\n",
        (unsigned long)with.later, with.least, (unsigned long)with.beside,
        (unsigned long)with.settled, (unsigned long)free.later, free.least,
        (unsigned long)free.beside, (unsigned long)free.settled);
    assert_true(with.hasty == 0 && free.hasty > 0);
    assert_true(with.least >= 0.249 && free.least < 0.249);
    assert_true(with.later > 0 && with.settled > 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stops),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
