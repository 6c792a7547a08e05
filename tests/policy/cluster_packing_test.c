// lucid and muri: which jobs share GPUs, and the effect on their rates.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/cluster/muri/muri_group.h"
#include "tests/policy/cluster_sample.h"
#include "tests/runner.h"

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

static bool near(double a, double b) { return a > b - 1e-6 && a < b + 1e-6; }

// One server; jobs of one GPU are added to it.
static ClusterSample one_server(uint32_t gpus) {
    ClusterSample s = {.servers = cluster_sample_servers(&arena, 1, gpus),
                       .jobs = {.at = arena_new(&arena, Job, 16), .n_models = 16},
                       .class_of = arena_new(&arena, uint32_t, 16)};
    s.servers.at[0].gpu_type = "";
    assert_int_equal(profile_load(NULL, &arena, &s.profiles), ERR_OK);
    return s;
}

static void add(ClusterSample *s, const char *class, int64_t submit_s, int64_t work_s) {
    uint32_t n = s->jobs.n++;
    s->class_of[n] = profile_find(&s->profiles, class);
    assert_true(s->class_of[n] != PROFILE_NONE);
    s->jobs.at[n] = (Job){.id = "j",
                          .submit = submit_s * JOB_SECOND,
                          .work = work_s * JOB_SECOND,
                          .gpus = 1,
                          .gpu_milli = 1000,
                          .model = n,
                          .tenant = JOB_NONE};
}

static double seconds(TimeNs t) { return (double)t / (double)JOB_SECOND; }

// Two that leave a GPU idle most of the time run together, as fast as their pair says; two that
// keep it busy do not.
static void test_lucid_shares_small(void **state) {
    (void)state;
    ClusterSample small = one_server(1), large = one_server(1);
    for (int i = 0; i < 2; i++) {
        add(&small, "vae", i, 1000);
        add(&large, "bert", i, 1000);
    }
    ClusterResult r = cluster_sample_run(&small, &arena, "lucid", NULL);
    double        pair = profile_pair(&small.profiles, small.class_of[0], small.class_of[0]);
    assert_int_equal(r.ends[1].waited, 0);
    assert_true(near(seconds(r.ends[0].finish), 1 + 999 / pair));
    assert_int_equal(r.preemptions, 0);
    r = cluster_sample_run(&large, &arena, "lucid", NULL);
    assert_int_equal(r.ends[1].start, r.ends[0].finish);
}

static void test_lucid_limits(void **state) {
    (void)state;
    static const char *const never[] = {"max_score=-1", NULL}, *const brief[] = {"profile_s=100",
                                                                                 NULL};
    ClusterSample s = one_server(1);
    add(&s, "vae", 0, 1000);
    add(&s, "vae", 10, 1000);
    add(&s, "vae", 200, 1000);
    ClusterResult r = cluster_sample_run(&s, &arena, "lucid", never);
    assert_int_equal(r.ends[1].start, r.ends[0].finish);
    r = cluster_sample_run(&s, &arena, "lucid", brief);  // known from 100 s on
    assert_int_equal(r.ends[1].start, 200 * JOB_SECOND);
}

// Behind one that keeps its GPU to itself, the least GPU time goes first, without preemption.
static void test_lucid_order(void **state) {
    (void)state;
    ClusterSample s = one_server(1);
    add(&s, "bert", 0, 1000);
    add(&s, "bert", 1, 500);
    add(&s, "bert", 2, 100);
    ClusterResult r = cluster_sample_run(&s, &arena, "lucid", NULL);
    assert_int_equal(r.ends[2].start, r.ends[0].finish);
    assert_int_equal(r.ends[1].start, r.ends[2].finish);
    assert_int_equal(r.preemptions, 0);
}

// Half of an iteration on cores, half on the GPU: two of them are never in each other's way.
static void test_turns_by_hand(void **state) {
    (void)state;
    ClusterProfile  at[2] = {{.stage_s = {1, 0, 1, 0}}, {.stage_s = {0, 0, 3, 1}}};
    ClusterProfiles p = {.at = at, .n = 2};
    uint32_t        same[] = {0, 0}, both[] = {0, 1}, alone[] = {1};
    assert_true(near(muri_match_turns(&p, same, 2), 2));
    assert_true(near(muri_match_turns(&p, alone, 1), 1));
    assert_true(near(muri_match_turns(&p, both, 2), 6.0 / 5));
}

static void open_match(MuriMatch *m, ClusterSetup *setup, const ClusterSample *s, uint32_t gpus) {
    *setup = (ClusterSetup){.profiles = &s->profiles,
                            .n_slots = 16,
                            .n_servers = 1,
                            .gpus = gpus,
                            .cores_milli = 3000 * (uint64_t)gpus,
                            .memory_mib = 64000 * (uint64_t)gpus};
    Carve count = {0}, c = {0};
    *m = (MuriMatch){.min_gain = 1.1, .max_group = 4};
    muri_match_carve(m, setup, &count);
    c.base = arena_alloc(&arena, 1, count.used, 64);
    muri_match_carve(m, setup, &c);
    muri_match_open(m);
}

static uint32_t n_left(const MuriMatch *m) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_units; i++) n += !m->units[i].gone;
    return n;
}

// Six jobs, of which two need next to nothing: those come together first, and no more than needed.
static void test_match_as_far_as_needed(void **state) {
    (void)state;
    static const char *const classes[] = {"bert", "vae", "res50", "vae", "transformer", "res50"};
    ClusterSample            s = one_server(1);
    ClusterTask              tasks[6] = {{.state = CLUSTER_WAITING}};
    MuriMatch                m;
    ClusterSetup             setup;
    for (uint32_t need = 6; need >= 2; need--) {
        open_match(&m, &setup, &s, need);
        for (uint32_t i = 0; i < 6; i++) {
            tasks[i].job = (ClusterJob){
                .gpus = 1, .gpu_milli = 1000, .class = profile_find(&s.profiles, classes[i])};
            muri_match_add(&m, tasks, &i, 1);
        }
        muri_match_run(&m, (uint64_t)need * CLUSTER_WHOLE_GPU);
        assert_int_equal(n_left(&m) * CLUSTER_WHOLE_GPU, m.milli);
        assert_true(n_left(&m) >= need);
        if (need == 6) assert_int_equal(n_left(&m), 6);
        if (need == 5) assert_true(m.units[1].n == 2 && m.units[1].at[1] == 3);
        for (uint32_t i = 0; i < m.n_units; i++)
            if (!m.units[i].gone && m.units[i].n > 1)
                assert_true(muri_match_sum(&m, m.units[i].key) > 1.1);
    }
}

static void test_muri_takes_turns(void **state) {
    (void)state;
    static const char *const alone[] = {"max_group=1", NULL};
    static const char *const four[] = {"depth=4", "min_rate=0.5", NULL};
    ClusterSample            s = one_server(1);
    for (int i = 0; i < 4; i++) add(&s, "vae", 0, 3000);
    ClusterResult r = cluster_sample_run(&s, &arena, "muri", four);
    ClusterResult apart = cluster_sample_run(&s, &arena, "muri", alone);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(r.ends[i].start, 0);
    assert_true(r.last < apart.last / 3 * 2);
    assert_true(apart.last == 12000 * JOB_SECOND);
}

// A job with less GPU time left preempts one with more, at the next whole period.
static void test_muri_stops(void **state) {
    (void)state;
    static const char *const minute[] = {"period_s=60", NULL};
    ClusterSample            s = one_server(1);
    add(&s, "bert", 0, 5000);
    add(&s, "bert", 70, 100);
    ClusterResult r = cluster_sample_run(&s, &arena, "muri", minute);
    assert_int_equal(r.ends[1].start, 120 * JOB_SECOND);
    assert_int_equal(r.ends[1].finish, 220 * JOB_SECOND);
    assert_int_equal(r.ends[0].preemptions, 1);
}

static void test_random_traces_end(void **state) {
    (void)state;
    static const char *const policies[] = {"lucid", "muri", "muri", "muri", NULL};
    static const char *const with[][3] = {
        {NULL}, {NULL}, {"period_s=0", "min_gain=1"}, {"by_stages=true"}};
    for (uint32_t p = 0; policies[p] != NULL; p++)
        for (uint64_t seed = 1; seed <= 8; seed++) {
            size_t        mark = arena.used;
            ClusterSample s = {0};
            cluster_sample_random(&s, &arena, seed, 300);
            if (seed == 8) s.profiles.n = 0;
            ClusterResult r = cluster_sample_run(&s, &arena, policies[p], with[p]);
            ClusterResult again = cluster_sample_run(&s, &arena, policies[p], with[p]);
            for (uint32_t i = 0; i < r.n; i++) assert_true(r.ends[i].finish > r.ends[i].start);
            assert_memory_equal(r.ends, again.ends, r.n * sizeof *r.ends);
            if (p == 0) assert_int_equal(r.preemptions, 0);
            arena_rewind(&arena, mark);
        }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lucid_shares_small),
        cmocka_unit_test(test_lucid_limits),
        cmocka_unit_test(test_lucid_order),
        cmocka_unit_test(test_turns_by_hand),
        cmocka_unit_test(test_match_as_far_as_needed),
        cmocka_unit_test(test_muri_takes_turns),
        cmocka_unit_test(test_muri_stops),
        cmocka_unit_test(test_random_traces_end),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
