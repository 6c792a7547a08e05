// How long does a decision of maifs take? Full clusters with 64 queued jobs and the shipped
// weights: all jobs arrive at once, then a decision at every end. Thread CPU time, so that other
// load does not count.
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/stats.h"
#include "cluster/sim/cluster_run.h"
#include "cluster/cluster_scenario.h"
#include "policy/policies.h"

enum { QUEUED = 64, MOST = 1 << 16 };

static struct {
    const ClusterPolicy *policy;
    double               us[MOST];
    uint32_t             n, most;
    uint64_t             steps;
} timed;

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

// The policy sees the first 64 of a queue that may be longer.
static uint32_t decide(void *state, const ClusterView *view, ClusterAction *out, uint32_t max) {
    ClusterView v = *view;
    bool        filled = v.n_running * 2 > v.setup->gpus;
    bool        busy = filled && v.n_waiting >= QUEUED;
    if (timed.n == timed.most) return 0;
    if (busy) v.n_waiting = QUEUED;
    double   start = now_us();
    uint32_t n = timed.policy->decide(state, &v, out, max);
    double   us = now_us() - start;
    if (!busy) return n;
    timed.us[timed.n++] = us;
    timed.steps += n;
    return n;
}

static Err settings_of(const ClusterPolicy *p, Arena *a, const char *weights, const void **out) {
    Settings s = {p->rows, p->n_rows, arena_alloc(a, 1, p->settings_size + 1, 64), a};
    settings_default(&s);
    *out = s.values;
    return weights != NULL ? settings_set(&s, weights) : ERR_OK;
}

static Err measure(uint32_t servers, uint32_t decisions, const char *weights, Arena *a) {
    const ClusterPolicy *p = policies_cluster_find("maifs");
    ClusterScenarioSpec  spec = {.trace = "synth:philly_small",
                                 .servers = arena_printf(a, "%" PRIu32, servers),
                                 .jobs = 14 * servers,
                                 .load = 1e6,
                                 .max_s = CLUSTER_SCENARIO_MAX_S};
    ClusterPolicy        wrapped = *p;
    ClusterResult        r;
    ClusterSetup         setup;
    ClusterScenario      scene;
    ClusterScenarioDraw  draw;
    double              *sorted;
    TRY(cluster_scenario_open(&spec, a, &scene));
    TRY(cluster_scenario_draw(&scene, 1, a, &draw));
    wrapped.decide = decide;
    timed.policy = p;
    timed.n = 0;
    timed.steps = 0;
    timed.most = decisions;
    ClusterRun run = {.jobs = &draw.jobs,
                      .servers = &scene.servers,
                      .profiles = scene.profiles,
                      .class_of = draw.class_of,
                      .policy = &wrapped,
                      .knows = p->knows,
                      .seed = 1};
    TRY(cluster_sim_params("own", p, &run.params));
    TRY(settings_of(p, a, weights, &run.settings));
    TRY(cluster_setup(&run, a, &setup));
    TRY(p->load(&setup, run.settings, a, &run.loaded));
    Err e = cluster_simulate(&run, a, &r);  // fails when the measurement stops starting jobs
    if (timed.n < timed.most) TRY(e);
    if (timed.n == 0) return err_set(ERR_INVALID, "the queue was never %d jobs long", QUEUED);
    TRY(stats_sort(a, timed.us, timed.n, &sorted));
    printf("%-8s %7" PRIu32 " %9" PRIu32 " %8.1f %9.0f %9.0f %9.0f %9.0f\n",
           weights == NULL ? "shipped" : "rules", servers, timed.n,
           (double)timed.steps / (double)timed.n, sorted[0], stats_percentile(sorted, timed.n, 50),
           stats_percentile(sorted, timed.n, 99), sorted[timed.n - 1]);
    return ERR_OK;
}

int main(void) {
    static const struct {
        uint32_t    servers, decisions;
        const char *weights;
    } rows[] = {{128, 400, NULL}, {128, 400, "weights=none"}, {1000, 40, NULL}};
    printf("%-8s %7s %9s %8s %9s %9s %9s %9s  microseconds, %d jobs queued\n", "weights", "servers",
           "decisions", "steps", "least", "median", "p99", "most", QUEUED);
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena a;
        if (arena_init(&a, (size_t)8 << 30) != ERR_OK) return 1;
        if (measure(rows[i].servers, rows[i].decisions, rows[i].weights, &a) != ERR_OK) {
            fprintf(stderr, "%s\n", err_why());
            return 1;
        }
        arena_finish(&a);
    }
    return 0;
}
