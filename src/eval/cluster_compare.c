#include "eval/cluster_compare.h"

#include <math.h>

#include "base/clock.h"
#include "base/parallel_for.h"
#include "cluster/sim/cluster_run.h"

typedef struct Ground {  // a cell: servers, and jobs for every seed
    ClusterScenario scene;
    const void    **loaded;   // [policies]
    const char    **missing;  // [policies] why they take no part; NULL: they do
} Ground;

typedef struct Curves {
    double   jct_s[LEAGUE_QUANTILES];
    uint32_t n_jct;
} Curves;

typedef struct Course {
    double   at_h[CLUSTER_SPANS], gpu_use[CLUSTER_SPANS], queue[CLUSTER_SPANS];
    uint32_t n;
} Course;

typedef struct Field {  // what the threads share
    const ClusterCompareParams *rules;
    const ClusterChoices       *choices;
    Ground                     *grounds;  // [cell] by trace, servers and load
    LeagueRun                  *runs;     // [cell][policy][seed]
    Curves                     *curves;   // likewise; NULL: nobody wants them
    Course                     *courses;  // [cell][policy]
} Field;

static uint32_t n_cells(const ClusterCompareParams *r) {
    return r->n_traces * r->n_servers * r->n_loads;
}

uint32_t cluster_compare_steps(const ClusterCompareParams *r, uint32_t n_policies) {
    return n_cells(r) * n_policies * r->seeds;
}

static ClusterKnowledge knows(const ClusterCompareParams *r, const ClusterPolicy *p) {
    return r->error > 0 && p->knows == CLUSTER_ORACLE ? CLUSTER_PREDICTED : p->knows;
}

static ClusterRun run_of(const ClusterScenario *s, const ClusterScenarioDraw *d) {
    return (ClusterRun){
        .jobs = &d->jobs, .servers = &s->servers, .profiles = s->profiles, .class_of = d->class_of};
}

// What policies are told before runs holds for all seeds.
static Err setup_of(const Field *f, const ClusterScenario *s, Arena *a, ClusterSetup *out) {
    for (uint32_t k = 0; k < f->rules->seeds; k++) {
        ClusterScenarioDraw d;
        ClusterSetup        x;
        TRY(cluster_scenario_draw(s, f->rules->first_seed + k, a, &d));
        ClusterRun run = run_of(s, &d);
        TRY(cluster_sim_params("own", f->choices->at[0].policy, &run.params));
        TRY(cluster_setup(&run, a, &x));
        if (k == 0) *out = x;
        out->fractions = out->fractions || x.fractions;
        out->no_gpus = out->no_gpus || x.no_gpus;
        out->shares = out->shares || x.shares;
        if (x.n_slots > out->n_slots) out->n_slots = x.n_slots;
    }
    return ERR_OK;
}

static Err load_policies(const Field *f, Ground *g, Arena *a) {
    ClusterSetup setup = {0};
    TRY(setup_of(f, &g->scene, a, &setup));
    for (uint32_t i = 0; i < f->choices->n; i++) {
        const ClusterChoice *c = &f->choices->at[i];
        Err                  e = cluster_choice_load(c, &setup, a, &g->loaded[i]);
        if (e == ERR_ARG || (e == ERR_CONFIG && f->choices->all))  // that: it has no weights
            g->missing[i] = arena_str(a, err_why());
        else if (e != ERR_OK)
            return err_add(e, "%s on %s", c->label, g->scene.trace);
    }
    return ERR_OK;
}

static Err open_ground(const Field *f, uint32_t cell, Arena *a) {
    const ClusterCompareParams *r = f->rules;
    Ground                     *g = &f->grounds[cell];
    ClusterScenarioSpec         spec = r->scene;
    spec.trace = r->traces[cell / (r->n_servers * r->n_loads)];
    spec.servers = r->servers[cell / r->n_loads % r->n_servers];
    spec.load = r->loads[cell % r->n_loads];
    TRY(cluster_scenario_open(&spec, a, &g->scene));
    g->loaded = arena_new(a, const void *, f->choices->n);
    g->missing = arena_new(a, const char *, f->choices->n);
    return load_policies(f, g, a);
}

static Err sum_up(const ClusterRun *run, const ClusterResult *x, Arena *a, LeagueRun *out) {
    ClusterSummary s;
    double         taken = x->decisions > 0 ? x->decide_ns / 1e3 / (double)x->decisions : 0;
    TRY(cluster_summary(run, x, a, &s));
    *out = (LeagueRun){.jct_mean_s = s.jct_mean_s,
                       .jct_p50_s = s.jct_p50_s,
                       .jct_p99_s = s.jct_p99_s,
                       .makespan_s = s.makespan_s,
                       .queue_mean_s = s.queue_mean_s,
                       .queue_p99_s = s.queue_p99_s,
                       .slowdown = s.slowdown_mean,
                       .fairness = s.fairness,
                       .gpu_use = x->use.gpus,
                       .core_use = x->use.cores,
                       .memory_use = x->use.memory,
                       .preemptions = (double)x->preemptions,
                       .levels = (double)x->levels,
                       .jobs = x->n,
                       .decision_us = run->clock != NULL ? taken : NAN};
    return ERR_OK;
}

static Err keep_curve(const ClusterRun *run, const ClusterResult *x, Arena *a, Curves *out) {
    double *jct = arena_try_new(a, double, x->n), *sorted = NULL;
    if (jct == NULL) return err_set(ERR_LIMIT, "no memory for the times of %u jobs", x->n);
    for (uint32_t i = 0; i < x->n; i++)
        jct[i] = (double)(x->ends[i].finish - run->jobs->at[i].submit) / 1e9;
    TRY(stats_sort(a, jct, x->n, &sorted));
    out->n_jct = x->n < LEAGUE_QUANTILES ? x->n : LEAGUE_QUANTILES;
    for (uint32_t i = 0; i < out->n_jct; i++)
        out->jct_s[i] = sorted[(uint64_t)(2 * i + 1) * x->n / (2 * (uint64_t)out->n_jct)];
    return ERR_OK;
}

static void keep_course(const ClusterResult *x, Course *out) {
    out->n = x->n_spans;
    for (uint32_t i = 0; i < x->n_spans; i++) {
        out->at_h[i] = (i + 0.5) * (double)x->span / 3600e9;
        out->gpu_use[i] = 100 * x->timeline[i].gpus;
        out->queue[i] = x->timeline[i].waiting;
    }
}

static Err simulate(const Field *f, uint32_t i, ClusterRun *run, Arena *a) {
    ClusterResult x;
    uint32_t      seed = i % f->rules->seeds;
    TRY(cluster_simulate(run, a, &x));
    if (f->curves != NULL) {
        TRY(keep_curve(run, &x, a, &f->curves[i]));
        if (seed == 0) keep_course(&x, &f->courses[i / f->rules->seeds]);
    }
    return sum_up(run, &x, a, &f->runs[i]);
}

static Err job(void *self, uint32_t i, Arena *a) {
    const Field                *f = self;
    const ClusterCompareParams *r = f->rules;
    uint32_t                    policy = i / r->seeds % f->choices->n;
    const Ground               *g = &f->grounds[i / r->seeds / f->choices->n];
    const ClusterChoice        *c = &f->choices->at[policy];
    uint64_t                    seed = r->first_seed + i % r->seeds;
    Clock                       clock = clock_monotonic();
    ClusterScenarioDraw         d;
    if (g->missing[policy] != NULL) return ERR_OK;
    TRY(cluster_scenario_draw(&g->scene, seed, a, &d));
    ClusterRun run = run_of(&g->scene, &d);
    run.policy = c->policy;
    run.settings = c->settings;
    run.loaded = g->loaded[policy];
    run.knows = knows(r, c->policy);
    run.error = r->error;
    run.seed = seed;
    run.clock = r->measure ? &clock : NULL;
    TRY(cluster_sim_params("own", c->policy, &run.params));
    Err e = simulate(f, i, &run, a);
    if (e == ERR_OK) return e;
    return err_add(e, "%s on %s, seed %llu", c->label, g->scene.trace, (unsigned long long)seed);
}

// What all seeds have, side by side.
static LeagueCurves curves_of(const Field *f, uint32_t first, Arena *a) {
    uint32_t seeds = f->rules->seeds, n = 0;
    if (f->curves == NULL) return (LeagueCurves){0};
    const Course *x = &f->courses[first / seeds];
    double       *jct = arena_new(a, double, (size_t)seeds *LEAGUE_QUANTILES);
    for (uint32_t k = 0; k < seeds; k++)
        for (uint32_t i = 0; i < f->curves[first + k].n_jct; i++)
            jct[n++] = f->curves[first + k].jct_s[i];
    return (LeagueCurves){.jct_s = jct,
                          .at_h = x->at_h,
                          .gpu_use = x->gpu_use,
                          .queue = x->queue,
                          .n_jct = n,
                          .n_spans = x->n};
}

static LeagueCell cell_of(const Field *f, uint32_t cell, Arena *a) {
    static const char *const words[] = {
        [CLUSTER_BLIND] = "blind", [CLUSTER_PREDICTED] = "predicted", [CLUSTER_ORACLE] = "oracle"};
    const ClusterCompareParams *r = f->rules;
    const Ground               *g = &f->grounds[cell];
    uint32_t                    n = f->choices->n;
    LeagueEntry                *entries = arena_new(a, LeagueEntry, n);
    for (uint32_t i = 0; i < n; i++) {
        const ClusterChoice *c = &f->choices->at[i];
        uint32_t             first = (cell * n + i) * r->seeds;
        entries[i] = (LeagueEntry){.policy = c->label,
                                   .knows = words[knows(r, c->policy)],
                                   .rank = knows(r, c->policy),
                                   .paper = c->policy->paper,
                                   .of = c->of,
                                   .missing = g->missing[i],
                                   .runs = &f->runs[first],
                                   .curves = curves_of(f, first, a)};
    }
    return (LeagueCell){.trace = g->scene.trace,
                        .servers = r->servers[cell / r->n_loads % r->n_servers],
                        .load = g->scene.load,
                        .n_servers = g->scene.servers.n,
                        .gpus = g->scene.servers.gpus,
                        .long_ones = g->scene.long_ones,
                        .too_large = g->scene.too_large,
                        .entries = entries,
                        .n_entries = n};
}

// From which part of a trace's time seeds draw; see scene.h.
static const char *part_of(const ClusterCompareParams *r) {
    uint64_t last = r->first_seed + r->seeds - 1;
    if (r->first_seed >= CLUSTER_SCENARIO_MEASURE && last < CLUSTER_SCENARIO_TRAIN)
        return "the last 40 %";
    if (last < CLUSTER_SCENARIO_MEASURE || r->first_seed >= CLUSTER_SCENARIO_TRAIN)
        return "the first 60 %";
    return "all";
}

static char *about(const ClusterCompareParams *r, Arena *a) {
    char *many = r->scene.jobs == CLUSTER_SCENARIO_JOBS
                     ? arena_printf(a, "%d jobs a server", CLUSTER_SCENARIO_JOBS_PER_SERVER)
                     : arena_printf(a, "%u jobs", r->scene.jobs);
    char *jobs = r->scene.jobs > 0
                     ? arena_printf(a,
                                    "Windows of %s, drawn by the seed from %s of a trace's "
                                    "time (at most half of them), or made by it",
                                    many, part_of(r))
                     : arena_str(a, "Whole traces");
    char *error = r->error > 0
                      ? arena_printf(a, "; durations are off by a factor of e^%.3g", r->error)
                      : arena_str(a, "");
    char *longest = r->scene.max_s > 0
                        ? arena_printf(a, "; no job longer than %lld s", (long long)r->scene.max_s)
                        : arena_str(a, "");
    return arena_printf(a, "%s%s%s.", jobs, longest, error);
}

// Who was named has to take part somewhere; somebody has to everywhere.
static Err check_missing(const Field *f) {
    uint32_t cells = n_cells(f->rules), n = f->choices->n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t missing = 0;
        for (uint32_t c = 0; c < cells; c++) missing += f->grounds[c].missing[i] != NULL;
        if (missing == cells && (!f->choices->all || n == 1))
            return err_set(ERR_ARG, "%s: %s", f->choices->at[i].label, f->grounds[0].missing[i]);
    }
    for (uint32_t c = 0; c < cells; c++) {
        uint32_t i = 0;
        while (i < n && f->grounds[c].missing[i] != NULL) i++;
        if (i == n)
            return err_set(ERR_ARG, "%s: no policy can run it; %s: %s", f->grounds[c].scene.trace,
                           f->choices->at[0].label, f->grounds[c].missing[0]);
    }
    return ERR_OK;
}

static Err prepare(Field *f, uint32_t n_jobs, Arena *a) {
    uint32_t cells = n_cells(f->rules);
    f->grounds = arena_new(a, Ground, cells);
    f->runs = arena_try_new(a, LeagueRun, n_jobs);
    if (f->rules->curves) {
        f->curves = arena_try_new(a, Curves, n_jobs);
        f->courses = arena_try_new(a, Course, cells * f->choices->n);
    }
    if (f->runs == NULL || (f->rules->curves && (f->curves == NULL || f->courses == NULL)))
        return err_set(ERR_LIMIT, "no memory for the results of %u runs", n_jobs);
    for (uint32_t i = 0; i < cells; i++) TRY(open_ground(f, i, a));
    return check_missing(f);
}

Err cluster_compare_run(const ClusterCompareParams *r, const ClusterChoices *c, Progress *p,
                        Arena *a, League *out) {
    ParallelFor jobs = {.run = job, .n = cluster_compare_steps(r, c->n), .progress = p, .worth = 1};
    Field       f = {.rules = r, .choices = c};
    TRY(prepare(&f, jobs.n, a));
    jobs.self = &f;
    TRY(parallel_for(&jobs, r->threads));
    LeagueCell *cells = arena_new(a, LeagueCell, n_cells(r));
    for (uint32_t i = 0; i < n_cells(r); i++) cells[i] = cell_of(&f, i, a);
    out->about = about(r, a);
    out->cells = cells;
    out->n_cells = n_cells(r);
    out->seeds = r->seeds;
    out->first_seed = r->first_seed;
    out->measured = r->measure;
    return ERR_OK;
}
