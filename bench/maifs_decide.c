// How long does a decision of maifs take? Full clusters with 64 queued jobs: all jobs arrive at
// once, then a decision at every end. With an estimator, `beliefs` is the time of the simulator and
// the estimator from one decision to the next. Thread CPU time, so that other load does not count.
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/stats.h"
#include "cluster/sim/cluster_run.h"
#include "cluster/cluster_scenario.h"
#include "estimator/belief_net.h"
#include "policy/embedded_weights.h"
#include "policy/policies.h"

enum { QUEUED = 64, MOST = 1 << 16 };

static struct {
    const ClusterPolicy *policy;
    double               us[MOST], beliefs_us[MOST];
    double               after;  // the last decision
    uint32_t             n, most;
    uint64_t             steps;
} timed;

typedef struct BenchRow {
    uint32_t    servers, decisions;
    const char *weights, *information, *estimator;
} BenchRow;

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
    double   end = now_us(), before = start - timed.after;
    timed.after = end;
    if (!busy) return n;
    timed.beliefs_us[timed.n] = before;
    timed.us[timed.n++] = end - start;
    timed.steps += n;
    return n;
}

static Err settings_of(const ClusterPolicy *p, Arena *a, const char *weights, const void **out) {
    Settings s = {p->rows, p->n_rows, arena_alloc(a, 1, p->settings_size + 1, 64), a};
    settings_default(&s);
    *out = s.values;
    return weights != NULL ? settings_set(&s, weights) : ERR_OK;
}

static Err told(const BenchRow *row, Arena *a, Information *out) {
    WeightsFile w;
    TRY(information_read(row->information, a, out));
    TRY(information_set_estimator(out, row->estimator));
    if (out->estimator < ESTIMATOR_ATTENTION) return ERR_OK;
    TRY(embedded_weights_load("", "beliefs", "cluster", BELIEF_FACTS, a, &w));
    out->beliefs = w.params.at;
    return ERR_OK;
}

static Err run_of(const BenchRow *row, const ClusterPolicy *wrapped, Arena *a, ClusterRun *out) {
    ClusterScenarioSpec  spec = {.trace = "synth:philly_small",
                                 .servers = arena_printf(a, "%" PRIu32, row->servers),
                                 .jobs = row->servers < 64 ? 600 : 14 * row->servers,
                                 .load = 1e6,
                                 .max_s = CLUSTER_SCENARIO_MAX_S};
    ClusterScenario     *scene = arena_new(a, ClusterScenario, 1);
    ClusterScenarioDraw *draw = arena_new(a, ClusterScenarioDraw, 1);
    TRY(told(row, a, &spec.information));
    TRY(cluster_scenario_open(&spec, a, scene));
    TRY(cluster_scenario_draw(scene, 1, a, draw));
    *out = (ClusterRun){.jobs = &draw->jobs,
                        .servers = &scene->servers,
                        .profiles = draw->truth,
                        .class_of = draw->class_of,
                        .beliefs = draw->beliefs,
                        .info = scene->information,
                        .error = scene->information.error,
                        .policy = wrapped,
                        .knows = information_knows(&scene->information, wrapped->knows),
                        .seed = 1};
    return cluster_sim_params("own", wrapped, &out->params);
}

static Err print_row(const BenchRow *row, Arena *a) {
    double *us, *beliefs;
    TRY(stats_sort(a, timed.us, timed.n, &us));
    TRY(stats_sort(a, timed.beliefs_us, timed.n, &beliefs));
    printf("%-9s %-9s %-7s %7" PRIu32 " %9" PRIu32 " %8.1f %8.0f %8.0f %8.0f %8.0f %8.0f\n",
           row->information, row->estimator, row->weights == NULL ? "shipped" : "none",
           row->servers, timed.n, (double)timed.steps / (double)timed.n,
           stats_percentile(us, timed.n, 50), stats_percentile(us, timed.n, 99), us[timed.n - 1],
           stats_percentile(beliefs, timed.n, 50), stats_percentile(beliefs, timed.n, 99));
    return ERR_OK;
}

static Err measure(const BenchRow *row, Arena *a) {
    const ClusterPolicy *p = policies_cluster_find("maifs");
    ClusterPolicy        wrapped = *p;
    ClusterResult        r;
    ClusterSetup         setup;
    ClusterRun           run;
    wrapped.decide = decide;
    timed.policy = p;
    timed.n = 0;
    timed.steps = 0;
    timed.most = row->decisions;
    TRY(run_of(row, &wrapped, a, &run));
    TRY(settings_of(p, a, row->weights, &run.settings));
    TRY(cluster_setup(&run, a, &setup));
    TRY(p->load(&setup, run.settings, a, &run.loaded));
    Err e = cluster_simulate(&run, a, &r);  // fails when the measurement stops starting jobs
    if (timed.n < timed.most) TRY(e);
    if (timed.n == 0) return err_set(ERR_INVALID, "the queue was never %d jobs long", QUEUED);
    return print_row(row, a);
}

int main(void) {
    static const struct {
        const char *information, *estimator;
    } beliefs[] = {{"perfect", "off"}, {"realistic", "shared"}, {"realistic", "both"}};
    static const struct {
        uint32_t servers, decisions;
    } sizes[] = {{8, 400}, {128, 400}, {1000, 60}};
    static const char *const weights[] = {NULL, "weights=none"};
    printf("%-9s %-9s %-7s %7s %9s %8s %8s %8s %8s %8s %8s\n", "told", "estimator", "weights",
           "servers", "decisions", "steps", "median", "p99", "most", "beliefs", "p99");
    for (uint32_t i = 0; i < 18; i++) {
        BenchRow row = {sizes[i % 3].servers, sizes[i % 3].decisions, weights[i / 3 % 2],
                        beliefs[i / 6].information, beliefs[i / 6].estimator};
        Arena    a;
        if (arena_init(&a, (size_t)8 << 30) != ERR_OK) return 1;
        if (measure(&row, &a) != ERR_OK) {
            fprintf(stderr, "%s\n", err_why());
            return 1;
        }
        fflush(stdout);
        arena_finish(&a);
    }
    printf("microseconds, %d jobs queued\n", QUEUED);
    return 0;
}
