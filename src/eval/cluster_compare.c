#include "eval/cluster_compare.h"

#include <math.h>

#include "base/clock.h"
#include "cluster/sim/cluster_run.h"

enum { QUANTILES = 200 };  // of completion times, for each run

typedef struct JctSamples {
    double   jct_s[QUANTILES];  // evenly picked
    uint32_t n;
} JctSamples;

typedef struct UseSeries {  // over time
    double   at_h[CLUSTER_SPANS], gpu_use[CLUSTER_SPANS], queue[CLUSTER_SPANS];
    uint32_t n;
} UseSeries;

typedef struct Kept {
    JctSamples *jct;  // [cell][policy][seed]
    UseSeries  *use;  // [cell][policy] of the first seed
} Kept;

typedef struct ClusterMeasure {  // of one run; see result/metric.def
    ClusterSummary summary;
    ClusterResult  result;
    double         decision_us, stops, most_stops;
} ClusterMeasure;

#define MEASURE                    ClusterMeasure
#define VALUE(node, chip, cluster) cluster
#include "eval/put_metrics.def"

static uint32_t n_cells(const ClusterCompareParams *p) {
    return p->n_traces * p->n_servers * p->n_loads;
}

static ClusterKnowledge knows(const ClusterCompareParams *p, const PolicyChoice *c) {
    const ClusterPolicy *of = c->policy;
    ClusterKnowledge     told = information_knows(&p->scenario.information, of->knows);
    return p->error > 0 && told == CLUSTER_ORACLE ? CLUSTER_PREDICTED : told;
}

static ClusterRun run_of(const ClusterScenario *s, const ClusterScenarioDraw *d) {
    return (ClusterRun){.jobs = &d->jobs,
                        .servers = &s->servers,
                        .profiles = d->truth,
                        .class_of = d->class_of,
                        .beliefs = d->beliefs,
                        .info = s->information,
                        .tenants = s->tenants};
}

// The setup that policies load for: it holds for the runs of all seeds.
static Err setup_of(const CompareState *s, const ClusterScenario *x, Arena *a, ClusterSetup *out) {
    for (uint32_t k = 0; k < s->params->seeds; k++) {
        ClusterScenarioDraw d;
        ClusterSetup        one;
        TRY(cluster_scenario_draw(x, s->params->first_seed + k, a, &d));
        ClusterRun run = run_of(x, &d);
        TRY(cluster_sim_params("own", s->choices->at[0].policy, &run.params));
        cluster_stop_options(x->stops, &run.params);
        TRY(cluster_setup(&run, a, &one));
        if (k == 0) *out = one;
        out->fractions = out->fractions || one.fractions;
        out->no_gpus = out->no_gpus || one.no_gpus;
        out->shares = out->shares || one.shares;
        if (one.n_slots > out->n_slots) out->n_slots = one.n_slots;
    }
    return ERR_OK;
}

static Err load_policies(const CompareState *s, CompareCell *cell, Arena *a) {
    ClusterSetup setup = {0};
    TRY(setup_of(s, cell->scenario, a, &setup));
    for (uint32_t i = 0; i < s->choices->n; i++) {
        const PolicyChoice *c = &s->choices->at[i];
        Err                 e = cluster_choice_load(c, &setup, a, &cell->loaded[i]);
        if (e == ERR_ARG || (e == ERR_CONFIG && s->choices->all))  // ERR_CONFIG: it has no weights
            cell->missing[i] = arena_str(a, err_why());
        else if (e != ERR_OK)
            return err_add(e, "%s on %s", c->label, cell->name);
    }
    return ERR_OK;
}

static const char *servers_of(const ClusterCompareParams *p, uint32_t cell) {
    return p->servers[cell / p->n_loads % p->n_servers];
}

static Err open_cell(CompareState *s, uint32_t cell, Arena *a) {
    const ClusterCompareParams *p = s->tier_params;
    ClusterScenarioSpec         spec = p->scenario;
    ClusterScenario            *x = arena_new(a, ClusterScenario, 1);
    spec.trace = p->traces[cell / (p->n_servers * p->n_loads)];
    spec.servers = servers_of(p, cell);
    spec.load = p->loads[cell % p->n_loads];
    TRY(cluster_scenario_open(&spec, a, x));
    s->cells[cell].scenario = x;
    s->cells[cell].name = x->trace;
    return load_policies(s, &s->cells[cell], a);
}

static Err keep_jct(const ClusterRun *run, const ClusterResult *r, Arena *a, JctSamples *out) {
    double *jct = arena_try_new(a, double, r->n), *sorted = NULL;
    if (jct == NULL) return err_set(ERR_LIMIT, "no memory for the times of %u jobs", r->n);
    for (uint32_t i = 0; i < r->n; i++)
        jct[i] = (double)(r->ends[i].finish - run->jobs->at[i].submit) / 1e9;
    TRY(stats_sort(a, jct, r->n, &sorted));
    out->n = r->n < QUANTILES ? r->n : QUANTILES;
    for (uint32_t i = 0; i < out->n; i++)
        out->jct_s[i] = sorted[(uint64_t)(2 * i + 1) * r->n / (2 * (uint64_t)out->n)];
    return ERR_OK;
}

static void keep_use(const ClusterResult *r, UseSeries *out) {
    out->n = r->n_spans;
    for (uint32_t i = 0; i < r->n_spans; i++) {
        out->at_h[i] = (i + 0.5) * (double)r->span / 3600e9;
        out->gpu_use[i] = 100 * r->timeline[i].gpus;
        out->queue[i] = r->timeline[i].waiting;
    }
}

static void note_stops(ClusterMeasure *x) {
    const ClusterResult *r = &x->result;
    x->stops = r->n > 0 ? (double)r->preemptions / r->n : 0;
    for (uint32_t i = 0; i < r->n; i++) x->most_stops = fmax(x->most_stops, r->ends[i].preemptions);
}

static Err simulate(const CompareState *s, CompareRun at, ClusterRun *run, Arena *a) {
    const Kept    *k = s->kept;
    ClusterMeasure x = {.decision_us = NAN};
    uint32_t       entry = at.cell * s->choices->n + at.policy;
    TRY(cluster_simulate(run, a, &x.result));
    if (s->params->curves) {
        TRY(keep_jct(run, &x.result, a, &k->jct[(size_t)entry * s->params->seeds + at.seed]));
        if (at.seed == 0) keep_use(&x.result, &k->use[entry]);
    }
    TRY(cluster_summary(run, &x.result, a, &x.summary));
    if (run->clock != NULL)
        x.decision_us =
            x.result.decisions > 0 ? x.result.decide_ns / 1e3 / (double)x.result.decisions : 0;
    note_stops(&x);
    put_metrics(&x, compare_values(s, at.cell, at.policy, at.seed));
    return ERR_OK;
}

static Err run_one(const CompareState *s, CompareRun at, Arena *a) {
    const ClusterCompareParams *p = s->tier_params;
    const CompareCell          *cell = &s->cells[at.cell];
    const PolicyChoice         *c = &s->choices->at[at.policy];
    uint64_t                    seed = s->params->first_seed + at.seed;
    Clock                       clock = clock_monotonic();
    ClusterScenarioDraw         d;
    TRY(cluster_scenario_draw(cell->scenario, seed, a, &d));
    ClusterRun run = run_of(cell->scenario, &d);
    run.policy = c->policy;
    run.settings = c->settings;
    run.loaded = cell->loaded[at.policy];
    run.knows = knows(p, c);
    run.error = p->error > 0 ? p->error : run.info.error;
    run.seed = seed;
    run.clock = s->params->timed ? &clock : NULL;
    TRY(cluster_sim_params("own", c->policy, &run.params));
    cluster_stop_options(((const ClusterScenario *)cell->scenario)->stops, &run.params);
    Err e = simulate(s, at, &run, a);
    if (e == ERR_OK) return e;
    return err_add(e, "%s on %s, seed %llu", c->label, cell->name, (unsigned long long)seed);
}

// The samples of all seeds side by side, and the series of the first.
static void add_curves(const CompareState *s, uint32_t entry, Arena *a, ComparisonEntry *out) {
    const Kept      *k = s->kept;
    uint32_t         seeds = s->params->seeds, n = 0;
    const UseSeries *use = &k->use[entry];
    double          *jct = arena_new(a, double, (size_t)seeds *QUANTILES);
    for (uint32_t i = 0; i < seeds; i++) {
        const JctSamples *x = &k->jct[(size_t)entry * seeds + i];
        for (uint32_t j = 0; j < x->n; j++) jct[n++] = x->jct_s[j];
    }
    out->curves[CURVE_JCT] = (Curve){NULL, jct, n};
    out->curves[CURVE_GPU_USE] = (Curve){use->at_h, use->gpu_use, use->n};
    out->curves[CURVE_QUEUE] = (Curve){use->at_h, use->queue, use->n};
}

static void entry(const CompareState *s, uint32_t cell, uint32_t policy, Arena *a,
                  ComparisonEntry *out) {
    static const char *const words[] = {
        [CLUSTER_BLIND] = "blind", [CLUSTER_PREDICTED] = "predicted", [CLUSTER_ORACLE] = "oracle"};
    out->rank = knows(s->tier_params, &s->choices->at[policy]);
    out->knows = words[out->rank];
    if (s->params->curves) add_curves(s, cell * s->choices->n + policy, a, out);
}

static const char *title(const ClusterScenario *x, Arena *a) {
    const char *load = x->load > 0 ? arena_printf(a, "load %.4g", x->load) : "times of the trace";
    char *text = arena_printf(a, "%s on %u servers with %llu GPUs, %s", x->trace, x->servers.n,
                              (unsigned long long)x->servers.gpus, load);
    if (x->long_ones + x->too_large == 0) return text;
    return arena_printf(a, "%s; left out: %u jobs too long, %u too large", text, x->long_ones,
                        x->too_large);
}

static Err describe(const CompareState *s, uint32_t cell, Arena *a, ComparisonCell *out) {
    const ClusterScenario *x = s->cells[cell].scenario;
    const CellField        fields[] = {
               {.key = "trace", .text = x->trace},
               {.key = "servers", .kind = FIELD_INT, .number = x->servers.n, .axis = "servers"},
               {.key = "servers_from", .text = servers_of(s->tier_params, cell)},
               {.key = "gpus", .kind = FIELD_INT, .number = (double)x->servers.gpus},
               {.key = "load", .kind = FIELD_REAL, .number = x->load, .axis = "load"},
               {.key = "too_long", .within = "left_out", .kind = FIELD_INT, .number = x->long_ones},
               {.key = "too_large", .within = "left_out", .kind = FIELD_INT, .number = x->too_large},
    };
    for (uint32_t i = 0; i < sizeof fields / sizeof *fields; i++)
        out->fields[out->n_fields++] = fields[i];
    if (!information_is_perfect(&x->information) || x->information.estimator)
        out->fields[out->n_fields++] =
            (CellField){.key = "information", .text = information_text(&x->information, a)};
    out->group = x->trace;
    out->title = title(x, a);
    return ERR_OK;
}

static const CompareTier cluster_tier = {.tier = TIER_CLUSTER,
                                         .parts = 1,
                                         .open = open_cell,
                                         .run = run_one,
                                         .describe = describe,
                                         .entry = entry};

uint64_t cluster_compare_runs(const ClusterCompareParams *p, uint32_t n_policies) {
    return compare_runs(&cluster_tier, &p->common, n_cells(p), n_policies);
}

// Part of a trace's time that the seeds draw from; see cluster_scenario.h.
static const char *part_of(const CompareParams *p) {
    uint64_t last = p->first_seed + p->seeds - 1;
    if (p->first_seed >= CLUSTER_SCENARIO_MEASURE && last < CLUSTER_SCENARIO_TRAIN)
        return "the last 40 %";
    if (last < CLUSTER_SCENARIO_MEASURE || p->first_seed >= CLUSTER_SCENARIO_TRAIN)
        return "the first 60 %";
    return "all";
}

static char *about(const ClusterCompareParams *p, Arena *a) {
    const ClusterScenarioSpec *x = &p->scenario;
    char                      *many = x->jobs == CLUSTER_SCENARIO_JOBS
                                          ? arena_printf(a, "%d jobs per server", CLUSTER_SCENARIO_JOBS_PER_SERVER)
                                          : arena_printf(a, "%u jobs", x->jobs);
    char                      *jobs = x->jobs > 0 ? arena_printf(a,
                                                                 "Windows of %s, drawn by the seed from %s of a trace's "
                                                                                      "time (at most half of its jobs), or generated from it",
                                                                 many, part_of(&p->common))
                                                  : arena_str(a, "Whole traces");
    char                      *error = p->error > 0
                                           ? arena_printf(a, "; durations are off by a factor of e^%.3g", p->error)
                                           : arena_str(a, "");
    char                      *longest = x->max_s > 0
                                             ? arena_printf(a, "; no job longer than %lld s", (long long)x->max_s)
                                             : arena_str(a, "");
    char                      *information =
        information_is_perfect(&x->information) && !x->information.estimator
                                 ? arena_str(a, "")
                                 : arena_printf(a, "; policies are told: %s", information_text(&x->information, a));
    return arena_printf(a, "%s%s%s%s.", jobs, longest, error, information);
}

static Err make_kept(const ClusterCompareParams *p, uint32_t n_policies, Arena *a, Kept *out) {
    uint64_t runs = cluster_compare_runs(p, n_policies);
    if (!p->common.curves || runs > COMPARE_RUNS_MAX) return ERR_OK;
    out->jct = arena_try_new(a, JctSamples, runs);
    out->use = arena_try_new(a, UseSeries, runs / p->common.seeds);
    if (out->jct != NULL && out->use != NULL) return ERR_OK;
    return err_set(ERR_LIMIT, "no memory for the curves of %llu runs", (unsigned long long)runs);
}

Err cluster_compare(const ClusterCompareParams *p, const PolicyChoices *c, Arena *a,
                    Comparison *out) {
    const PolicyChoice *subject = policy_choices_find(c, p->common.subject);
    Kept                kept = {0};
    TRY(make_kept(p, c->n, a, &kept));
    TRY(compare_run(&cluster_tier, &p->common, p, c, n_cells(p), &kept, a, out));
    out->subject_role = "subject";
    out->fair_rank = subject != NULL ? knows(p, subject) : 0;
    out->about = about(p, a);
    return ERR_OK;
}
