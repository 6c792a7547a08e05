// ServerPlan allocates no more than the capacity, nearly as well as an exhaustive search over
// levels; and the agents' rates of running tasks equal the simulator's.
#include "policy/cluster/maifs/server_plan.h"

#include "contract/rate.h"
#include "tests/policy/maifs_case.h"
#include "tests/runner.h"

enum { JOBS = 80, RESIDENTS = 4, GPUS = 8 };

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

typedef struct SmallPlan {  // a server with residents
    ClusterServer   server;
    ClusterSetup    setup;
    ClusterProfiles profiles;
    uint32_t        type;
    TaskUtility     utilities[RESIDENTS];
    ServerPlan      plan;
} SmallPlan;

static ClusterJob little_job(const SmallPlan *x, uint32_t gpus, Rng *rng) {
    return (ClusterJob){.gpus = gpus,
                        .gpu_milli = CLUSTER_WHOLE_GPU,
                        .cores_milli = gpus * (1000 + (uint32_t)rng_below(rng, 4000)),
                        .memory_mib = gpus * (10000 + (uint32_t)rng_below(rng, 90000)),
                        .class = (uint32_t)rng_below(rng, x->profiles.n),
                        .tenant = CLUSTER_NONE};
}

static void little_guest(SmallPlan *x, uint32_t i, uint32_t first, uint32_t gpus, Rng *rng) {
    static const UtilityParams rules = {.unknown_left_s = 600};
    ClusterJob                 j = little_job(x, gpus, rng);
    Resident                   g = {.task = i,
                                    .gpus = (uint8_t)gpus,
                                    .cap = UTILITY_LEVELS,
                                    .spread_factor = 1,
                                    .incoming = true};
    task_utility_init(&x->utilities[i], &x->setup, &j, &rules);
    x->utilities[i].value = rng_unit(rng) + 0.01f;
    g.mask = ((UINT64_C(1) << gpus) - 1) << first;
    server_plan_add(&x->plan, &g);
}

// Residents with cores and memory between their minimum and their maximum.
static void little(SmallPlan *x, Rng *rng) {
    uint32_t n = 1 + (uint32_t)rng_below(rng, RESIDENTS), first = 0;
    uint64_t least[2] = {0}, most[2] = {0};
    *x = (SmallPlan){.profiles = x->profiles, .server = {.gpus = GPUS}};
    x->setup = (ClusterSetup){.servers = &x->server,
                              .profiles = &x->profiles,
                              .profile_type = &x->type,
                              .n_servers = 1,
                              .most_gpus = GPUS,
                              .gpus = GPUS,
                              .cores_milli = 32000,
                              .memory_mib = 500000};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t gpus = 1 + (uint32_t)rng_below(rng, 2);
        little_guest(x, i, first, gpus, rng);
        first += gpus;
        const TaskUtility *w = &x->utilities[i];
        least[0] += (uint64_t)gpus * w->levels[0].cores_milli;
        least[1] += (uint64_t)gpus * w->levels[0].memory_mib;
        most[0] += (uint64_t)gpus * w->levels[w->n_levels - 1].cores_milli;
        most[1] += (uint64_t)gpus * w->levels[w->n_levels - 1].memory_mib;
    }
    x->server.cores_milli = (uint32_t)(least[0] + rng_below(rng, most[0] - least[0] + 2));
    x->server.memory_mib = (uint32_t)(least[1] + rng_below(rng, most[1] - least[1] + 2));
    x->plan.gpus = GPUS;
    x->plan.cores_milli = x->server.cores_milli;
    x->plan.memory_mib = x->server.memory_mib;
}

static double search(const SmallPlan *x, uint32_t i, int64_t cores, int64_t memory) {
    double best = -1e9;
    if (i == x->plan.n || i == RESIDENTS) return 0;
    const TaskUtility *w = &x->utilities[i];
    for (uint32_t r = 0; r < w->n_levels; r++) {
        int64_t c = cores - (int64_t)w->gpus * w->levels[r].cores_milli;
        int64_t m = memory - (int64_t)w->gpus * w->levels[r].memory_mib;
        if (c < 0 || m < 0) break;
        best = fmax(best, (double)w->value * (double)w->levels[r].rate + search(x, i + 1, c, m));
    }
    return best;
}

static void holds(const SmallPlan *x) {
    uint64_t cores = 0, memory = 0;
    double   utility = 0;
    for (uint32_t i = 0; i < x->plan.n; i++) {
        const Resident    *g = &x->plan.at[i];
        const TaskUtility *w = &x->utilities[g->task];
        cores += g->cores_milli;
        memory += g->memory_mib;
        utility += (double)(w->value * w->levels[g->level].rate);
        assert_int_equal(g->cores_milli, g->gpus * w->levels[g->level].cores_milli);
        assert_int_equal(g->memory_mib, g->gpus * w->levels[g->level].memory_mib);
        assert_int_equal(g->milli, CLUSTER_WHOLE_GPU);
    }
    assert_true(cores <= x->plan.cores_milli && memory <= x->plan.memory_mib);
    assert_true(fabs(utility - x->plan.utility) < 1e-5);
}

// Amounts rise with the level, and the gain per cost falls.
static void ladder(const TaskUtility *w) {
    for (uint32_t r = 1; r < w->n_levels; r++) {
        assert_true(w->levels[r].cores_milli >= w->levels[r - 1].cores_milli);
        assert_true(w->levels[r].memory_mib >= w->levels[r - 1].memory_mib);
        assert_true(w->levels[r].rate >= w->levels[r - 1].rate);
    }
}

static void test_deals_nearly_best(void **state) {
    (void)state;
    SmallPlan *x = arena_new(&arena, SmallPlan, 1);
    Rng        rng = {5};
    double     ratio = 0, least = 1;
    assert_int_equal(profile_load(NULL, &arena, &x->profiles), ERR_OK);
    enum { CASES = 2000 };
    for (uint32_t k = 0; k < CASES; k++) {
        little(x, &rng);
        for (uint32_t i = 0; i < x->plan.n; i++) ladder(&x->utilities[i]);
        server_plan_allocate(&x->plan, &x->setup, x->utilities);
        holds(x);
        double best = search(x, 0, x->plan.cores_milli, x->plan.memory_mib);
        assert_true(x->plan.utility <= best * (1 + 1e-6));
        ratio += x->plan.utility / best / CASES;
        least = fmin(least, x->plan.utility / best);
    }
    print_message("allocated: %.4f of the best on average, %.3f at worst\n", ratio, least);
    assert_true(ratio >= 0.97);
    assert_true(least >= 0.6);
}

// Headroom and its utility equal the result of an allocation; victims do not count.
static void test_fill_foretells_deal(void **state) {
    (void)state;
    SmallPlan *x = arena_new(&arena, SmallPlan, 1);
    Rng        rng = {6};
    assert_int_equal(profile_load(NULL, &arena, &x->profiles), ERR_OK);
    for (uint32_t k = 0; k < 500; k++) {
        Headroom  f;
        VictimSet go = {{0}};
        little(x, &rng);
        server_plan_allocate(&x->plan, &x->setup, x->utilities);
        uint32_t out = (uint32_t)rng_below(&rng, x->plan.n);
        victim_set_put(&go, out, true);
        server_plan_headroom(&x->plan, &go, x->utilities, &f);
        double told = headroom_utility(&f, f.cores_milli, f.memory_mib);
        server_plan_remove(&x->plan, x->plan.at[out].task);
        server_plan_allocate(&x->plan, &x->setup, x->utilities);
        assert_true(fabs(told - x->plan.utility) < 1e-5);
    }
}

typedef struct Belief {
    uint64_t residents, shared, sliced;
    double   worst;
} Belief;

static void compare(Belief *b, const ClusterView *v, const Resident *g, const TaskUtility *w) {
    const ClusterTask *t = &v->tasks[g->task];
    double             off = fabs((double)resident_rate(g, w) - t->rate) / t->rate;
    b->residents++;
    b->shared += g->rate_factor < g->spread_factor;
    b->sliced += g->sliced;
    b->worst = fmax(b->worst, off);
    if (off > 1e-4)
        print_error("job %lu: %u GPUs in %u slices, level %u: believed %f, is %f\n",
                    (unsigned long)t->job.id, t->job.gpus, t->n_slices, g->level,
                    (double)resident_rate(g, w), t->rate);
    assert_true(off <= 1e-4);
}

// At the beginning of a decision agents have the simulator's rate of every resident.
static void believe(void *self, const ClusterView *v, const void *state) {
    Maifs *m = (Maifs *)(uintptr_t)state;
    double utility = 0, sum = 0;
    if ((v->reason & CLUSTER_JOB_ENDED) != 0) return;  // rates are from before the job ended
    maifs_observe(m, v);
    for (uint32_t i = 0; i < v->n_running; i++)
        sum += (double)m->utilities[v->running[i]].value * v->tasks[v->running[i]].rate;
    for (uint32_t s = 0; s < v->setup->n_servers; s++) {
        const ServerPlan *h = &m->plans[s];
        for (uint32_t g = 0; g < h->n; g++)
            compare(self, v, &h->at[g], &m->utilities[h->at[g].task]);
        utility += h->utility;
    }
    assert_true(fabs(utility - sum) <= 1e-4 * sum);
}

static void test_believes_what_is(void **state) {
    (void)state;
    static const char *const crowded[] = {"gpu_tasks=4", NULL};
    Belief                   b = {0};
    for (uint32_t with = 1; with < CLUSTER_CASE_KINDS; with += 2) {
        size_t        mark = arena.used;
        ClusterCase   x = cluster_case_random(with, JOBS, with + 1, &arena);
        MaifsCase     c = {.seed = 1, .watch = believe, .watcher = &b};
        ClusterResult r;
        if (with % 4 == 3) c.set = crowded;
        Err e = maifs_case_run(&x, &c, &arena, &r);
        if (e != ERR_OK) print_error("%s\n", err_why());
        assert_int_equal(e, ERR_OK);
        arena_rewind(&arena, mark);
    }
    print_message("believed: %lu residents, %lu with company, %lu slices; off by %.1e at most\n",
                  (unsigned long)b.residents, (unsigned long)b.shared, (unsigned long)b.sliced,
                  b.worst);
    assert_true(b.shared > 100 && b.sliced > 100);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deals_nearly_best),
        cmocka_unit_test(test_fill_foretells_deal),
        cmocka_unit_test(test_believes_what_is),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
