// Which settings of a cluster policy are best? Random settings first, then one setting at a time
// from the best of them, on seeds below 100 of a few scenarios. Figure of merit: mean completion
// time relative to the first run, geometric mean over cells; the makespan is shown beside it.
//   bench_cluster_tune POLICY [random=20] [rounds=2] [seeds=6] [first=1] [trace=FILE]
//                      [elastic=MIN..MAX] [KEY=VALUE|KEY|KEY:V1,V2,... ...]
// KEY=VALUE starts from there, KEY alone keeps that setting out of the search, KEY:V1,V2 tries just
// these. With a trace, windows of its first 60 % are a scenario too.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "cluster/sim/cluster_run.h"
#include "cluster/cluster_scenario.h"
#include "policy/policies.h"

enum { SCENES = 8, SEEDS = 32, ROWS = 32 };

typedef struct Cell {
    const ClusterScenario *scene;
    ClusterScenarioDraw    draw;
    double                 jct, makespan;              // of the settings tried last
    double                 first_jct, first_makespan;  // of those tried first
} Cell;

typedef struct Tune {
    const ClusterPolicy *policy;
    Arena                arena;
    Settings             with;
    ClusterScenario      scenes[SCENES];
    Cell                 cells[SCENES * SEEDS];
    uint32_t             n_scenes, n_cells, seeds, first;
    bool                 kept[ROWS], begun;
    const char          *values[ROWS];  // to try, comma-separated
    ElasticRange         elastic;
    double               best, best_makespan;
    void                *best_values;
    Rng                  rng;
} Tune;

static void fail(Err e) {
    if (e == ERR_OK) return;
    fprintf(stderr, "%s\n", err_why());
    exit(1);
}

static void add_scene(Tune *t, const ClusterScenarioSpec *of) {
    ClusterScenario    *s = &t->scenes[t->n_scenes++];
    ClusterScenarioSpec spec = *of;
    spec.options.elastic = t->elastic;
    fail(cluster_scenario_open(&spec, &t->arena, s));
    for (uint32_t i = 0; i < t->seeds; i++) {
        Cell *c = &t->cells[t->n_cells++];
        c->scene = s;
        fail(cluster_scenario_draw(s, t->first + i, &t->arena, &c->draw));
    }
}

static void add_scenes(Tune *t, const char *trace) {
    add_scene(t, &(ClusterScenarioSpec){.trace = "synth:philly_small",
                                        .servers = "8",
                                        .max_s = CLUSTER_SCENARIO_MAX_S});
    add_scene(t, &(ClusterScenarioSpec){.trace = "synth:openb_small",
                                        .servers = "6",
                                        .max_s = CLUSTER_SCENARIO_MAX_S});
    if (trace == NULL) return;
    add_scene(t, &(ClusterScenarioSpec){.trace = trace,
                                        .servers = "8",
                                        .jobs = CLUSTER_SCENARIO_JOBS,
                                        .load = 1.0,
                                        .max_s = CLUSTER_SCENARIO_MAX_S,
                                        .options = {.window = {.known = true}}});
}

static bool run_cell(Tune *t, Cell *c) {
    ClusterResult  r;
    ClusterSummary s;
    ClusterSetup   setup;
    size_t         mark = t->arena.used;
    ClusterRun     run = {.jobs = &c->draw.jobs,
                          .servers = &c->scene->servers,
                          .profiles = c->scene->profiles,
                          .class_of = c->draw.class_of,
                          .policy = t->policy,
                          .settings = t->with.values,
                          .knows = t->policy->knows,
                          .seed = 1};
    fail(cluster_sim_params("own", t->policy, &run.params));
    fail(cluster_setup(&run, &t->arena, &setup));
    bool takes = t->policy->load == NULL ||
                 t->policy->load(&setup, run.settings, &t->arena, &run.loaded) == ERR_OK;
    if (takes) {
        fail(cluster_simulate(&run, &t->arena, &r));
        fail(cluster_summary(&run, &r, &t->arena, &s));
        c->jct = s.jct_mean_s;
        c->makespan = s.makespan_s;
    }
    arena_rewind(&t->arena, mark);
    return takes;
}

// Both relative to the first run.
static double evaluate(Tune *t, double *makespan) {
    double jct = 0, span = 0, n = 0;
    for (uint32_t i = 0; i < t->n_cells; i++) {
        Cell *c = &t->cells[i];
        if (!run_cell(t, c)) continue;
        if (!t->begun) {
            c->first_jct = c->jct;
            c->first_makespan = c->makespan;
        }
        jct += log(c->jct / c->first_jct);
        span += log(c->makespan / c->first_makespan);
        n++;
    }
    t->begun = true;
    *makespan = n > 0 ? exp(span / n) : 1;
    return n > 0 ? exp(jct / n) : 1;
}

static void *field(const Tune *t, const Setting *row) {
    return (char *)t->with.values + row->offset;
}

static void store(const Tune *t, const Setting *row, double x) {
    if (row->kind == SETTING_double) *(double *)field(t, row) = fmin(fmax(x, row->lo.d), row->hi.d);
    if (row->kind == SETTING_bool) *(bool *)field(t, row) = x > 0.5;
    if (row->kind == SETTING_int)
        *(int *)field(t, row) = (int)lround(fmin(fmax(x, (double)row->lo.i), (double)row->hi.i));
}

static double fetch(const Tune *t, const Setting *row) {
    if (row->kind == SETTING_double) return *(double *)field(t, row);
    if (row->kind == SETTING_bool) return *(bool *)field(t, row);
    return row->kind == SETTING_int ? (double)*(int *)field(t, row) : (double)NAN;
}

static bool is_switch(const Setting *row) {
    return row->kind == SETTING_bool || (row->kind == SETTING_int && row->hi.i - row->lo.i <= 5);
}

static void show(const Tune *t, double jct, double makespan, const char *what) {
    printf("%7.4f %7.4f  %-8s", jct, makespan, what);
    for (uint32_t i = 0; i < t->with.n_rows; i++) {
        const Setting *row = &t->with.rows[i];
        if (row->kind == SETTING_string)
            printf(" %s=%s", row->key, *(const char **)field(t, row));
        else
            printf(" %s=%.4g", row->key, fetch(t, row));
    }
    printf("\n");
    fflush(stdout);
}

static bool try_now(Tune *t, const char *what) {
    double makespan = 1, jct = evaluate(t, &makespan);
    bool   better = jct < t->best - 1e-9;
    if (better) {
        t->best = jct;
        t->best_makespan = makespan;
        memcpy(t->best_values, t->with.values, t->policy->settings_size);
        show(t, jct, makespan, what);
    } else {
        memcpy(t->with.values, t->best_values, t->policy->settings_size);
    }
    return better;
}

// Within a factor of four of the first value; sometimes 0.
static void randomise(Tune *t) {
    for (uint32_t i = 0; i < t->with.n_rows; i++) {
        const Setting *row = &t->with.rows[i];
        double         x = fetch(t, row), u = rng_unit64(&t->rng);
        if (t->kept[i] || t->values[i] != NULL || row->kind == SETTING_string) continue;
        if (is_switch(row)) {
            double hi = row->kind == SETTING_bool ? 1 : (double)row->hi.i;
            double lo = row->kind == SETTING_bool ? 0 : (double)row->lo.i;
            store(t, row, floor(lo + u * (hi - lo + 1)));
        } else if (rng_below(&t->rng, 8) == 0) {
            store(t, row, 0.0);
        } else {
            store(t, row, (x > 0 ? x : 0.5) * exp2(4 * u - 2));
        }
    }
}

static bool try_values(Tune *t, const Setting *row, const char *values) {
    bool any = false;
    for (size_t n; *values != '\0'; values += n + (values[n] == ',')) {
        n = strcspn(values, ",");
        fail(settings_set(&t->with, arena_printf(&t->arena, "%s=%.*s", row->key, (int)n, values)));
        any = try_now(t, row->key) || any;
    }
    return any;
}

static bool try_switch(Tune *t, const Setting *row) {
    int64_t lo = row->kind == SETTING_bool ? 0 : row->lo.i;
    int64_t hi = row->kind == SETTING_bool ? 1 : row->hi.i;
    bool    any = false;
    for (int64_t k = lo; k <= hi; k++)
        if ((double)k != fetch(t, row)) {
            store(t, row, (double)k);
            any = try_now(t, row->key) || any;
        }
    return any;
}

static bool try_row(Tune *t, uint32_t i) {
    static const double factors[] = {0, 0.25, 0.5, 0.7, 0.85, 0.95, 1.05, 1.2, 1.5, 2, 4};
    const Setting      *row = &t->with.rows[i];
    bool                any = false;
    double              x = fetch(t, row);
    if (t->kept[i]) return false;
    if (t->values[i] != NULL) return try_values(t, row, t->values[i]);
    if (row->kind == SETTING_string) return false;
    if (is_switch(row)) return try_switch(t, row);
    for (uint32_t k = 0; k < sizeof factors / sizeof *factors; k++) {
        store(t, row, (x > 0 ? x : 0.5) * factors[k]);
        if (fetch(t, row) != x) any = try_now(t, row->key) || any;
    }
    return any;
}

static void search(Tune *t, uint32_t n_random, uint32_t n_rounds) {
    void *start = arena_alloc(&t->arena, 1, t->policy->settings_size + 1, 64);
    memcpy(start, t->with.values, t->policy->settings_size);
    try_now(t, "start");
    for (uint32_t i = 0; i < n_random && t->with.n_rows > 0; i++) {
        memcpy(t->with.values, start, t->policy->settings_size);
        randomise(t);
        try_now(t, "random");
    }
    memcpy(t->with.values, t->best_values, t->policy->settings_size);
    bool any = true;
    for (uint32_t round = 0; round < n_rounds && any; round++) {
        any = false;
        for (uint32_t i = 0; i < t->with.n_rows; i++) any = try_row(t, i) || any;
    }
}

static void show_scenes(Tune *t) {
    double makespan;
    memcpy(t->with.values, t->best_values, t->policy->settings_size);
    show(t, evaluate(t, &makespan), t->best_makespan, "best");
    for (uint32_t i = 0; i < t->n_scenes; i++) {
        double jct = 0, span = 0;
        for (uint32_t k = 0; k < t->seeds; k++) {
            jct += t->cells[i * t->seeds + k].jct / t->seeds;
            span += t->cells[i * t->seeds + k].makespan / t->seeds;
        }
        printf("%-24s %-15s jct %9.1f s  makespan %9.1f s\n", t->scenes[i].trace, t->policy->name,
               jct, span);
    }
}

static bool choose(Tune *t, const char *arg) {
    for (uint32_t i = 0; i < t->with.n_rows && i < ROWS; i++) {
        size_t n = strlen(t->with.rows[i].key);
        if (strncmp(t->with.rows[i].key, arg, n) != 0) continue;
        if (arg[n] == '\0') return t->kept[i] = true;
        if (arg[n] == ':') return (t->values[i] = arg + n + 1) != NULL;
    }
    return false;
}

int main(int argc, char **argv) {
    static Tune t = {.best = 1e300, .seeds = 6, .first = 1, .rng = {1}};
    uint32_t    n_random = 20, n_rounds = 2;
    const char *trace = NULL;
    if (argc < 2 || (t.policy = policies_cluster_find(argv[1])) == NULL) {
        fprintf(stderr, "usage: bench_cluster_tune POLICY [random=N] [rounds=N] [seeds=N] "
                        "[first=SEED] [trace=FILE] [elastic=MIN..MAX] "
                        "[KEY=VALUE|KEY|KEY:V1,V2 ...]\n");
        return 2;
    }
    fail(arena_init(&t.arena, (size_t)16 << 30));
    t.with = (Settings){t.policy->rows, t.policy->n_rows,
                        arena_alloc(&t.arena, 1, t.policy->settings_size + 1, 64), &t.arena};
    t.best_values = arena_alloc(&t.arena, 1, t.policy->settings_size + 1, 64);
    if (t.with.n_rows > 0) settings_default(&t.with);
    for (int i = 2; i < argc; i++) {
        if (sscanf(argv[i], "random=%u", &n_random) == 1) continue;
        if (sscanf(argv[i], "rounds=%u", &n_rounds) == 1) continue;
        if (sscanf(argv[i], "seeds=%u", &t.seeds) == 1) continue;
        if (sscanf(argv[i], "first=%u", &t.first) == 1) continue;
        if (strncmp(argv[i], "trace=", 6) == 0)
            trace = argv[i] + 6;
        else if (strncmp(argv[i], "elastic=", 8) == 0)
            fail(elastic_range_read(argv[i] + 8, &t.elastic));
        else if (!choose(&t, argv[i]))
            fail(settings_set(&t.with, argv[i]));
    }
    if (t.seeds < 1 || t.seeds > SEEDS || t.first < 1 ||
        t.first + t.seeds > CLUSTER_SCENARIO_MEASURE) {
        fprintf(stderr, "seeds are chosen from 1 to 99, %d at most\n", SEEDS);
        return 2;
    }
    add_scenes(&t, trace);
    search(&t, n_random, n_rounds);
    show_scenes(&t);
    arena_finish(&t.arena);
    return 0;
}
