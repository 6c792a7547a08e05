#include "eval/node_compare.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/parallel_for.h"
#include "node/peak.h"

enum { OWN = CONTEST_EQUALS, LOADS = CONTEST_EQUALS + 1, TRIAL_BYTES_SHIFT = 32 };

typedef struct Search {  // one policy, one seed
    const NodeChoice *choice;
    uint64_t          seed;
    Peak              peak;
    bool              done;
} Search;

typedef struct Final {  // one policy, one seed, one load
    const NodeChoice *choice;
    uint64_t          seed;
    double            rate;  // 0: nothing to run
    NodeSummary       summary;
    double           *latencies_ms;  // NULL: not kept
    uint32_t          n_latencies;
} Final;

typedef struct Hall {  // what the threads share
    const NodeScenario      *scenario;
    const NodeCompareParams *rules;
    Search                  *searches;
    Final                   *finals;
    uint32_t                 n_searches;
    Progress                *progress;
} Hall;

static Err try_rate(const Hall *h, const Search *s, double rate, Arena *a, double *hit) {
    NodeTraffic r = {.choice = *s->choice,
                     .rate = rate,
                     .seed = s->seed,
                     .requests = h->rules->requests,
                     .give_up = 3 * (1 - h->rules->target)};
    NodeRun     run;
    NodeResult  result;
    NodeSummary sum;
    arena_rewind(a, 0);
    TRY(node_scenario_run(h->scenario, &r, a, &run, &result));
    TRY(node_summary(&run, &result, NODE_ALL, a, &sum));
    *hit = sum.hit_rate;
    return ERR_OK;
}

static Err step(const Hall *h, Search *s, Arena *a) {
    double rate = 0, hit = 0;
    s->done = !peak_next(&s->peak, &rate);
    if (s->done) return ERR_OK;
    TRY(try_rate(h, s, rate, a, &hit));
    peak_tell(&s->peak, rate, hit);
    return ERR_OK;
}

static Err search_job(void *self, uint32_t i, Arena *a) {
    Hall *h = self;
    while (!h->searches[i].done) TRY(step(h, &h->searches[i], a));
    return ERR_OK;
}

static void keep_latencies(Final *f, const NodeRun *run, const NodeResult *r) {
    for (uint32_t i = run->skip; f->latencies_ms != NULL && i < r->n; i++)
        if (r->answers[i].outcome != OUTCOME_REJECTED)
            f->latencies_ms[f->n_latencies++] =
                (double)(r->answers[i].finish - r->answers[i].arrival) / 1e6;
}

static Err final_job(void *self, uint32_t i, Arena *a) {
    Hall       *h = self;
    Final      *f = &h->finals[i];
    NodeRun     run;
    NodeResult  result;
    NodeTraffic r = {
        .choice = *f->choice, .rate = f->rate, .seed = f->seed, .requests = h->rules->requests};
    if (!(f->rate > 0)) return ERR_OK;
    TRY(node_scenario_run(h->scenario, &r, a, &run, &result));
    keep_latencies(f, &run, &result);
    return node_summary(&run, &result, NODE_ALL, a, &f->summary);
}

// One trial of each search at a time.
static Err in_turns(Hall *h) {
    Arena a;
    Err   e = arena_init(&a, (size_t)1 << TRIAL_BYTES_SHIFT);
    for (uint32_t left = h->n_searches; e == ERR_OK && left > 0;) {
        left = 0;
        for (uint32_t i = 0; e == ERR_OK && i < h->n_searches; i++) {
            Search *s = &h->searches[i];
            if (s->done) continue;
            e = step(h, s, &a);
            if (s->done && h->progress != NULL) progress_step(h->progress, NODE_COMPARE_SEARCH);
            left += !s->done;
        }
    }
    arena_finish(&a);
    return e;
}

static Err search_all(Hall *h, const NodeChoices *c, Arena *a) {
    const NodeCompareParams *r = h->rules;
    PeakRule                 rule = PEAK_RULE_DEFAULT;
    rule.target = r->target;
    rule.tolerance = r->tolerance;
    rule.start = h->scenario->capacity / 4;
    rule.most = h->scenario->capacity * 16;
    rule.least = h->scenario->capacity / 4096;
    h->n_searches = c->n * r->seeds;
    h->searches = arena_new(a, Search, h->n_searches);
    for (uint32_t i = 0; i < h->n_searches; i++) {
        h->searches[i] =
            (Search){.choice = &c->at[i / r->seeds], .seed = r->first_seed + i % r->seeds};
        peak_begin(&h->searches[i].peak, &rule);
    }
    ParallelFor jobs = {search_job, h, h->n_searches, h->progress, NODE_COMPARE_SEARCH};
    return h->scenario->live != NULL ? in_turns(h) : parallel_for(&jobs, r->threads);
}

static void rate_entries(const Hall *h, const NodeChoices *c, ContestMix *m, Arena *a) {
    uint32_t seeds = h->rules->seeds;
    for (uint32_t i = 0; i < c->n; i++) {
        ContestEntry *e = &m->entries[i];
        double       *rates = arena_new(a, double, seeds);
        e->policy = c->at[i].policy->name;
        e->trials = arena_new(a, ContestTrial, seeds * PEAK_TRIALS);
        for (uint32_t k = 0; k < seeds; k++) {
            const Peak *p = &h->searches[i * seeds + k].peak;
            rates[k] = peak_rate(p);
            for (uint32_t t = 0; t < p->n; t++)
                e->trials[e->n_trials++] = (ContestTrial){p->trials[t].rate, p->trials[t].hit_rate};
        }
        e->qps = stats_mean(rates, seeds);
    }
}

static uint32_t latency_room(const Hall *h, double rate) {
    uint32_t n = h->rules->requests;
    if (n == 0 && h->scenario->live != NULL)
        n = NODE_SCENARIO_LEAST + (uint32_t)(rate * NODE_SCENARIO_SECONDS);
    return n > 0 ? n : NODE_SCENARIO_REQUESTS;
}

static Err run_finals(Hall *h, const NodeChoices *c, const ContestMix *m, Arena *a) {
    const NodeCompareParams *r = h->rules;
    uint32_t                 each = r->seeds * LOADS;
    ParallelFor              jobs = {final_job, h, c->n * each, h->progress, 1};
    h->finals = arena_new(a, Final, jobs.n);
    for (uint32_t i = 0; i < jobs.n; i++) {
        uint32_t policy = i % c->n, load = i / c->n % LOADS, seed = i / c->n / LOADS;
        Final   *f = &h->finals[i];
        double   rate = load == OWN ? r->calm * m->entries[policy].qps.mean : m->equal[load];
        *f = (Final){.choice = &c->at[policy], .seed = r->first_seed + seed, .rate = rate};
        if (load == 0 && seed == 0 && rate > 0)
            f->latencies_ms = arena_new(a, double, latency_room(h, rate));
    }
    return parallel_for(&jobs, h->scenario->live != NULL ? 1 : r->threads);
}

static double average(const Hall *h, uint32_t policy, uint32_t n_policies, uint32_t load,
                      size_t field) {
    double x[1024];
    for (uint32_t k = 0; k < h->rules->seeds; k++) {
        const Final *f = &h->finals[(k * LOADS + load) * n_policies + policy];
        if (!(f->rate > 0)) return NAN;
        memcpy(&x[k], (const char *)&f->summary + field, sizeof x[k]);
    }
    return stats_mean(x, h->rules->seeds).mean;
}

static void sum_up(const Hall *h, uint32_t n, ContestMix *m) {
#define AVERAGE(load, field) average(h, i, n, load, offsetof(NodeSummary, field))
    for (uint32_t i = 0; i < n; i++) {
        ContestEntry *e = &m->entries[i];
        e->mean_ms = AVERAGE(OWN, mean_ms);
        e->p99_ms = AVERAGE(OWN, p99_ms);
        e->hit_rate = AVERAGE(OWN, hit_rate);
        e->conflict_rate = AVERAGE(OWN, conflict_rate);
        e->core_use = AVERAGE(OWN, core_use);
        for (uint32_t k = 0; k < CONTEST_EQUALS; k++) {
            e->equal_ms[k] = AVERAGE(k, mean_ms);
            e->equal_hit[k] = AVERAGE(k, hit_rate);
        }
        e->latencies_ms = h->finals[i].latencies_ms;
        e->n_latencies = h->finals[i].n_latencies;
    }
#undef AVERAGE
}

uint32_t node_compare_steps(uint32_t n_policies, const NodeCompareParams *r) {
    return n_policies * r->seeds * (NODE_COMPARE_SEARCH + LOADS);
}

Err node_compare_run(const NodeScenario *s, const NodeChoices *c, const char *baseline,
                     const NodeCompareParams *r, Progress *p, Arena *a, ContestMix *out) {
    Hall    h = {.scenario = s, .rules = r, .progress = p};
    Contest only = {.baseline = baseline};
    *out = (ContestMix){.mix = s->mix.name,
                        .about = node_scenario_about(s, a),
                        .entries = arena_new(a, ContestEntry, c->n),
                        .n_entries = c->n};
    Err e = search_all(&h, c, a);
    if (e == ERR_OK) {
        rate_entries(&h, c, out, a);
        double of = contest_baseline(&only, out)->qps.mean;
        for (uint32_t i = 0; i < CONTEST_EQUALS; i++)
            out->equal[i] = of > 0 ? of * r->equal_share[i] : NAN;
        e = run_finals(&h, c, out, a);
    }
    if (e == ERR_OK) sum_up(&h, c->n, out);
    return e;
}
