#include "cluster/trace/trace_stats.h"

#include <math.h>
#include <stdlib.h>

#include "base/stats.h"

const double trace_quantiles[TRACE_QUANTILES] = {0, 10, 25, 50, 75, 90, 95, 99, 100};

static int by_jobs(const void *a, const void *b) {
    const TraceGroup *x = a, *y = b;
    return x->jobs > y->jobs ? -1 : x->jobs < y->jobs;
}

static void count(TraceGroup *g, const Job *j) {
    g->jobs++;
    g->gpu_seconds += job_gpu_seconds(j);
}

// One group per name, then jobs without one; empty groups are left out.
static Err group_names(const JobList *l, const char *const *names, uint32_t n, bool by_model,
                       Arena *a, TraceGroups *out) {
    TraceGroup *g = arena_try_new(a, TraceGroup, (size_t)n + 1);
    uint32_t    kept = 0;
    if (g == NULL) return err_set(ERR_LIMIT, "no memory to count by %u names", n);
    for (uint32_t i = 0; i < n; i++) g[i].name = names[i];
    g[n].name = "";
    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t of = by_model ? l->at[i].model : l->at[i].tenant;
        count(&g[of < n ? of : n], &l->at[i]);
    }
    for (uint32_t i = 0; i <= n; i++)
        if (g[i].jobs > 0) g[kept++] = g[i];
    qsort(g, kept, sizeof *g, by_jobs);
    *out = (TraceGroups){g, kept};
    return ERR_OK;
}

static Err group_sizes(const JobList *l, Arena *a, TraceGroups *out) {
    uint32_t most = 0, kept = 0;
    for (uint32_t i = 0; i < l->n; i++) most = l->at[i].gpus > most ? l->at[i].gpus : most;
    TraceGroup *g = arena_try_new(a, TraceGroup, (size_t)most + 1);
    if (g == NULL) return err_set(ERR_LIMIT, "no memory to count gangs of up to %u GPUs", most);
    for (uint32_t i = 0; i <= most; i++) g[i].gpus = i;
    for (uint32_t i = 0; i < l->n; i++) count(&g[l->at[i].gpus], &l->at[i]);
    for (uint32_t i = 0; i <= most; i++)
        if (g[i].jobs > 0) g[kept++] = g[i];
    *out = (TraceGroups){g, kept};
    return ERR_OK;
}

static Err measure_work(const JobList *l, Arena *a, TraceStats *s) {
    size_t  mark = a->used, n = 0;
    double *x = arena_try_new(a, double, l->n), *sorted = NULL, sum = 0;
    if (x == NULL) return err_set(ERR_LIMIT, "no memory for %u durations", l->n);
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i].work >= 0) x[n++] = (double)l->at[i].work / (double)JOB_SECOND;
    for (size_t i = 0; i < n; i++) sum += x[i];
    if (n > 0) {
        TRY(stats_sort(a, x, n, &sorted));
        s->work_mean_s = sum / (double)n;
        for (int i = 0; i < TRACE_QUANTILES; i++)
            s->work_s[i] = stats_percentile(sorted, n, trace_quantiles[i]);
    }
    arena_rewind(a, mark);
    return ERR_OK;
}

Err trace_stats(const JobList *l, Arena *a, TraceStats *out) {
    TraceStats s = {.jobs = l->n};
    if (l->n > 0) {
        s.first = l->at[0].submit;
        s.last = l->at[l->n - 1].submit;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        const Job *j = &l->at[i];
        s.unknown += j->work < 0;
        s.cpu_only += j->gpus == 0;
        s.fractional += j->gpus > 0 && j->gpu_milli < 1000;
        s.gpu_seconds += job_gpu_seconds(j);
    }
    TRY(measure_work(l, a, &s));
    TRY(group_sizes(l, a, &s.sizes));
    TRY(group_names(l, l->models, l->n_models, true, a, &s.models));
    TRY(group_names(l, l->tenants, l->n_tenants, false, a, &s.tenants));
    *out = s;
    return ERR_OK;
}

double trace_load(const TraceStats *s, uint64_t gpus) {
    double have = (double)(s->last - s->first) / (double)JOB_SECOND * (double)gpus;
    return have > 0 ? s->gpu_seconds / have : (double)INFINITY;
}
