// maifs: whatever its network outputs, plans are legal (the simulator aborts otherwise), every job
// ends, gangs run whole; the same seed gives the same bytes; the order of servers does not matter;
// coordination is never worse than plain arbitration.
#include "tests/policy/maifs_case.h"
#include "tests/runner.h"

enum { JOBS = 90 };

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

static void all_end(const ClusterCase *x, const MaifsCase *c, ClusterResult *r) {
    *r = (ClusterResult){0};
    Err e = maifs_case_run(x, c, &arena, r);
    if (e != ERR_OK) print_error("seed %lu: %s\n", (unsigned long)c->seed, err_why());
    assert_int_equal(e, ERR_OK);
    for (uint32_t i = 0; i < r->n; i++) {
        assert_true(r->ends[i].start >= x->jobs.at[i].submit);
        assert_true(r->ends[i].finish > r->ends[i].start);
    }
}

typedef struct Sums {
    uint64_t cores, memory, milli;
} Sums;

static void add_task(const ClusterTask *t, Sums *of) {
    uint32_t gpus = 0;
    for (uint32_t i = 0; i < t->n_slices; i++) {
        const ClusterSlice *s = &t->slices[i];
        gpus += s->gpus;
        assert_int_equal(__builtin_popcountll(s->mask), s->gpus);
        of[s->server].cores += s->cores_milli;
        of[s->server].memory += s->memory_mib;
        of[s->server].milli += (uint64_t)s->gpus * s->gpu_milli;
        for (uint32_t k = 0; k < i; k++) assert_true(t->slices[k].server != s->server);
    }
    assert_int_equal(gpus, t->job.gpus);
}

static bool allowed(const ClusterView *v, const ClusterTask *t) {
    for (uint32_t i = 0; i < t->n_slices && t->job.gpu_types != 0 && t->job.gpus > 0; i++)
        if ((t->job.gpu_types >> v->setup->servers[t->slices[i].server].type & 1) == 0)
            return false;
    return true;
}

static void whole_gangs(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n) {
    Sums of[64] = {{0}};
    (void)plan;
    *(uint64_t *)self += n;
    assert_true(v->setup->n_servers <= 64);
    for (uint32_t i = 0; i < v->n_waiting; i++)
        assert_int_equal(v->tasks[v->waiting[i]].n_slices, 0);
    for (uint32_t i = 0; i < v->n_running; i++) {
        add_task(&v->tasks[v->running[i]], of);
        assert_true(allowed(v, &v->tasks[v->running[i]]));
    }
    for (uint32_t i = 0; i < v->setup->n_servers; i++) {
        const ClusterServer *s = &v->setup->servers[i];
        assert_true(of[i].cores <= s->cores_milli && of[i].memory <= s->memory_mib);
        assert_true(of[i].milli <= (uint64_t)s->gpus * CLUSTER_WHOLE_GPU);
    }
}

static void test_every_kind(void **state) {
    (void)state;
    for (uint32_t with = 0; with < CLUSTER_CASE_KINDS; with++)
        for (MaifsMind mind = MAIFS_RULES; mind < MAIFS_MINDS; mind++) {
            size_t        mark = arena.used;
            uint64_t      steps = 0;
            ClusterCase   x = cluster_case_random(with, JOBS, with + 1, &arena);
            MaifsCase     c = {.mind = mind, .seed = with, .after = whole_gangs, .watcher = &steps};
            ClusterResult r;
            if (mind != MAIFS_RULES && with % 3 != (uint32_t)mind) continue;
            all_end(&x, &c, &r);
            assert_true(steps >= JOBS);
            arena_rewind(&arena, mark);
        }
}

static void test_settings(void **state) {
    (void)state;
    static const char *const sets[][3] = {
        {"attention=no"},
        {"coordination=independent"},
        {"coordination=arbitration", "epoch_s=300"},
        {"coordination=graph"},
        {"coordination=graph_rebids", "epoch_s=60"},
        {"coordination=everything"},
        {"coordination=auction", "epoch_s=300"},
        {"demand=fixed"},
        {"two_step=yes"},
        {"gpu_tasks=1"},
        {"gpu_tasks=4"},
        {"slices=no"},
        {"migrations=0"},
        {"window=1"},
        {"window=3", "migrations=9"},
        {"evict_margin=0", "restart_weight=0"},
        {"migrations=256"},
        {"pace=0", "last_alone=no"},
    };
    for (uint32_t k = 0; k < sizeof sets / sizeof *sets; k++)
        for (uint32_t seed = 0; seed < 3; seed++) {
            size_t        mark = arena.used;
            uint64_t      steps = 0;
            ClusterCase   x = cluster_case_random(seed * 37 % CLUSTER_CASE_KINDS |
                                                      CLUSTER_CASE_PROFILES | CLUSTER_CASE_WIDE,
                                                  JOBS, k + 1, &arena);
            MaifsCase     c = {.mind = (MaifsMind)(seed % MAIFS_MINDS),
                               .set = sets[k],
                               .seed = seed,
                               .after = whole_gangs,
                               .watcher = &steps};
            ClusterResult r;
            all_end(&x, &c, &r);
            arena_rewind(&arena, mark);
        }
}

// Of sizes that no network was trained on; gangs that fill the cluster.
static void test_sizes(void **state) {
    (void)state;
    static const uint32_t sizes[][2] = {{1, 8}, {3, 4}, {40, 8}, {24, 1}, {2, 64}, {7, 2}};
    for (uint32_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (MaifsMind mind = MAIFS_RULES; mind < MAIFS_MINDS; mind++) {
            size_t      mark = arena.used;
            uint64_t    steps = 0;
            uint32_t    all = sizes[k][0] * sizes[k][1];
            ClusterCase x =
                cluster_case_random(CLUSTER_CASE_PROFILES | CLUSTER_CASE_CPU | CLUSTER_CASE_WIDE,
                                    JOBS, k + 100, &arena);
            MaifsCase     c = {.mind = mind, .seed = k, .after = whole_gangs, .watcher = &steps};
            ClusterResult r;
            x.servers = cluster_case_servers(sizes[k][0], sizes[k][1], &arena).servers;
            for (uint32_t i = 0; i < JOBS; i++) {
                if (i % 9 == 0) x.jobs.at[i].gpus = all;
                if (x.jobs.at[i].gpus > all) x.jobs.at[i].gpus = all;
            }
            all_end(&x, &c, &r);
            arena_rewind(&arena, mark);
        }
}

static void test_same_seed_same_bytes(void **state) {
    (void)state;
    for (MaifsMind mind = MAIFS_RULES; mind < MAIFS_MINDS; mind++)
        for (uint32_t with = 5; with < CLUSTER_CASE_KINDS; with += 41) {
            size_t        mark = arena.used;
            ClusterCase   x = cluster_case_random(with, JOBS, 900 + with, &arena);
            MaifsCase     c = {.mind = mind, .seed = with};
            ClusterResult a, b;
            all_end(&x, &c, &a);
            all_end(&x, &c, &b);
            assert_memory_equal(a.ends, b.ends, JOBS * sizeof *a.ends);
            arena_rewind(&arena, mark);
        }
}

static void test_rounds_keep_what_a_full_computation_finds(void **state) {
    (void)state;
    for (MaifsMind mind = MAIFS_RULES; mind < MAIFS_MINDS; mind++)
        for (uint32_t seed = 0; seed < 6; seed++) {
            size_t        mark = arena.used;
            ClusterCase   x = cluster_case_random(CLUSTER_CASE_PROFILES | CLUSTER_CASE_WIDE, JOBS,
                                                  700 + seed, &arena);
            MaifsCase     c = {.mind = mind, .seed = seed};
            ClusterResult r[2];
            for (uint32_t i = 0; i < JOBS; i++) x.jobs.at[i].submit /= 20;  // so that many wait
            for (uint32_t all = 0; all < 2; all++) {
                c.recompute = all > 0;
                all_end(&x, &c, &r[all]);
            }
            assert_memory_equal(r[0].ends, r[1].ends, JOBS * sizeof *r[0].ends);
            arena_rewind(&arena, mark);
        }
}

// Different servers and every job with a class, so that no two servers are equal for a job.
static ClusterCase unlike(uint64_t seed, bool turned) {
    static const char *const types[] = {"v100", "p100", "a10", "a100"};
    ClusterCase              x = cluster_case_random(CLUSTER_CASE_PROFILES, JOBS, seed, &arena);
    uint32_t                 n = x.servers.n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = turned ? n - 1 - i : i;
        x.servers.at[i].gpu_type = types[k];
        x.servers.at[i].cores_milli = 24000 + 1700 * k;
        x.servers.at[i].memory_mib = 500000 + 21000 * k;
    }
    for (uint32_t i = 0; i < JOBS; i++)
        if (x.class_of[i] == CLUSTER_NONE) x.class_of[i] = i % x.profiles->n;
    for (uint32_t i = 0; i < x.profiles->n; i++)
        for (uint32_t t = 0; t < x.profiles->n_types; t++)
            x.profiles->at[i].iteration_s[t] = 1 / (1 + 0.11 * t + 0.001 * (i * t % 7));
    return x;
}

static void test_order_of_servers(void **state) {
    (void)state;
    uint32_t same = 0, runs = 0;
    for (MaifsMind mind = MAIFS_RULES; mind <= MAIFS_SHIPPED; mind++)
        for (uint32_t seed = 0; seed < 8; seed++) {
            size_t        mark = arena.used;
            MaifsCase     c = {.mind = mind, .seed = 1};
            ClusterResult r[2];
            for (uint32_t turned = 0; turned < 2; turned++) {
                ClusterCase x = unlike(300 + seed, turned > 0);
                all_end(&x, &c, &r[turned]);
            }
            same += memcmp(r[0].ends, r[1].ends, JOBS * sizeof *r[0].ends) == 0;
            runs++;
            arena_rewind(&arena, mark);
        }
    print_message("%u of %u runs are the same\n", same, runs);
    assert_int_equal(same, runs);
}

typedef struct Agreed {
    double agreed, baseline;
} Agreed;

static void sum_up(void *self, const ClusterView *v, const void *state) {
    const Maifs *m = state;
    Agreed      *a = self;
    (void)v;
    assert_true(m->agreed - a->agreed >= m->baseline - a->baseline - 1e-9);
    *a = (Agreed){m->agreed, m->baseline};
}

// In every decision, and strictly better over all of them.
static void test_no_worse_than_plain(void **state) {
    (void)state;
    Agreed all = {0};
    for (uint32_t seed = 0; seed < 12; seed++) {
        size_t        mark = arena.used;
        Agreed        a = {0};
        ClusterCase   x = cluster_case_random(CLUSTER_CASE_PROFILES | CLUSTER_CASE_WIDE, JOBS,
                                              500 + seed, &arena);
        MaifsCase     c = {.mind = (MaifsMind)(seed % MAIFS_MINDS), .watch = sum_up, .watcher = &a};
        ClusterResult r;
        for (uint32_t i = 0; i < JOBS; i++) x.jobs.at[i].submit /= 20;  // so that many wait
        all_end(&x, &c, &r);
        all.agreed += a.agreed;
        all.baseline += a.baseline;
        arena_rewind(&arena, mark);
    }
    print_message("agreed on %.4g, plainly %.4g\n", all.agreed, all.baseline);
    assert_true(all.agreed > all.baseline);
}

// More GPUs than a server of its type has, and no more than others have.
static void test_gang_of_a_small_type(void **state) {
    (void)state;
    static const char *types[2] = {"v100", "t4"};
    ClusterCase        x = cluster_case_servers(4, 8, &arena);
    Job                j[3] = {cluster_case_job(0, 100, 6), cluster_case_job(1, 100, 8),
                               cluster_case_job(2, 50, 12)};
    for (uint32_t i = 0; i < 4; i++) {
        x.servers.at[i].gpu_type = types[i & 1];
        if ((i & 1) == 0) continue;
        x.servers.at[i].gpus = 4;
        x.servers.at[i].cores_milli /= 2;
        x.servers.at[i].memory_mib /= 2;
    }
    j[0].gpu_types = 2;
    cluster_case_list(&x, j, 3, &arena);
    x.jobs.gpu_types = types;
    x.jobs.n_gpu_types = 2;
    for (MaifsMind mind = MAIFS_RULES; mind < MAIFS_MINDS; mind++) {
        ClusterResult r;
        uint64_t      steps = 0;
        MaifsCase     c = {.mind = mind, .after = whole_gangs, .watcher = &steps};
        all_end(&x, &c, &r);
    }
}

static void test_words(void **state) {
    (void)state;
    static const char *const wrong[][2] = {{"coordination=ring"}, {"demand=none"}};
    ClusterCase              x = cluster_case_random(0, 3, 1, &arena);
    for (uint32_t k = 0; k < 2; k++) {
        MaifsCase     c = {.set = wrong[k]};
        ClusterResult r;
        assert_int_equal(maifs_case_run(&x, &c, &arena, &r), ERR_ARG);
        assert_non_null(strstr(err_why(), k == 0 ? "independent, arbitration" : "fixed"));
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_same_seed_same_bytes),
        cmocka_unit_test(test_rounds_keep_what_a_full_computation_finds),
        cmocka_unit_test(test_order_of_servers),
        cmocka_unit_test(test_no_worse_than_plain),
        cmocka_unit_test(test_gang_of_a_small_type),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
