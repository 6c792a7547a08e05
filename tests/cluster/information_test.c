// Information: reading it, true and believed profiles, the walls around the truth, and the guard.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"
#include "cluster/cluster_scenario.h"
#include "cluster/profile/profile_variants.h"
#include "cluster/sim/cluster_run.h"
#include "policy/policies.h"
#include "tests/runner.h"

enum { SEEN = 4096, SCANS = 12 };

static Arena arena, hidden, results;

static int begin(void **state) {
    (void)state;
    if (arena_init(&arena, (size_t)1 << 30) != ERR_OK) return -1;
    if (arena_init(&results, (size_t)1 << 30) != ERR_OK) return -1;
    return arena_init(&hidden, (size_t)1 << 28) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    arena_finish(&hidden);
    arena_finish(&results);
    return 0;
}

static Information read(const char *text) {
    Information x;
    if (information_read(text, &arena, &x) != ERR_OK) fail_msg("%s", err_why());
    return x;
}

static void test_sets_and_settings(void **state) {
    (void)state;
    Information x = read(NULL);
    assert_true(information_is_perfect(&x));
    x = read("perfect");
    assert_true(information_is_perfect(&x));
    x = read("realistic,sigma=0.25,delay_s=60");
    assert_int_equal(x.durations, DURATIONS_UNKNOWN);
    assert_int_equal(x.profiles, PROFILES_LIBRARY);
    assert_int_equal(x.rates, RATES_MEASURED);
    assert_true(x.sigma == 0.25 && x.delay == 60 * CLUSTER_SECOND && x.guard > 0);
    x = read("blind,rates=exact");
    assert_int_equal(x.durations, DURATIONS_UNKNOWN);
    assert_int_equal(x.profiles, PROFILES_UNKNOWN);
    assert_true(x.noise == 0 && x.guard == 0);
    x = read("profiles=library,sigma=0");
    assert_true(x.durations == DURATIONS_EXACT && x.sigma == 0);
    const char *bad[] = {"none", "blind,perfect", "profiles=guess", "sigma=-1", "rates=late"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(information_read(bad[i], &arena, &x), ERR_OK);
        assert_non_null(strstr(err_why(), "--information"));
    }
}

static void test_knowledge_is_at_most_the_policys(void **state) {
    (void)state;
    Information exact = read("perfect"), some = read("realistic,durations=estimated"),
                none = read("blind");
    assert_int_equal(information_knows(&exact, CLUSTER_ORACLE), CLUSTER_ORACLE);
    assert_int_equal(information_knows(&some, CLUSTER_ORACLE), CLUSTER_PREDICTED);
    assert_int_equal(information_knows(&none, CLUSTER_ORACLE), CLUSTER_BLIND);
    assert_int_equal(information_knows(&exact, CLUSTER_BLIND), CLUSTER_BLIND);
}

static void test_truth_is_off_the_library_by_sigma(void **state) {
    (void)state;
    ClusterProfiles library, same, drawn, again;
    Information     x = read("profiles=library,sigma=0.4"), zero = read("profiles=library,sigma=0");
    uint32_t        n = 0;
    double          sum = 0, squares = 0;
    assert_int_equal(profile_load(NULL, &arena, &library), ERR_OK);
    assert_int_equal(information_truth(&zero, &library, (Rng){1}, &arena, &same), ERR_OK);
    assert_memory_equal(same.pair, library.pair, sizeof(double) * PROFILE_CLASSES * library.n);
    for (uint32_t i = 0; i < library.n; i++)
        assert_memory_equal(&same.at[i].speed, &library.at[i].speed, sizeof same.at[i].speed);
    for (uint64_t seed = 1; seed <= 40; seed++) {
        assert_int_equal(information_truth(&x, &library, (Rng){seed}, &arena, &drawn), ERR_OK);
        assert_int_equal(information_truth(&x, &library, (Rng){seed}, &arena, &again), ERR_OK);
        assert_memory_equal(drawn.pair, again.pair, sizeof(double) * PROFILE_CLASSES * library.n);
        for (uint32_t i = 0; i < library.n; i++) {
            double was = library.at[i].speed.at[0][0], is = drawn.at[i].speed.at[0][0];
            assert_true(fabs(profile_speed(&drawn.at[i], drawn.share_cores, drawn.share_gb) - 1) <
                        1e-9);
            if (!(was < 0.9)) continue;
            double z = log(log(is) / log(was));
            sum += z;
            squares += z * z;
            n++;
        }
    }
    assert_true(n > 100 && fabs(sum / n) < 0.1);
    assert_true(fabs(sqrt(squares / n) - 0.4) < 0.06);
}

static void test_mean_lies_between_the_classes(void **state) {
    (void)state;
    ClusterProfiles p;
    uint32_t        mean = 0, fallback = 0;
    assert_int_equal(profile_load(NULL, &arena, &p), ERR_OK);
    uint32_t n = p.n;
    assert_int_equal(profile_add_mean(&p, &mean), ERR_OK);
    assert_int_equal(profile_add_default(&p, &fallback), ERR_OK);
    for (double cores = 1; cores < 12; cores += 1) {
        double least = INFINITY, most = 0, x = profile_speed(&p.at[mean], cores, 62.5);
        for (uint32_t i = 0; i < n; i++) {
            least = fmin(least, profile_speed(&p.at[i], cores, 62.5));
            most = fmax(most, profile_speed(&p.at[i], cores, 62.5));
        }
        assert_true(x >= least - 1e-6 && x <= most + 1e-6);
    }
    assert_true(p.at[mean].levels.n > 1);
    assert_int_equal(p.at[fallback].levels.n, 1);
    assert_true(p.at[fallback].levels.at[0].cores == p.share_cores);
}

static const char *const policies[] = {"fifo",    "srtf",         "tiresias", "themis",
                                       "gandiva", "optimus",      "lucid",    "muri",
                                       "fgd",     "synergy_tune", "maifs",    "lookahead"};
enum { POLICIES = sizeof policies / sizeof *policies };

typedef struct Case {
    ClusterScenario     scenario;
    ClusterScenarioDraw draw;
    ClusterRun          run;
} Case;

// The run's truth is drawn by the seed `truth` and is in the hidden arena alone.
static void open_case(Case *c, const char *information, const char *policy, uint64_t truth) {
    ClusterScenarioSpec  spec = {.trace = "synth:philly_small",
                                 .servers = "3",
                                 .jobs = 60,
                                 .load = 2,
                                 .max_s = CLUSTER_SCENARIO_MAX_S,
                                 .information = read(information)};
    ClusterProfiles     *to = arena_new(&hidden, ClusterProfiles, 1);
    const ClusterPolicy *p = policies_cluster_find(policy);
    Settings s = {p->rows, p->n_rows, arena_alloc(&results, 1, p->settings_size + 1, 64), &results};
    ClusterSetup setup;
    if (p->n_rows > 0) settings_default(&s);
    assert_int_equal(cluster_scenario_open(&spec, &results, &c->scenario), ERR_OK);
    assert_int_equal(cluster_scenario_draw(&c->scenario, 7, &results, &c->draw), ERR_OK);
    assert_int_equal(
        information_truth(&spec.information, c->scenario.profiles, (Rng){truth}, &hidden, to),
        ERR_OK);
    c->run = (ClusterRun){.jobs = &c->draw.jobs,
                          .servers = &c->scenario.servers,
                          .profiles = to,
                          .class_of = c->draw.class_of,
                          .beliefs = c->draw.beliefs,
                          .info = spec.information,
                          .error = spec.information.error,
                          .hidden = &hidden,
                          .policy = p,
                          .settings = s.values,
                          .knows = information_knows(&spec.information, p->knows),
                          .seed = 7};
    assert_int_equal(cluster_sim_params("own", p, &c->run.params), ERR_OK);
    assert_int_equal(cluster_setup(&c->run, &results, &setup), ERR_OK);
    if (p->load != NULL)
        assert_int_equal(p->load(&setup, s.values, &results, &c->run.loaded), ERR_OK);
}

static ClusterResult simulate(const ClusterRun *run) {
    ClusterResult r;
    if (cluster_simulate(run, &arena, &r) != ERR_OK) fail_msg("%s", err_why());
    return r;
}

// Fresh pages: remains of an earlier run are no leak.
static void renew(void) {
    (void)end(NULL);
    assert_int_equal(begin(NULL), 0);
}

// Words of an arena that are addresses in the hidden one.
static uint64_t leaks(const Arena *a) {
    uint64_t n = 0;
    for (size_t i = 0; i + sizeof(uintptr_t) <= a->used; i += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, a->base + i, sizeof word);
        n += word - (uintptr_t)hidden.base < hidden.used;
    }
    return n;
}

typedef struct Scan {
    uint64_t calls, leaks;
} Scan;

// Everything that a policy can reach from its state, the view and the setup is in `arena` (the
// simulator's tasks, servers and the policy's state) or in `results` (profiles, settings, weights).
static void scan(void *self, const ClusterView *v, const void *state) {
    Scan *s = self;
    (void)state;
    if (s->calls++ % 16 != 0 || s->calls > 16 * SCANS) return;
    s->leaks += leaks(&arena) + leaks(&results);
    assert_true(arena_holds(&arena, v->setup, sizeof *v->setup));
    assert_true(arena_holds(&arena, v->tasks, sizeof *v->tasks));
    assert_true(arena_holds(&results, v->setup->profiles, sizeof *v->setup->profiles));
}

static void test_no_pointer_leads_to_the_truth(void **state) {
    (void)state;
    static const char *const sets[] = {"realistic", "blind"};
    for (uint32_t i = 0; i < POLICIES; i++)
        for (uint32_t k = 0; k < 2; k++) {
            Case c;
            Scan s = {0};
            open_case(&c, sets[k], policies[i], 1);
            c.run.watch = scan;
            c.run.watcher = &s;
            (void)simulate(&c.run);
            assert_true(s.calls > SCANS);
            if (s.leaks > 0) fail_msg("%s: %llu", policies[i], (unsigned long long)s.leaks);
            renew();
        }
}

typedef struct Seen {  // of a run's decisions
    uint64_t view[SEEN], plan[SEEN];
    TimeNs   at[SEEN];
    bool     observed[SEEN];  // a job has ended, or a rate was measured
    uint32_t n;
} Seen;

static uint64_t mix(uint64_t h, const void *at, size_t bytes) { return hash_fnv(h, at, bytes); }

static uint64_t hash_task(uint64_t h, const ClusterTask *t) {
    h = mix(h, &t->job, sizeof t->job);
    h = mix(h, &t->state, sizeof t->state);
    h = mix(h, &t->entry, sizeof t->entry);
    h = mix(h, &t->since, sizeof t->since);
    h = mix(h, &t->held, 4 * sizeof(TimeNs));
    h = mix(h, &t->rate, sizeof t->rate);
    h = mix(h, &t->measured, sizeof t->measured);
    for (uint32_t i = 0; i < t->n_slices; i++) {
        const ClusterSlice *x = &t->slices[i];
        uint64_t            values[] = {x->mask,      x->server,      x->gpus,
                                        x->gpu_milli, x->cores_milli, x->memory_mib};
        h = mix(h, values, sizeof values);
    }
    return h;
}

static void see(void *self, const ClusterView *v, const void *state) {
    Seen    *s = self;
    uint64_t h = mix(HASH_FNV_START, &v->now, sizeof v->now);
    (void)state;
    if (s->n == SEEN) return;
    bool before = s->n > 0 && s->observed[s->n - 1];
    s->observed[s->n] = before || (v->reason & (CLUSTER_JOB_ENDED | CLUSTER_BELIEF)) != 0;
    for (uint32_t i = 0; i < v->n_waiting; i++) h = hash_task(h, &v->tasks[v->waiting[i]]);
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        h = hash_task(h, t);
        if (t->measured > 0) s->observed[s->n] = true;
    }
    s->view[s->n] = h;
    s->at[s->n] = v->now;
    s->n++;
}

static void see_plan(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n) {
    Seen    *s = self;
    uint64_t h = HASH_FNV_START;
    (void)v;
    for (uint32_t i = 0; i < n; i++) {
        h = mix(h, &plan[i].verb, sizeof plan[i].verb);
        h = mix(h, &plan[i].task, sizeof plan[i].task);
        h = mix(h, &plan[i].n_slices, sizeof plan[i].n_slices);
    }
    if (s->n > 0 && s->plan[s->n - 1] == 0) s->plan[s->n - 1] = h;
}

static void watch_run(const char *set, const char *policy, uint64_t truth, Seen *out) {
    Case c;
    memset(out, 0, sizeof *out);
    open_case(&c, set, policy, truth);
    c.run.watch = see;
    c.run.after = see_plan;
    c.run.watcher = out;
    (void)simulate(&c.run);
    renew();
}

// Runs with two truths are equal, views and plans, until something was observed.
static void test_equal_observations_give_equal_decisions(void **state) {
    (void)state;
    static Seen              a, b;
    static const char *const sets[] = {"realistic", "blind", "realistic,delay_s=3600,guard=0"};
    for (uint32_t i = 0; i < POLICIES; i++)
        for (uint32_t k = 0; k < 3; k++) {
            uint32_t at = 0;
            watch_run(sets[k], policies[i], 1, &a);
            watch_run(sets[k], policies[i], 2, &b);
            while (at < a.n && at < b.n && a.view[at] == b.view[at] && a.at[at] == b.at[at]) {
                assert_true(a.plan[at] == b.plan[at]);
                at++;
            }
            assert_true(at > 0);
            if (at < a.n && at < b.n) assert_true(a.observed[at] || b.observed[at]);
        }
}

static void test_perfect_equals_no_information(void **state) {
    (void)state;
    for (uint32_t i = 0; i < POLICIES; i++) {
        Case c;
        open_case(&c, "perfect", policies[i], 1);
        ClusterResult one = simulate(&c.run);
        c.run.profiles = c.scenario.profiles;
        c.run.hidden = NULL;
        c.run.info = (Information){0};
        ClusterResult two = simulate(&c.run);
        assert_memory_equal(one.ends, two.ends, one.n * sizeof *one.ends);
        renew();
    }
}

static void test_runs_repeat(void **state) {
    (void)state;
    for (uint32_t i = 0; i < POLICIES; i++) {
        Case c;
        open_case(&c, "blind", policies[i], 3);
        ClusterResult one = simulate(&c.run), two = simulate(&c.run);
        assert_memory_equal(one.ends, two.ends, one.n * sizeof *one.ends);
        renew();
    }
}

// One job whose class is believed to need no cores, and truly needs them.
static double guarded_s(const char *information, const char *policy) {
    Job             j = {.id = "j",
                         .work = 10000 * CLUSTER_SECOND,
                         .gpus = 1,
                         .gpu_milli = 1000,
                         .model = JOB_NONE,
                         .tenant = JOB_NONE};
    JobList         l = {.at = &j, .n = 1};
    ServerSpec      like = {.gpus = 8, .gpu_type = ""};
    ServerList      servers;
    ClusterProfiles library, *truth = arena_new(&hidden, ClusterProfiles, 1);
    uint32_t class = 0;
    const ClusterPolicy *p = policies_cluster_find(policy);
    Settings s = {p->rows, p->n_rows, arena_alloc(&arena, 1, p->settings_size + 1, 64), &arena};
    settings_default(&s);
    assert_int_equal(server_list_equal(1, &like, &arena, &servers), ERR_OK);
    assert_int_equal(profile_load(NULL, &arena, &library), ERR_OK);
    class = profile_find(&library, "alexnet");
    assert_int_equal(profile_copy(&library, &hidden, truth), ERR_OK);
    ProfileGrid *g = &library.at[class].speed;
    for (uint32_t r = 0; r < g->rows; r++)
        for (uint32_t c = 0; c < g->columns; c++) g->at[r][c] = 1;
    assert_int_equal(profile_set_share(&library, 3, 62.5, NULL), ERR_OK);
    InformationBeliefs b;
    Information        info = read(information);
    assert_int_equal(information_beliefs(&info, &library, &class, 1, &arena, &b), ERR_OK);
    ClusterRun    run = {.jobs = &l,
                         .servers = &servers,
                         .profiles = truth,
                         .class_of = &class,
                         .beliefs = &b,
                         .info = info,
                         .policy = p,
                         .settings = s.values,
                         .seed = 1,
                         .knows = information_knows(&info, p->knows),
                         .hidden = &hidden};
    ClusterResult r = simulate(&run);
    double        jct_s = (double)r.ends[0].finish / 1e9;
    renew();
    return jct_s;
}

static void test_guard_returns_a_slow_job_to_its_default_demand(void **state) {
    (void)state;
    static const char *const set_amounts[] = {"optimus", "synergy_tune", "maifs"};
    for (uint32_t i = 0; i < 3; i++) {
        double without = guarded_s("profiles=library,rates=measured,guard=0", set_amounts[i]);
        double with = guarded_s("profiles=library,rates=measured", set_amounts[i]);
        print_message("%s: %.0f s, with the guard %.0f s\n", set_amounts[i], without, with);
        if (i < 2) assert_true(without > 15000);  // maifs hands out spare cores
        assert_true(with < 10400);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets_and_settings),
        cmocka_unit_test(test_knowledge_is_at_most_the_policys),
        cmocka_unit_test(test_truth_is_off_the_library_by_sigma),
        cmocka_unit_test(test_mean_lies_between_the_classes),
        cmocka_unit_test(test_no_pointer_leads_to_the_truth),
        cmocka_unit_test(test_equal_observations_give_equal_decisions),
        cmocka_unit_test(test_perfect_equals_no_information),
        cmocka_unit_test(test_runs_repeat),
        cmocka_unit_test(test_guard_returns_a_slow_job_to_its_default_demand),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
