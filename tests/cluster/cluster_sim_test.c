// The simulator under a policy of random legal actions: nothing is given twice, gangs stay whole,
// work is neither lost nor done twice, and rates equal those of slow lookups.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster/profile/class_assignment.h"
#include "cluster/profile/profiles.h"
#include "tests/cluster/slow_cluster.h"
#include "tests/cluster/random_cluster_policy.h"
#include "tests/runner.h"

enum { JOBS = 3000, LOG = 60000, MILLION = 1000000 };

static Arena           arena;
static ClusterProfiles profiles;

static int begin(void **state) {
    (void)state;
    if (arena_init(&arena, (size_t)1 << 30) != ERR_OK) return -1;
    return profile_load(NULL, &arena, &profiles) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

typedef struct Kind {
    bool     plain;  // no profiles: every job has GPUs and rate 1
    uint64_t gap_s, work_s;
} Kind;

static JobList jobs_of(uint64_t seed, uint32_t n, const Kind *k) {
    static const char *types[] = {"v100", "t4"};
    JobList            l = {.at = arena_new(&arena, Job, n),
                            .n = n,
                            .gpu_types = types,
                            .n_gpu_types = k->plain ? 0 : 2};
    Rng                r = {seed};
    TimeNs             now = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool part = rng_below(&r, 3) == 0, cpu = !k->plain && rng_below(&r, 10) == 0;
        now +=
            rng_below(&r, 8) == 0 ? 0 : (TimeNs)rng_below(&r, k->gap_s * (uint64_t)CLUSTER_SECOND);
        Job *j = &l.at[i];
        *j = (Job){.id = "j",
                   .row = i,
                   .submit = now,
                   .work = 1 + (TimeNs)rng_below(&r, k->work_s * (uint64_t)CLUSTER_SECOND),
                   .gpus = part ? 1 : 1 + (uint32_t)rng_below(&r, 12),
                   .gpu_milli = part ? 100 + (uint32_t)rng_below(&r, 900) : CLUSTER_WHOLE_GPU,
                   .model = JOB_NONE,
                   .tenant = JOB_NONE};
        if (cpu) j->gpus = j->gpu_milli = 0;
        if (k->plain) continue;
        if (rng_below(&r, 4) == 0) j->cores_milli = 1 + (uint32_t)rng_below(&r, 20000);
        if (rng_below(&r, 4) == 0) j->memory_mib = 1 + (uint32_t)rng_below(&r, 200000);
        if (rng_below(&r, 4) == 0 && j->gpus <= 8) j->gpu_types = 1 + (uint32_t)rng_below(&r, 3);
        if (j->gpus == 0 || part || rng_below(&r, 3) > 0) continue;
        j->gpus_min = 1 + (uint32_t)rng_below(&r, j->gpus);
        j->gpus_max = j->gpus + 1 + (uint32_t)rng_below(&r, 4);
    }
    return l;
}

static ServerList servers_of(const Kind *k) {
    ServerList servers;
    ServerSpec like = {.gpus = RANDOM_GPUS, .gpu_type = ""};
    assert_int_equal(server_list_equal(RANDOM_SERVERS, &like, &arena, &servers), ERR_OK);
    static const char *const types[] = {"v100", "t4", "", "k80"};
    for (uint32_t i = 0; !k->plain && i < servers.n; i++) servers.at[i].gpu_type = types[i % 4];
    return servers;
}

// One in five has no class.
static uint32_t *classes_of(const JobList *l, uint64_t seed) {
    ClassAssignment s;
    assert_int_equal(class_assignment_draw(&profiles, l, NULL, (Rng){seed}, &arena, &s), ERR_OK);
    for (uint32_t i = 0; i < l->n; i += 5) s.class_of[i] = CLUSTER_NONE;
    return s.class_of;
}

static const RandomPolicySettings calm = {false}, busy = {true};

static ClusterRun run_of(const JobList *l, const ServerList *servers, const Kind *k,
                         uint64_t seed) {
    ClusterRun x = {.jobs = l,
                    .servers = servers,
                    .policy = &random_cluster_policy,
                    .settings = &calm,
                    .knows = CLUSTER_ORACLE,
                    .seed = seed,
                    .params = {.restart = 5 * CLUSTER_SECOND,
                               .restart_wide = 9 * CLUSTER_SECOND,
                               .restart_by_class = true}};
    if (!k->plain) {
        x.profiles = &profiles;
        x.class_of = classes_of(l, seed);
    }
    return x;
}

static ClusterResult simulate(const ClusterRun *x) {
    ClusterResult r;
    if (cluster_simulate(x, &arena, &r) != ERR_OK) fail_msg("%s", err_why());
    return r;
}

static const Kind plain = {true, 40, 300}, rich = {false, 40, 300};

// At rate 1 a job runs its work and a restart for every stop, no more and no less.
static void test_work_is_kept(void **state) {
    (void)state;
    JobList       l = jobs_of(1, JOBS, &plain);
    ServerList    servers = servers_of(&plain);
    ClusterRun    x = run_of(&l, &servers, &plain, 1);
    ClusterResult r = simulate(&x);
    uint64_t      stopped = 0;
    for (uint32_t i = 0; i < r.n; i++) {
        const ClusterEnd *e = &r.ends[i];
        TimeNs            restart = (l.at[i].gpus > 8 ? 9 : 5) * CLUSTER_SECOND * e->preemptions;
        assert_int_equal(e->finish - l.at[i].submit, e->waited + l.at[i].work + restart);
        stopped += e->preemptions;
    }
    assert_true(stopped > 0 && stopped == r.preemptions && r.levels > 0);
    assert_true(r.use.gpus > 0 && r.use.gpus <= 1);
}

// What is left of a job's work when it ends is less than a nanosecond for every time its rate
// changed, as the simulator counts whole nanoseconds of work up to each change; and it ends at a
// whole nanosecond, in which a fast job does several nanoseconds of work.
static void test_rates_are_those_of_slow_lookups(void **state) {
    (void)state;
    SlowCluster all = {.least_rate = 1, .most_rate = 1};
    uint64_t    shared = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        size_t      mark = arena.used;
        JobList     l = jobs_of(seed, 180, &rich);
        ServerList  servers = servers_of(&rich);
        ClusterRun  x = run_of(&l, &servers, &rich, seed), plan = x;
        PlanChecker a;
        plan_checker_open(&a, &plan, LOG, &arena);
        ClusterResult r = simulate(&plan);
        assert_true(a.steps == a.n);
        SlowCluster s = slow_cluster_follow(&x, &a, &r, &arena);
        assert_int_equal(s.ended, r.n);
        if (s.worst > all.worst) all.worst = s.worst;
        if (s.least_rate < all.least_rate) all.least_rate = s.least_rate;
        if (s.most_rate > all.most_rate) all.most_rate = s.most_rate;
        all.changes += s.changes;
        shared += a.shared;
        arena_rewind(&arena, mark);
    }
    print_message("%u changes of rates from %g to %g, %llu shared GPUs, off by %.3f ns a change\n",
                  all.changes, all.least_rate, all.most_rate, (unsigned long long)shared,
                  all.worst);
    assert_true(all.worst <= 1);
    assert_true(all.changes > 10000 && all.least_rate < 0.2 && all.most_rate > 2 && shared > 1000);
}

static void test_a_million_steps(void **state) {
    (void)state;
    uint64_t steps = 0, shared = 0, stops = 0;
    for (uint64_t seed = 1; steps < MILLION; seed++) {
        size_t      mark = arena.used;
        JobList     l = jobs_of(seed, 400, &rich);
        ServerList  servers = servers_of(&rich);
        ClusterRun  x = run_of(&l, &servers, &rich, seed);
        PlanChecker a;
        x.settings = &busy;
        plan_checker_open(&a, &x, 0, &arena);
        ClusterResult r = simulate(&x);
        assert_true(a.n_running <= 1 || r.n == l.n);
        assert_int_equal(a.stops, r.preemptions + r.rescales);
        assert_true(r.rescales > 0);
        assert_int_equal(a.levels, r.levels);
        assert_int_equal(a.steps, r.starts + r.preemptions + 2 * r.rescales + r.levels);
        steps += a.steps;
        shared += a.shared;
        stops += a.stops;
        arena_rewind(&arena, mark);
    }
    print_message("%llu steps, %llu stops, %llu shared GPUs\n", (unsigned long long)steps,
                  (unsigned long long)stops, (unsigned long long)shared);
    assert_true(shared > MILLION / 20 && stops > MILLION / 50);
}

static int by_submit(const JobList *l, const ClusterResult *r, uint64_t *sum, uint64_t *busy_ns) {
    TimeNs until = 0;  // busy so far
    for (uint32_t i = 0; i < r->n; i++) {
        TimeNs from = l->at[i].submit > until ? l->at[i].submit : until;
        *sum += (uint64_t)(r->ends[i].finish - l->at[i].submit);
        if (r->ends[i].finish <= from) continue;
        *busy_ns += (uint64_t)(r->ends[i].finish - from);
        until = r->ends[i].finish;
    }
    return 0;
}

typedef struct Rewards {
    uint64_t alive_ns, busy_ns, sum, busy_sum;
} Rewards;

static void add_reward(void *self, const ClusterView *v, const void *state) {
    Rewards *w = self;
    (void)state;
    w->sum += v->alive_ns - w->alive_ns;
    w->busy_sum += v->busy_ns - w->busy_ns;
    w->alive_ns = v->alive_ns;
    w->busy_ns = v->busy_ns;
}

// Rewards of -dt n between decisions add up to minus all completion times, those of -dt while
// jobs are live to minus the makespan. Jobs that arrive once an hour leave the cluster empty.
static void test_rewards_are_completion_times(void **state) {
    (void)state;
    static const Kind kinds[] = {{true, 40, 300}, {false, 40, 300}, {false, 3600, 900}};
    for (uint64_t seed = 1; seed <= 9; seed++) {
        const Kind *k = &kinds[seed % 3];
        JobList     l = jobs_of(seed, 500, k);
        ServerList  servers = servers_of(k);
        ClusterRun  x = run_of(&l, &servers, k, seed);
        Rewards     w = {0};
        uint64_t    sum = 0, busy_ns = 0;
        x.watch = add_reward;
        x.watcher = &w;
        ClusterResult r = simulate(&x);
        by_submit(&l, &r, &sum, &busy_ns);
        assert_true(r.alive_ns == sum && r.busy_ns == busy_ns);
        assert_true(w.sum + (r.alive_ns - w.alive_ns) == sum);
        assert_true(w.busy_sum + (r.busy_ns - w.busy_ns) == busy_ns);
        bool empty = busy_ns < (uint64_t)(r.last - r.first);
        assert_true(empty == (k->gap_s == 3600));
    }
}

static void test_same_seed_same_run(void **state) {
    (void)state;
    JobList       l = jobs_of(2, 300, &rich);
    ServerList    servers = servers_of(&rich);
    ClusterRun    x = run_of(&l, &servers, &rich, 5), y = x;
    ClusterResult a = simulate(&x), b = simulate(&x);
    y.seed = 6;
    ClusterResult c = simulate(&y);
    assert_memory_equal(a.ends, b.ends, a.n * sizeof *a.ends);
    assert_memory_not_equal(a.ends, c.ends, a.n * sizeof *a.ends);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work_is_kept),
        cmocka_unit_test(test_rates_are_those_of_slow_lookups),
        cmocka_unit_test(test_a_million_steps),
        cmocka_unit_test(test_rewards_are_completion_times),
        cmocka_unit_test(test_same_seed_same_run),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
