#include "base/stats.h"
#include "node/node_run.h"

static bool counts(const NodeRun *run, const NodeResult *r, uint32_t i, uint32_t tenant) {
    return i >= run->skip && (tenant == NODE_ALL || r->answers[i].tenant == tenant);
}

static Err latencies(NodeSummary *s, double *ms, size_t n, Arena *scratch) {
    double *sorted = NULL;
    if (n == 0) return ERR_OK;
    TRY(stats_sort(scratch, ms, n, &sorted));
    s->mean_ms = stats_mean(sorted, n).mean;
    s->p50_ms = stats_percentile(sorted, n, 50);
    s->p99_ms = stats_percentile(sorted, n, 99);
    return ERR_OK;
}

static double rate_of(const NodeRun *run, const NodeResult *r, uint32_t n) {
    if (r->n <= run->skip + 1) return 0;
    TimeNs span = r->answers[r->n - 1].arrival - r->answers[run->skip].arrival;
    return span > 0 ? (double)n * 1e9 / (double)span : 0;
}

Err node_summary(const NodeRun *run, const NodeResult *r, uint32_t tenant, Arena *scratch,
                 NodeSummary *out) {
    NodeSummary s = {0};
    size_t      mark = scratch->used, answered = 0;
    double     *ms = arena_try_new(scratch, double, r->n);
    if (ms == NULL) return err_set(ERR_LIMIT, "no memory for %u latencies", r->n);
    for (uint32_t i = 0; i < r->n; i++) {
        const NodeAnswer *x = &r->answers[i];
        if (!counts(run, r, i, tenant)) continue;
        s.n++;
        s.met += x->outcome == OUTCOME_MET;
        s.late += x->outcome == OUTCOME_LATE;
        s.rejected += x->outcome == OUTCOME_REJECTED;
        if (x->outcome != OUTCOME_REJECTED) ms[answered++] = (double)(x->finish - x->arrival) / 1e6;
    }
    Err e = latencies(&s, ms, answered, scratch);
    arena_rewind(scratch, mark);
    TRY(e);
    s.hit_rate = s.n > 0 ? (double)s.met / s.n : 0;
    s.conflict_rate = r->blocks > 0 ? (double)r->conflicts / (double)r->blocks : 0;
    if (r->span > 0) s.core_use = r->busy_core_ns / ((double)r->span * run->setup.machine->n_cores);
    s.rate = rate_of(run, r, s.n);
    *out = s;
    return ERR_OK;
}
