#include "eval/chip_compare.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "eval/run_file.h"

enum { LEVELS = 3 };  // of service: high, medium, low

typedef struct Count {
    uint32_t n, met;
} Count;

typedef struct ChipMeasure {  // of one run; see result/metric.def
    ChipSummary summary;
    double      request_mj, decision_us, measured_us;
    double      level_sla[LEVELS];
} ChipMeasure;

#define MEASURE                    ChipMeasure
#define VALUE(node, chip, cluster) chip
#include "eval/put_metrics.def"

// Cells stand by chip, mix, load and bandwidth.
static uint32_t n_cells(const ChipCompareParams *p) {
    return p->n_chips * p->n_mixes * p->n_loads * p->n_bandwidths;
}

static double load_of(const ChipCompareParams *p, uint32_t cell) {
    return p->loads[cell / p->n_bandwidths % p->n_loads];
}

static ChipScenarioOptions options_of(const ChipCompareParams *p, uint32_t cell) {
    ChipScenarioOptions o = p->scenario;
    uint32_t            place = cell / (p->n_loads * p->n_bandwidths);
    o.package = p->chips[place / p->n_mixes];
    o.workload = p->mixes[place % p->n_mixes];
    o.bandwidth = p->bandwidths[cell % p->n_bandwidths];
    return o;
}

// Cells that differ in the load alone share a scenario and what policies loaded for it.
static Err open_cell(CompareState *s, uint32_t cell, Arena *a) {
    const ChipCompareParams *p = s->tier_params;
    ChipScenarioOptions      o = options_of(p, cell);
    if (cell / p->n_bandwidths % p->n_loads > 0) {
        s->cells[cell] = s->cells[cell - p->n_bandwidths];
        return ERR_OK;
    }
    ChipScenario *x = arena_new(a, ChipScenario, 1);
    TRY(chip_scenario_open(&o, a, x));
    s->cells[cell].scenario = x;
    s->cells[cell].name = x->package.name;
    for (uint32_t i = 0; i < s->choices->n; i++)
        TRY(chip_choice_load(&s->choices->at[i], &x->setup, a, &s->cells[cell].loaded[i]));
    return ERR_OK;
}

static void count_levels(const ChipRun *run, const ChipResult *result, double out[LEVELS]) {
    Count of[LEVELS] = {0};
    for (uint32_t i = run->skip; i < result->n; i++) {
        Count *c = &of[run->trace.at[i].level % LEVELS];
        c->n++;
        c->met += result->answers[i].outcome == OUTCOME_MET;
    }
    for (uint32_t i = 0; i < LEVELS; i++) out[i] = of[i].n > 0 ? (double)of[i].met / of[i].n : NAN;
}

static void count_tenants(const ChipRun *run, const ChipResult *result, Count *out) {
    for (uint32_t i = run->skip; i < result->n; i++) {
        Count *c = &out[result->answers[i].tenant];
        c->n++;
        c->met += result->answers[i].outcome == OUTCOME_MET;
    }
}

static double ratio(double part, double of) { return of > 0 ? part / of : 0; }

static Err measure(const ChipRun *run, const ChipResult *result, Arena *a, ChipMeasure *out) {
    TRY(chip_summary(run, result, CHIP_NONE, a, &out->summary));
    double charged = ratio(result->planning_ns, (double)result->plans);
    double taken = ratio(result->decide_ns, (double)result->decisions) +
                   ratio(result->plan_ns, (double)result->plans);
    out->request_mj = ratio(out->summary.energy_mj, result->n);
    out->decision_us = (charged + (double)run->controller.dispatch_ns) / 1e3;
    out->measured_us = run->clock != NULL ? taken / 1e3 : NAN;
    count_levels(run, result, out->level_sla);
    return ERR_OK;
}

// One run of a policy; what a ChipRun refers to lives in `a`.
static Err simulate(const ChipScenario *x, const ChipTraffic *t, const PolicyChoice *c,
                    const void *loaded, ChipRun *run, Arena *a, ChipResult *result) {
    ChipTrace trace;
    TRY(chip_scenario_trace(x, t, a, &trace));
    ChipRun made = chip_scenario_run(x, trace);
    made.policy = c->policy;
    made.settings = c->settings;
    made.loaded = loaded;
    made.seed = t->seed;
    made.records = run->records;
    made.clock = run->clock;
    *run = made;
    return chip_simulate(run, a, result);
}

static Count *counts_of(const CompareState *s, CompareRun at) {
    size_t run = ((size_t)at.cell * s->choices->n + at.policy) * s->params->seeds + at.seed;
    return (Count *)s->kept + run * CHIP_TENANTS;
}

static Err run_one(const CompareState *s, CompareRun at, Arena *a) {
    const ChipCompareParams *p = s->tier_params;
    const CompareCell       *cell = &s->cells[at.cell];
    ChipTraffic t = {load_of(p, at.cell), p->burst, p->requests, s->params->first_seed + at.seed};
    Clock       clock = clock_monotonic();
    ChipRun     run = {.clock = s->params->timed ? &clock : NULL};
    ChipResult  result;
    ChipMeasure x;
    TRY(simulate(cell->scenario, &t, &s->choices->at[at.policy], cell->loaded[at.policy], &run, a,
                 &result));
    TRY(measure(&run, &result, a, &x));
    count_tenants(&run, &result, counts_of(s, at));
    put_metrics(&x, compare_values(s, at.cell, at.policy, at.seed));
    return ERR_OK;
}

static void find_worst(const CompareState *s, uint32_t cell, uint32_t policy,
                       ComparisonEntry *out) {
    const ChipScenario *x = s->cells[cell].scenario;
    for (uint32_t t = 0; t < x->setup.n_tenants; t++) {
        Count sum = {0};
        for (uint32_t k = 0; k < s->params->seeds; k++) {
            const Count *c =
                counts_of(s, (CompareRun){.cell = cell, .policy = policy, .seed = k}) + t;
            sum.n += c->n;
            sum.met += c->met;
        }
        double sla = ratio(sum.met, sum.n);
        if (sum.n == 0 || (out->worst_tenant != NULL && sla >= out->worst_sla)) continue;
        out->worst_tenant = x->tenants[t].name;
        out->worst_sla = sla;
    }
}

static void entry(const CompareState *s, uint32_t cell, uint32_t policy, Arena *a,
                  ComparisonEntry *out) {
    const ChipPolicy *p = s->choices->at[policy].policy;
    (void)a;
    out->rank = p->clairvoyant;
    find_worst(s, cell, policy, out);
}

static Err describe(const CompareState *s, uint32_t cell, Arena *a, ComparisonCell *out) {
    const ChipCompareParams *p = s->tier_params;
    const ChipScenario      *x = s->cells[cell].scenario;
    double bandwidth = x->options.bandwidth > 0 ? x->options.bandwidth : x->package.bytes_cycle;
    double load = x->options.trace != NULL ? chip_scenario_trace_load(x) : load_of(p, cell);
    const CellField fields[] = {
        {.key = "chip", .text = x->package.name},
        {.key = "mix", .text = x->workload.name},
        {.key = "load", .kind = FIELD_REAL, .number = load, .axis = "load"},
        {.key = "bandwidth",
         .kind = FIELD_REAL,
         .number = bandwidth,
         .axis = "memory bandwidth [B/cycle]"},
    };
    for (uint32_t i = 0; i < 4; i++) out->fields[out->n_fields++] = fields[i];
    out->group = arena_printf(a, "%s, %s", x->package.name, x->workload.name);
    out->title = arena_printf(a, "%s, load %.4g, %.4g B/cycle", out->group, load, bandwidth);
    return ERR_OK;
}

static const CompareTier chip_tier = {.tier = TIER_CHIP,
                                      .parts = 1,
                                      .open = open_cell,
                                      .run = run_one,
                                      .describe = describe,
                                      .entry = entry};

uint64_t chip_compare_runs(const ChipCompareParams *p, uint32_t n_policies) {
    return compare_runs(&chip_tier, &p->common, n_cells(p), n_policies);
}

static char *about(const ChipCompareParams *p, Arena *a) {
    static const char *const deadlines[] = {"MoCA's levels", "Planaria's levels",
                                            "MLPerf's targets"};
    char                    *text = arena_str(a, "Workloads: ");
    if (p->scenario.trace != NULL)
        return arena_printf(a, "%u requests of %s.", p->requests, p->scenario.trace->name);
    for (uint32_t i = 0; i < p->n_mixes; i++) {
        Workload w;
        if (workload_find(p->mixes[i], a, &w) != ERR_OK) continue;
        text = arena_printf(a, "%s%s%s (", text, i > 0 ? "; " : "", w.name);
        for (uint32_t k = 0; k < w.n; k++)
            text = arena_printf(a, "%s%s%s", text, k > 0 ? ", " : "", w.networks[k]);
        text = arena_printf(a, "%s)", text);
    }
    return arena_printf(
        a,
        "%s. %u requests a run; deadlines by %s%s; memory bandwidth is shared %s; arrivals %s. A "
        "load of 1 is what the package can just answer with perfect packing at its own bandwidth.",
        text, p->requests, deadlines[p->scenario.deadlines],
        p->scenario.firm ? ", after which requests are dropped" : "",
        p->scenario.sharing == CHIP_MAX_MIN ? "max-min fair" : "in equal proportion",
        p->burst > 1 ? "in bursts" : "are a Poisson process");
}

Err chip_compare(const ChipCompareParams *p, const PolicyChoices *c, Arena *a, Comparison *out) {
    uint64_t runs = chip_compare_runs(p, c->n);
    Count   *counts = NULL;
    if (runs <= COMPARE_RUNS_MAX) counts = arena_try_new(a, Count, runs * CHIP_TENANTS);
    if (runs <= COMPARE_RUNS_MAX && counts == NULL)
        return err_set(ERR_LIMIT, "no memory for the results of %llu runs",
                       (unsigned long long)runs);
    TRY(compare_run(&chip_tier, &p->common, p, c, n_cells(p), counts, a, out));
    out->subject_role = "subject";
    out->about = about(p, a);
    out->requests = p->requests;
    return ERR_OK;
}

Err chip_compare_trace(const ChipCompareParams *p, const PolicyChoices *c, const char *path,
                       Arena *a) {
    const PolicyChoice *subject = policy_choices_find(c, p->common.subject);
    RecordList          records = {.arena = a};
    ChipTraffic         t = {p->loads[0], p->burst, p->requests, p->common.first_seed};
    ChipScenarioOptions o = options_of(p, 0);
    ChipScenario        x;
    ChipRun             run = {.records = record_list(&records)};
    ChipResult          result;
    const void         *loaded;
    if (subject == NULL) subject = &c->at[0];
    TRY(chip_scenario_open(&o, a, &x));
    TRY(chip_choice_load(subject, &x.setup, a, &loaded));
    TRY(simulate(&x, &t, subject, loaded, &run, a, &result));
    return chip_run_file_trace(path, &x, subject->label, &records, a);
}

enum { SWEEP_SEEDS = 5 };  // shares of energy hardly vary between seeds

static const uint32_t sizes[] = {16, 32, 64, 128};
static const double   periods_us[] = {100, 250, 500, 1000, 2000};

enum { SIZES = sizeof sizes / sizeof *sizes, PERIODS = sizeof periods_us / sizeof *periods_us };

static bool has_network(const PolicyChoice *c) {
    const ChipPolicy *p = c->policy;
    for (uint32_t i = 0; p->learned && i < p->n_rows; i++)
        if (strcmp(p->rows[i].key, "hidden") == 0) return true;
    return false;
}

const PolicyChoice *chip_sweep_policy(const PolicyChoices *c) {
    for (uint32_t i = 0; i < c->n; i++)
        if (has_network(&c->at[i])) return &c->at[i];
    return NULL;
}

static uint32_t seeds_of(const ChipCompareParams *p) {
    return p->common.seeds < SWEEP_SEEDS ? p->common.seeds : SWEEP_SEEDS;
}

uint64_t chip_sweep_runs(const ChipCompareParams *p) { return SIZES * PERIODS * seeds_of(p); }

static Err with_size(const PolicyChoice *c, uint32_t hidden, Arena *a, PolicyChoices *out) {
    *out = (PolicyChoices){.at = {*c}, .n = 1};
    PolicyChoice *copy = &out->at[0];
    copy->settings = arena_alloc(a, 1, c->info.settings_size, 16);
    memcpy(copy->settings, c->settings, c->info.settings_size);
    Settings s = policy_choice_settings(copy, a);
    return settings_set(&s, arena_printf(a, "hidden=%u", hidden));
}

static Err measure_point(const ChipCompareParams *p, const PolicyChoices *c, Arena *a,
                         SweepPoint *out) {
    Comparison one = {0};
    TRY(chip_compare(p, c, a, &one));
    const ComparisonCell  *cell = &one.cells[0];
    const ComparisonEntry *e = &cell->entries[0];
    out->sla = comparison_mean(&one, cell, e, METRIC_SLA);
    out->share = comparison_mean(&one, cell, e, METRIC_POLICY_ENERGY_SHARE);
    out->decision_us = comparison_mean(&one, cell, e, METRIC_DECISION_US);
    return ERR_OK;
}

static const char *sweep_about_text(const ChipCompareParams *p, const PolicyChoice *c, Arena *a) {
    return arena_printf(
        a,
        "Share of the energy that %s itself takes, by the hidden size that is charged and the "
        "period T_s: %s, %s, load %.4g, %u seeds.",
        c->label, p->chips[0], p->mixes[0], p->loads[0], p->common.seeds);
}

Err chip_sweep(const ChipCompareParams *p, const PolicyChoice *c, Arena *a, Comparison *out) {
    const double      own = 0;
    ChipCompareParams one = *p;
    SweepPoint       *points = arena_new(a, SweepPoint, SIZES * PERIODS);
    one.mixes = &p->mixes[p->n_mixes - 1];
    one.bandwidths = &own;
    one.n_chips = one.n_mixes = one.n_loads = one.n_bandwidths = 1;
    one.common.seeds = seeds_of(p);
    one.common.timed = false;
    one.common.subject = "";
    for (uint32_t i = 0; i < SIZES * PERIODS; i++) {
        PolicyChoices with;
        points[i] =
            (SweepPoint){.hidden = sizes[i / PERIODS], .period_us = periods_us[i % PERIODS]};
        one.scenario.period_us = points[i].period_us;
        TRY(with_size(c, points[i].hidden, a, &with));
        TRY(measure_point(&one, &with, a, &points[i]));
    }
    out->sweep = points;
    out->n_sweep = SIZES * PERIODS;
    out->sweep_about = sweep_about_text(&one, c, a);
    return ERR_OK;
}
