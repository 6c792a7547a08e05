#include <math.h>

#include "base/stats.h"
#include "chip/sim/chip_run.h"

typedef struct Tally {
    double  *ms;  // of answered ones
    uint32_t answered;
    double   slowdown;  // its logarithm, summed
} Tally;

static void count(const ChipRun *run, const ChipResult *r, uint32_t i, ChipSummary *s, Tally *t) {
    const ChipAnswer *x = &r->answers[i];
    s->n++;
    s->met += x->outcome == OUTCOME_MET;
    s->late += x->outcome == OUTCOME_LATE;
    s->dropped += x->outcome == OUTCOME_REJECTED;
    if (x->outcome == OUTCOME_REJECTED) return;
    double ns = (double)(x->finish - run->trace.at[i].arrival);
    t->slowdown += log(ns / (double)run->setup.tenants[x->tenant].model->rest_ns[0]);
    t->ms[t->answered++] = ns / 1e6;
}

static Err latencies(const Tally *t, Arena *scratch, ChipSummary *s) {
    double *sorted = NULL;
    if (t->answered == 0) return ERR_OK;
    TRY(stats_sort(scratch, t->ms, t->answered, &sorted));
    s->slowdown = exp(t->slowdown / t->answered);
    s->mean_ms = stats_mean(sorted, t->answered).mean;
    s->p99_ms = stats_percentile(sorted, t->answered, 99);
    return ERR_OK;
}

static void package(const ChipRun *run, const ChipResult *r, ChipSummary *s) {
    double energy = r->layer_pj + r->policy_pj + r->idle_pj, span = (double)r->span;
    s->energy_mj = energy / 1e9;
    if (energy > 0) s->policy_energy_share = r->policy_pj / energy;
    if (!(span > 0)) return;
    s->bandwidth_use = r->bytes / (span * (double)run->setup.bytes_ns);
    s->unit_use = r->busy_unit_ns / (span * run->setup.n_units);
}

Err chip_summary(const ChipRun *run, const ChipResult *r, uint32_t tenant, Arena *scratch,
                 ChipSummary *out) {
    ChipSummary s = {0};
    size_t      mark = scratch->used;
    Tally       t = {.ms = arena_try_new(scratch, double, r->n)};
    if (t.ms == NULL) return err_set(ERR_LIMIT, "no memory for %u latencies", r->n);
    for (uint32_t i = run->skip; i < r->n; i++)
        if (tenant == CHIP_NONE || r->answers[i].tenant == tenant) count(run, r, i, &s, &t);
    Err e = latencies(&t, scratch, &s);
    arena_rewind(scratch, mark);
    TRY(e);
    if (s.n > 0) s.sla = (double)s.met / s.n;
    package(run, r, &s);
    *out = s;
    return ERR_OK;
}
