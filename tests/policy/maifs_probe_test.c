// maifs probes tasks whose rate at other amounts is uncertain: each once, with fewer cores than its
// default, until it is measured; and none where beliefs are exact.
#include "tests/policy/maifs_case.h"
#include "tests/runner.h"

enum { JOBS = 120 };

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

typedef struct Probes {
    bool     probed[JOBS];
    uint64_t begun, seen;  // seen open at later decisions
    TimeNs   longest;
} Probes;

static void watch(void *self, const ClusterView *v, const void *state) {
    Probes      *p = self;
    const Maifs *m = state;
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        const MaifsProbe  *x = &m->probes[v->running[i]];
        if (!x->open || x->job != t->job.id + 1 || t->since > x->begin) continue;
        p->seen++;
        if (v->now - x->begin > p->longest) p->longest = v->now - x->begin;
    }
}

static void check(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n) {
    Probes *p = self;
    for (uint32_t i = 0; i < n; i++) {
        const ClusterTask *t = &v->tasks[plan[i].task];
        if (plan[i].verb != CLUSTER_RESIZE || !plan[i].probe) continue;
        assert_false(p->probed[t->job.id]);
        assert_true(t->spread.rate_sd > 0 && t->n_slices == 1);
        assert_true(t->slices[0].cores_milli == t->job.cores_milli / 3);
        p->probed[t->job.id] = true;
        p->begun++;
    }
}

static Probes run_with(const char *told, const char *const *set, uint64_t seed) {
    ClusterCase   x = cluster_case_random(CLUSTER_CASE_PROFILES, JOBS, seed, &arena);
    Probes        p = {.begun = 0};
    MaifsCase     c = {.mind = MAIFS_SHIPPED,
                       .set = set,
                       .seed = seed,
                       .watch = watch,
                       .after = check,
                       .watcher = &p,
                       .told = told};
    ClusterResult r;
    Err           e = maifs_case_run(&x, &c, &arena, &r);
    if (e != ERR_OK) print_error("%s\n", err_why());
    assert_int_equal(e, ERR_OK);
    return p;
}

static void test_probes(void **state) {
    (void)state;
    static const char *const never[] = {"probing=0", NULL};
    uint64_t                 begun = 0, seen = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        size_t mark = arena.used;
        Probes p = run_with("blind", NULL, seed);
        begun += p.begun;
        seen += p.seen;
        assert_true(p.longest <= 136 * CLUSTER_SECOND);
        assert_int_equal(run_with("blind", never, seed).begun, 0);
        assert_int_equal(run_with(NULL, NULL, seed).begun, 0);
        arena_rewind(&arena, mark);
    }
    print_message("%lu probes\n", (unsigned long)begun);
    assert_true(begun > 20 && seen > begun);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probes),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
