#include "eval/node_compare.h"

#include <math.h>

#include "base/parallel_for.h"
#include "eval/run_file.h"
#include "node/peak.h"

// Parts of a run: the equal loads, then the calm one. They need the highest rates.
enum { CALM = COMPARISON_EQUALS, LOADS = COMPARISON_EQUALS + 1 };
enum { SEARCH_STEPS = 8 };  // of progress: a search counts as so many single runs
enum { SEARCH_BYTES_SHIFT = 32 };

typedef struct Search {  // one policy, one seed
    const PolicyChoice *choice;
    uint64_t            seed;
    Peak                peak;
    bool                done;
} Search;

typedef struct NodeMeasure {  // of one policy and seed; see result/metric.def
    double      qps;
    NodeSummary equal[COMPARISON_EQUALS], calm;
} NodeMeasure;

typedef struct Latencies {
    double  *ms;
    uint32_t n;
} Latencies;

typedef struct NodeCell {
    NodeScenario             scenario;
    const NodeCompareParams *params;
    uint32_t                 n_searches;
    Search                  *searches;   // [policy][seed]
    NodeMeasure             *measures;   // likewise
    double                  *rates;      // [policy][LOADS]; NaN or 0: not run
    Latencies               *latencies;  // [policy] at the first equal load, first seed
    double                   equal[COMPARISON_EQUALS];
} NodeCell;

#define MEASURE                    NodeMeasure
#define VALUE(node, chip, cluster) node
#include "eval/put_metrics.def"

static Err try_rate(const NodeCell *x, const Search *s, double rate, Arena *a, double *hit) {
    NodeTraffic t = {.choice = s->choice,
                     .rate = rate,
                     .seed = s->seed,
                     .requests = x->params->requests,
                     .give_up = 3 * (1 - x->params->target)};
    NodeRun     run;
    NodeResult  result;
    NodeSummary sum;
    arena_rewind(a, 0);
    TRY(node_scenario_run(&x->scenario, &t, a, &run, &result));
    TRY(node_summary(&run, &result, NODE_ALL, a, &sum));
    *hit = sum.hit_rate;
    return ERR_OK;
}

static Err step(const NodeCell *x, Search *s, Arena *a) {
    double rate = 0, hit = 0;
    s->done = !peak_next(&s->peak, &rate);
    if (s->done) return ERR_OK;
    TRY(try_rate(x, s, rate, a, &hit));
    peak_tell(&s->peak, rate, hit);
    return ERR_OK;
}

static Err search(void *self, uint32_t i, Arena *a) {
    NodeCell *x = self;
    while (!x->searches[i].done) TRY(step(x, &x->searches[i], a));
    return ERR_OK;
}

// One trial of each search at a time.
static Err search_in_turns(NodeCell *x, Progress *p) {
    Arena a;
    Err   e = arena_init(&a, (size_t)1 << SEARCH_BYTES_SHIFT);
    for (uint32_t left = x->n_searches; e == ERR_OK && left > 0;) {
        left = 0;
        for (uint32_t i = 0; e == ERR_OK && i < x->n_searches; i++) {
            Search *s = &x->searches[i];
            if (s->done) continue;
            e = step(x, s, &a);
            if (s->done && p != NULL) progress_step(p, SEARCH_STEPS);
            left += !s->done;
        }
    }
    arena_finish(&a);
    return e;
}

static Err search_all(const CompareState *s, NodeCell *x, Arena *a) {
    uint32_t seeds = s->params->seeds;
    PeakRule rule = PEAK_RULE_DEFAULT;
    rule.target = x->params->target;
    rule.tolerance = x->params->tolerance;
    rule.start = x->scenario.capacity / 4;
    rule.most = x->scenario.capacity * 16;
    rule.least = x->scenario.capacity / 4096;
    x->n_searches = s->choices->n * seeds;
    x->searches = arena_new(a, Search, x->n_searches);
    for (uint32_t i = 0; i < x->n_searches; i++) {
        x->searches[i] = (Search){.choice = &s->choices->at[i / seeds],
                                  .seed = s->params->first_seed + i % seeds};
        peak_begin(&x->searches[i].peak, &rule);
    }
    ParallelFor jobs = {search, x, x->n_searches, s->params->progress, SEARCH_STEPS};
    return x->scenario.live != NULL ? search_in_turns(x, s->params->progress)
                                    : parallel_for(&jobs, s->params->threads);
}

static double highest_rate(const CompareState *s, const NodeCell *x, uint32_t policy) {
    double   rates[COMPARISON_SEEDS];
    uint32_t seeds = s->params->seeds;
    for (uint32_t k = 0; k < seeds; k++)
        rates[k] = peak_rate(&x->searches[policy * seeds + k].peak);
    return stats_mean(rates, seeds).mean;
}

static uint32_t latency_room(const NodeCell *x, double rate) {
    uint32_t n = x->params->requests;
    if (n == 0 && x->scenario.live != NULL)
        n = NODE_SCENARIO_LEAST + (uint32_t)(rate * NODE_SCENARIO_SECONDS);
    return n > 0 ? n : NODE_SCENARIO_REQUESTS;
}

// Sets the rates of the runs from the results of the searches.
static void plan_loads(const CompareState *s, NodeCell *x, Arena *a) {
    uint32_t            n = s->choices->n;
    const PolicyChoice *subject = policy_choices_find(s->choices, s->params->subject);
    double              of = highest_rate(s, x, (uint32_t)(subject - s->choices->at));
    x->measures = arena_new(a, NodeMeasure, x->n_searches);
    x->rates = arena_new(a, double, n *LOADS);
    x->latencies = arena_new(a, Latencies, n);
    for (uint32_t k = 0; k < COMPARISON_EQUALS; k++)
        x->equal[k] = of > 0 ? of * x->params->equal_share[k] : NAN;
    for (uint32_t i = 0; i < n; i++) {
        x->rates[i * LOADS + CALM] = x->params->calm * highest_rate(s, x, i);
        for (uint32_t k = 0; k < COMPARISON_EQUALS; k++) x->rates[i * LOADS + k] = x->equal[k];
        if (x->equal[0] > 0)
            x->latencies[i].ms = arena_new(a, double, latency_room(x, x->equal[0]));
    }
}

static Err open_cell(CompareState *s, uint32_t cell, Arena *a) {
    NodeCell           *x = arena_new(a, NodeCell, 1);
    NodeScenarioOptions o;
    x->params = s->tier_params;
    o = x->params->scenario;
    o.mix = x->params->mixes[cell];
    s->cells[cell].scenario = x;
    s->cells[cell].name = o.mix;
    TRY(node_scenario_open(&o, a, &x->scenario));
    TRY(search_all(s, x, a));
    plan_loads(s, x, a);
    return ERR_OK;
}

static void keep_latencies(Latencies *to, const NodeRun *run, const NodeResult *r) {
    for (uint32_t i = run->skip; i < r->n; i++)
        if (r->answers[i].outcome != OUTCOME_REJECTED)
            to->ms[to->n++] = (double)(r->answers[i].finish - r->answers[i].arrival) / 1e6;
}

static NodeSummary *summary_of(const CompareState *s, const NodeCell *x, CompareRun at) {
    NodeMeasure *m = &x->measures[at.policy * s->params->seeds + at.seed];
    return at.part == CALM ? &m->calm : &m->equal[at.part];
}

static Err run_one(const CompareState *s, CompareRun at, Arena *a) {
    const NodeCell *x = s->cells[at.cell].scenario;
    NodeTraffic     t = {.choice = &s->choices->at[at.policy],
                         .rate = x->rates[at.policy * LOADS + at.part],
                         .seed = s->params->first_seed + at.seed,
                         .requests = x->params->requests};
    NodeRun         run;
    NodeResult      result;
    *summary_of(s, x, at) = (NodeSummary){
        .mean_ms = NAN, .p99_ms = NAN, .hit_rate = NAN, .conflict_rate = NAN, .core_use = NAN};
    if (!(t.rate > 0)) return ERR_OK;
    TRY(node_scenario_run(&x->scenario, &t, a, &run, &result));
    if (at.part == 0 && at.seed == 0) keep_latencies(&x->latencies[at.policy], &run, &result);
    return node_summary(&run, &result, NODE_ALL, a, summary_of(s, x, at));
}

static Curve trials(const CompareState *s, const NodeCell *x, uint32_t policy, Arena *a) {
    uint32_t seeds = s->params->seeds, n = 0;
    double  *rates = arena_new(a, double, seeds *PEAK_TRIALS);
    double  *hits = arena_new(a, double, seeds *PEAK_TRIALS);
    for (uint32_t k = 0; k < seeds; k++) {
        const Peak *p = &x->searches[policy * seeds + k].peak;
        for (uint32_t t = 0; t < p->n; t++) {
            rates[n] = p->trials[t].rate;
            hits[n++] = p->trials[t].hit_rate;
        }
    }
    return (Curve){rates, hits, n};
}

static void entry(const CompareState *s, uint32_t cell, uint32_t policy, Arena *a,
                  ComparisonEntry *out) {
    const NodeCell *x = s->cells[cell].scenario;
    uint32_t        seeds = s->params->seeds;
    for (uint32_t k = 0; k < seeds; k++) {
        NodeMeasure *m = &x->measures[policy * seeds + k];
        m->qps = peak_rate(&x->searches[policy * seeds + k].peak);
        put_metrics(m, compare_values(s, cell, policy, k));
    }
    out->curves[CURVE_LATENCY] = (Curve){NULL, x->latencies[policy].ms, x->latencies[policy].n};
    out->curves[CURVE_TRIALS] = trials(s, x, policy, a);
}

// The policy with the highest rate, at the calm load with the first seed.
static Err trace_best(const CompareState *s, const NodeCell *x, Arena *a) {
    RecordList records = {.arena = a};
    NodeRun    run;
    NodeResult result;
    uint32_t   best = 0;
    for (uint32_t i = 1; i < s->choices->n; i++)
        if (highest_rate(s, x, i) > highest_rate(s, x, best)) best = i;
    NodeTraffic t = {.choice = &s->choices->at[best],
                     .rate = x->rates[best * LOADS + CALM],
                     .seed = s->params->first_seed,
                     .requests = x->params->requests,
                     .records = record_list(&records)};
    if (!(t.rate > 0)) return err_set(ERR_INVALID, "no policy meets the target: nothing to trace");
    TRY(node_scenario_run(&x->scenario, &t, a, &run, &result));
    return node_run_file_trace(x->params->trace, &x->scenario, run.policy->name, &records, a);
}

static Err describe(const CompareState *s, uint32_t cell, Arena *a, ComparisonCell *out) {
    static const MetricId latency[COMPARISON_EQUALS] = {METRIC_EQUAL_MS, METRIC_FULL_MS};
    static const MetricId hit[COMPARISON_EQUALS] = {METRIC_EQUAL_HIT, METRIC_FULL_HIT};
    const NodeCell       *x = s->cells[cell].scenario;
    *(const char **)s->kept = arena_str(a, x->scenario.machine);
    out->title = out->group = arena_str(a, x->scenario.mix.name);
    out->about = node_scenario_about(&x->scenario, a);
    out->fields[out->n_fields++] = (CellField){.key = "mix", .text = out->title};
    for (uint32_t k = 0; k < COMPARISON_EQUALS; k++)
        out->equal[k] = (EqualLoad){x->params->equal_share[k], x->equal[k], latency[k], hit[k]};
    return cell == 0 && x->params->trace != NULL ? trace_best(s, x, a) : ERR_OK;
}

static void close_cell(const CompareState *s, uint32_t cell) {
    NodeCell *x = s->cells[cell].scenario;
    if (x != NULL) node_scenario_close(&x->scenario);
}

static const CompareTier node_tier = {.tier = TIER_NODE,
                                      .parts = LOADS,
                                      .one_at_a_time = true,
                                      .open = open_cell,
                                      .run = run_one,
                                      .describe = describe,
                                      .entry = entry,
                                      .close = close_cell};

uint64_t node_compare_steps(const NodeCompareParams *p, uint32_t n_policies) {
    return compare_runs(&node_tier, &p->common, p->n_mixes, n_policies) / LOADS *
           (SEARCH_STEPS + LOADS);
}

static char *about(const NodeCompareParams *p, Arena *a) {
    return arena_printf(
        a,
        "The target share is %.0f %%. Latencies, conflicts and cores are measured at %.0f %% of a "
        "policy's own highest rate; equal load and full load are %.0f %% and %.0f %% of the rate "
        "that %s reaches.",
        100 * p->target, 100 * p->calm, 100 * p->equal_share[0], 100 * p->equal_share[1],
        p->common.subject);
}

Err node_compare(const NodeCompareParams *p, const PolicyChoices *c, Arena *a, Comparison *out) {
    NodeCompareParams own = *p;
    const char       *machine = NULL;
    if (own.scenario.machine == NULL) own.common.threads = 1;
    if (policy_choices_find(c, own.common.subject) == NULL) own.common.subject = c->at[0].label;
    TRY(compare_run(&node_tier, &own.common, &own, c, own.n_mixes, &machine, a, out));
    out->machine = machine;
    out->subject_role = "baseline";
    out->about = about(&own, a);
    return ERR_OK;
}
