#include "eval/chip_compare.h"

#include <math.h>

#include "base/clock.h"
#include "base/parallel_for.h"

typedef struct Ground {  // a package with a workload at a bandwidth
    ChipScenario stage;
    const void **loaded;  // [policies]
} Ground;

typedef struct Count {
    uint32_t n, met;
} Count;

typedef struct Field {  // what the threads share
    const ChipCompareParams *rules;
    const ChipChoices       *choices;
    Ground                  *grounds;  // [chip][mix][bandwidth]
    MatchRun                *runs;     // [cell][policy][trace]
    Count                   *counts;   // [cell][policy][trace][CHIP_TENANTS]
} Field;

// Cells stand by chip, mix, load and bandwidth.
static uint32_t n_cells(const ChipCompareParams *r) {
    return r->n_chips * r->n_mixes * r->n_loads * r->n_bandwidths;
}

static const Ground *ground_of(const Field *f, uint32_t cell) {
    const ChipCompareParams *r = f->rules;
    uint32_t                 place = cell / (r->n_loads * r->n_bandwidths);
    return &f->grounds[place * r->n_bandwidths + cell % r->n_bandwidths];
}

static double load_of(const ChipCompareParams *r, uint32_t cell) {
    return r->loads[cell / r->n_bandwidths % r->n_loads];
}

uint32_t chip_compare_steps(const ChipCompareParams *r, uint32_t n_policies) {
    return n_cells(r) * n_policies * r->traces;
}

static Err open_ground(const Field *f, uint32_t i, Arena *a) {
    const ChipCompareParams *r = f->rules;
    Ground                  *g = &f->grounds[i];
    ChipScenarioOptions      o = r->stage;
    o.package = r->chips[i / (r->n_mixes * r->n_bandwidths)];
    o.workload = r->mixes[i / r->n_bandwidths % r->n_mixes];
    o.bandwidth = r->bandwidths[i % r->n_bandwidths];
    TRY(chip_scenario_open(&o, a, &g->stage));
    g->loaded = arena_new(a, const void *, f->choices->n);
    for (uint32_t k = 0; k < f->choices->n; k++)
        TRY(chip_choice_load(&f->choices->at[k], &g->stage.setup, a, &g->loaded[k]));
    return ERR_OK;
}

static void count_levels(const ChipRun *run, const ChipResult *result, MatchRun *out) {
    Count of[MATCH_LEVELS] = {0};
    for (uint32_t i = run->skip; i < result->n; i++) {
        Count *c = &of[run->trace.at[i].level % MATCH_LEVELS];
        c->n++;
        c->met += result->answers[i].outcome == OUTCOME_MET;
    }
    for (uint32_t i = 0; i < MATCH_LEVELS; i++)
        out->level_sla[i] = of[i].n > 0 ? (double)of[i].met / of[i].n : NAN;
}

static void count_tenants(const ChipRun *run, const ChipResult *result, Count *out) {
    for (uint32_t i = run->skip; i < result->n; i++) {
        Count *c = &out[result->answers[i].tenant];
        c->n++;
        c->met += result->answers[i].outcome == OUTCOME_MET;
    }
}

static double ratio(double part, double of) { return of > 0 ? part / of : 0; }

static Err sum_up(const ChipRun *run, const ChipResult *result, Arena *a, MatchRun *out) {
    ChipSummary s;
    TRY(chip_summary(run, result, CHIP_NONE, a, &s));
    double charged = ratio(result->planning_ns, (double)result->plans);
    double taken = ratio(result->decide_ns, (double)result->decisions) +
                   ratio(result->plan_ns, (double)result->plans);
    *out = (MatchRun){.sla = s.sla,
                      .slowdown = s.slowdown,
                      .energy_mj = s.energy_mj,
                      .request_mj = ratio(s.energy_mj, result->n),
                      .policy_share = s.policy_energy_share,
                      .bandwidth_use = s.bandwidth_use,
                      .unit_use = s.unit_use,
                      .decision_us = (charged + (double)run->controller.dispatch_ns) / 1e3,
                      .measured_us = run->clock != NULL ? taken / 1e3 : NAN};
    count_levels(run, result, out);
    return ERR_OK;
}

static Err job(void *self, uint32_t i, Arena *a) {
    const Field             *f = self;
    const ChipCompareParams *r = f->rules;
    uint32_t                 trace = i % r->traces, cell = i / r->traces / f->choices->n,
             policy = i / r->traces % f->choices->n;
    const Ground     *g = ground_of(f, cell);
    const ChipChoice *c = &f->choices->at[policy];
    ChipTraffic       t = {load_of(r, cell), r->burst, r->requests, r->first_seed + trace};
    Clock             clock = clock_monotonic();
    ChipTrace         asked;
    ChipResult        result;
    TRY(chip_scenario_trace(&g->stage, &t, a, &asked));
    ChipRun run = chip_scenario_run(&g->stage, asked);
    run.policy = c->policy;
    run.settings = c->settings;
    run.loaded = g->loaded[policy];
    run.seed = t.seed;
    run.clock = r->measure ? &clock : NULL;
    TRY(chip_simulate(&run, a, &result));
    count_tenants(&run, &result, &f->counts[(size_t)i * CHIP_TENANTS]);
    return sum_up(&run, &result, a, &f->runs[i]);
}

static void find_worst(const Field *f, const ChipScenario *s, uint32_t first, MatchEntry *out) {
    for (uint32_t t = 0; t < s->setup.n_tenants; t++) {
        Count sum = {0};
        for (uint32_t k = 0; k < f->rules->traces; k++) {
            const Count *c = &f->counts[(size_t)(first + k) * CHIP_TENANTS + t];
            sum.n += c->n;
            sum.met += c->met;
        }
        double sla = ratio(sum.met, sum.n);
        if (sum.n == 0 || (out->worst_tenant != NULL && sla >= out->worst_sla)) continue;
        out->worst_tenant = s->tenants[t].name;
        out->worst_sla = sla;
    }
}

static MatchCell cell_of(const Field *f, uint32_t cell, Arena *a) {
    const ChipScenario *s = &ground_of(f, cell)->stage;
    uint32_t            n = f->choices->n;
    MatchEntry         *entries = arena_new(a, MatchEntry, n);
    for (uint32_t i = 0; i < n; i++) {
        const ChipPolicy *p = f->choices->at[i].policy;
        uint32_t          first = (cell * n + i) * f->rules->traces;
        entries[i] = (MatchEntry){.policy = p->name,
                                  .clairvoyant = p->clairvoyant,
                                  .paper = p->paper,
                                  .of = p->of,
                                  .runs = &f->runs[first]};
        find_worst(f, s, first, &entries[i]);
    }
    return (MatchCell){.chip = s->package.name,
                       .mix = s->workload.name,
                       .load = load_of(f->rules, cell),
                       .bandwidth =
                           s->options.bandwidth > 0 ? s->options.bandwidth : s->package.bytes_cycle,
                       .entries = entries,
                       .n_entries = n};
}

static char *about(const Field *f, Arena *a) {
    static const char *const deadlines[] = {"MoCA's levels", "Planaria's levels",
                                            "MLPerf's targets"};
    const ChipCompareParams *r = f->rules;
    char                    *text = arena_str(a, "Workloads: ");
    for (uint32_t i = 0; i < r->n_mixes; i++) {
        const Workload *w = &f->grounds[i * r->n_bandwidths].stage.workload;
        text = arena_printf(a, "%s%s%s (", text, i > 0 ? "; " : "", w->name);
        for (uint32_t k = 0; k < w->n; k++)
            text = arena_printf(a, "%s%s%s", text, k > 0 ? ", " : "", w->networks[k]);
        text = arena_printf(a, "%s)", text);
    }
    return arena_printf(a, "%s. Deadlines by %s%s; memory is shared %s; arrivals %s.", text,
                        deadlines[r->stage.deadlines],
                        r->stage.firm ? ", after which requests are dropped" : "",
                        r->stage.sharing == CHIP_MAX_MIN ? "max-min fair" : "in equal proportion",
                        r->burst > 1 ? "in bursts" : "by Poisson's law");
}

Err chip_compare_run(const ChipCompareParams *r, const ChipChoices *c, Progress *p, Arena *a,
                     Match *out) {
    uint32_t    grounds = r->n_chips * r->n_mixes * r->n_bandwidths, cells = n_cells(r);
    ParallelFor jobs = {.run = job, .n = chip_compare_steps(r, c->n), .progress = p, .worth = 1};
    Field       f = {.rules = r,
                     .choices = c,
                     .grounds = arena_new(a, Ground, grounds),
                     .runs = arena_try_new(a, MatchRun, jobs.n),
                     .counts = arena_try_new(a, Count, (size_t)jobs.n * CHIP_TENANTS)};
    if (f.runs == NULL || f.counts == NULL)
        return err_set(ERR_LIMIT, "no memory for the results of %u runs", jobs.n);
    for (uint32_t i = 0; i < grounds; i++) TRY(open_ground(&f, i, a));
    jobs.self = &f;
    TRY(parallel_for(&jobs, r->threads));
    MatchCell *made = arena_new(a, MatchCell, cells);
    for (uint32_t i = 0; i < cells; i++) made[i] = cell_of(&f, i, a);
    out->about = about(&f, a);
    out->cells = made;
    out->n_cells = cells;
    out->traces = r->traces;
    out->requests = r->requests;
    out->first_seed = r->first_seed;
    out->measured = r->measure;
    return ERR_OK;
}
