#include "base/csv.h"
#include "base/stats.h"
#include "cluster/sim/cluster_run.h"

static double seconds(TimeNs t) { return (double)t / (double)CLUSTER_SECOND; }

static double slowdown(const Job *j, const ClusterEnd *x) {
    const double least = 10;
    double       work = seconds(j->work), jct = seconds(x->finish - j->submit);
    double       s = jct / (work > least ? work : least);
    return s > 1 ? s : 1;
}

// Jobs without a tenant count as one tenant.
static Err fairness(const ClusterRun *run, const ClusterResult *r, Arena *a, double *out) {
    uint32_t n = run->jobs->n_tenants + 1, seen = 0;
    double  *sums = arena_try_new(a, double, n), all = 0, squares = 0;
    double  *counts = arena_try_new(a, double, n);
    if (sums == NULL || counts == NULL) return err_set(ERR_LIMIT, "no memory for %u tenants", n);
    for (uint32_t i = 0; i < r->n; i++) {
        const Job *j = &run->jobs->at[i];
        uint32_t   t = j->tenant < n - 1 ? j->tenant : n - 1;
        sums[t] += slowdown(j, &r->ends[i]);
        counts[t]++;
    }
    for (uint32_t t = 0; t < n; t++) {
        if (!(counts[t] > 0)) continue;
        double mean = sums[t] / counts[t];
        all += mean;
        squares += mean * mean;
        seen++;
    }
    *out = seen > 0 && squares > 0 ? all * all / (seen * squares) : 1;
    return ERR_OK;
}

static double mean_of(const double *x, uint32_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += x[i];
    return n > 0 ? sum / n : 0;
}

Err cluster_summary(const ClusterRun *run, const ClusterResult *r, Arena *scratch,
                    ClusterSummary *out) {
    size_t         at = scratch->used;
    ClusterSummary s = {.makespan_s = seconds(r->last - r->first)};
    double        *x = arena_try_new(scratch, double, r->n), *sorted;
    if (x == NULL) return err_set(ERR_LIMIT, "no memory to sum up %u jobs", r->n);
    for (uint32_t i = 0; i < r->n; i++) {
        x[i] = seconds(r->ends[i].finish - run->jobs->at[i].submit);
        s.slowdown_mean += slowdown(&run->jobs->at[i], &r->ends[i]) / r->n;
    }
    s.jct_mean_s = mean_of(x, r->n);
    TRY(stats_sort(scratch, x, r->n, &sorted));
    if (r->n > 0) {
        s.jct_p50_s = stats_percentile(sorted, r->n, 50);
        s.jct_p99_s = stats_percentile(sorted, r->n, 99);
    }
    for (uint32_t i = 0; i < r->n; i++) x[i] = seconds(r->ends[i].waited);
    s.queue_mean_s = mean_of(x, r->n);
    TRY(stats_sort(scratch, x, r->n, &sorted));
    if (r->n > 0) s.queue_p99_s = stats_percentile(sorted, r->n, 99);
    TRY(fairness(run, r, scratch, &s.fairness));
    arena_rewind(scratch, at);
    *out = s;
    return ERR_OK;
}

static void put_time(FILE *f, TimeNs t) {
    TimeNs whole = t / CLUSTER_SECOND, part = t % CLUSTER_SECOND;
    int    digits = 9;
    (void)fprintf(f, ",%lld", (long long)whole);
    if (part == 0) return;
    for (; part % 10 == 0; part /= 10) digits--;
    (void)fprintf(f, ".%0*lld", digits, (long long)part);
}

void cluster_write_jobs(FILE *f, const JobList *jobs, const ClusterResult *r) {
    (void)fputs("job,submit_s,start_s,finish_s,gpus,preemptions\n", f);
    for (uint32_t i = 0; i < r->n; i++) {
        const Job *j = &jobs->at[i];
        csv_put(f, j->id);
        put_time(f, j->submit);
        put_time(f, r->ends[i].start);
        put_time(f, r->ends[i].finish);
        (void)fprintf(f, ",%u,%u\n", j->gpus, r->ends[i].preemptions);
    }
}
