// ClusterForecast: where beliefs are exact and no job arrives later, it is what then happens.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/cluster_scenario.h"
#include "cluster/sim/cluster_run.h"
#include "contract/cluster_forecast.h"
#include "policy/policies.h"
#include "tests/runner.h"

enum { JOBS = 80, OUTLOOKS = 4096, EACH = 7 };

typedef struct Watcher {
    const ClusterRun *run;
    ClusterOutlook    at[OUTLOOKS];
    TimeNs            now[OUTLOOKS];
    uint64_t          alive_ns[OUTLOOKS];
    uint64_t          calls, most_decisions;
    uint32_t          n;
    bool              first_only;
} Watcher;

static TimeNs work_of(const ClusterView *v, const ClusterTask *t) {
    TimeNs ns = t->state == CLUSTER_RUNNING ? v->now - t->mark : 0;
    return cluster_left(v, t) - (t->owed > ns ? t->owed - ns : 0);
}

static void watch(void *self, const ClusterView *v, const void *state) {
    Watcher               *w = self;
    const ClusterForecast *f = v->setup->forecast;
    TimeNs                 work[JOBS];
    (void)state;
    if (w->calls++ % EACH != 0 || w->n == OUTLOOKS || (w->first_only && w->n > 0)) return;
    assert_non_null(f);
    for (uint32_t i = 0; i < v->n_waiting; i++) work[i] = work_of(v, &v->tasks[v->waiting[i]]);
    for (uint32_t i = 0; i < v->n_running; i++)
        work[v->n_waiting + i] = work_of(v, &v->tasks[v->running[i]]);
    ClusterForecastRun run = {.policy = w->run->policy,
                              .settings = w->run->settings,
                              .loaded = w->run->loaded,
                              .work = work,
                              .most_decisions = w->most_decisions};
    w->now[w->n] = v->now;
    w->alive_ns[w->n] = v->alive_ns;
    w->at[w->n++] = f->simulate(f, v, &run);
}

typedef struct Case {
    Arena               arena;
    ClusterScenario     scenario;
    ClusterScenarioDraw draw;
    ClusterPolicy       policy;
    ClusterRun          run;
} Case;

// All jobs arrive at once.
static void open_case(Case *c, const char *policy) {
    ClusterScenarioSpec  spec = {.trace = "synth:philly_small",
                                 .servers = "2",
                                 .jobs = JOBS,
                                 .load = 2,
                                 .max_s = CLUSTER_SCENARIO_MAX_S};
    const ClusterPolicy *p = policies_cluster_find(policy);
    ClusterSetup         setup;
    memset(c, 0, sizeof *c);
    assert_int_equal(arena_init(&c->arena, (size_t)1 << 30), ERR_OK);
    Settings s = {p->rows, p->n_rows, arena_alloc(&c->arena, 1, p->settings_size + 1, 64),
                  &c->arena};
    if (p->n_rows > 0) settings_default(&s);
    assert_int_equal(cluster_scenario_open(&spec, &c->arena, &c->scenario), ERR_OK);
    assert_int_equal(cluster_scenario_draw(&c->scenario, 5, &c->arena, &c->draw), ERR_OK);
    for (uint32_t i = 0; i < c->draw.jobs.n; i++) c->draw.jobs.at[i].submit = 0;
    c->policy = *p;
    c->policy.forecasts = true;
    c->run = (ClusterRun){.jobs = &c->draw.jobs,
                          .servers = &c->scenario.servers,
                          .profiles = c->scenario.profiles,
                          .class_of = c->draw.class_of,
                          .policy = &c->policy,
                          .settings = s.values,
                          .knows = p->knows,
                          .seed = 5};
    assert_int_equal(cluster_sim_params("own", p, &c->run.params), ERR_OK);
    cluster_stop_options(&(StopOptions){300, 4}, &c->run.params);
    assert_int_equal(cluster_setup(&c->run, &c->arena, &setup), ERR_OK);
    if (p->load != NULL)
        assert_int_equal(p->load(&setup, s.values, &c->arena, &c->run.loaded), ERR_OK);
}

static ClusterResult simulate(Case *c, Watcher *w) {
    ClusterResult r;
    *w =
        (Watcher){.run = &c->run, .most_decisions = w->most_decisions, .first_only = w->first_only};
    c->run.watch = watch;
    c->run.watcher = w;
    assert_int_equal(cluster_simulate(&c->run, &c->arena, &r), ERR_OK);
    return r;
}

static void assert_same(const ClusterResult *r, const Watcher *w, uint32_t i) {
    assert_true(w->at[i].drained);
    assert_true(w->at[i].makespan_s == (double)(r->last - w->now[i]) / 1e9);
    assert_true(w->at[i].alive_s == (double)(r->alive_ns - w->alive_ns[i]) / 1e9);
}

// A policy without a memory does at any time what it does from a fresh state.
static void test_forecasts_are_what_happens(void **state) {
    (void)state;
    static Case    c;
    static Watcher w;
    w = (Watcher){.most_decisions = 100000};
    open_case(&c, "srtf");
    ClusterResult r = simulate(&c, &w);
    assert_true(w.n > 10);
    for (uint32_t i = 0; i < w.n; i++) assert_same(&r, &w, i);
    arena_finish(&c.arena);
}

// Of those that are told durations.
static void test_first_forecast_of_every_policy(void **state) {
    (void)state;
    static const char *const policies[] = {"sjf",    "qssf",  "srsf", "optimus",      "gavel",
                                           "themis", "lucid", "muri", "synergy_tune", "maifs"};
    static Case              c;
    static Watcher           w;
    for (uint32_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        w = (Watcher){.most_decisions = 100000, .first_only = true};
        open_case(&c, policies[i]);
        ClusterResult r = simulate(&c, &w);
        assert_int_equal(w.n, 1);
        print_message("%s\n", policies[i]);
        assert_same(&r, &w, 0);
        arena_finish(&c.arena);
    }
}

static void test_forecasts_change_nothing_and_end_with_their_budget(void **state) {
    (void)state;
    static Case    c;
    static Watcher w;
    w = (Watcher){.most_decisions = 3};
    open_case(&c, "maifs");
    ClusterResult with = simulate(&c, &w), without;
    for (uint32_t i = 0; i < w.n; i++) assert_true(w.at[i].decisions <= 3);
    assert_false(w.at[0].drained);
    c.run.watch = NULL;
    assert_int_equal(cluster_simulate(&c.run, &c.arena, &without), ERR_OK);
    assert_memory_equal(with.ends, without.ends, with.n * sizeof *with.ends);
    arena_finish(&c.arena);
}

static void test_lookahead_beats_its_first_variant_here(void **state) {
    (void)state;
    static const char *const policies[] = {"maifs", "lookahead"};
    double                   alive[2];
    static Case              c;
    for (uint32_t i = 0; i < 2; i++) {
        ClusterResult r;
        open_case(&c, policies[i]);
        if (i == 0) {
            Settings s = {c.policy.rows, c.policy.n_rows, (void *)(uintptr_t)c.run.settings,
                          &c.arena};
            assert_int_equal(settings_set(&s, "weights=none"), ERR_OK);
            c.run.loaded = NULL;
        }
        assert_int_equal(cluster_simulate(&c.run, &c.arena, &r), ERR_OK);
        alive[i] = (double)r.alive_ns;
        arena_finish(&c.arena);
    }
    print_message("mean completion time, lookahead / maifs by rules: %.4f\n", alive[1] / alive[0]);
    assert_true(alive[1] < alive[0]);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forecasts_are_what_happens),
        cmocka_unit_test(test_first_forecast_of_every_policy),
        cmocka_unit_test(test_forecasts_change_nothing_and_end_with_their_budget),
        cmocka_unit_test(test_lookahead_beats_its_first_variant_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
