#include "report/contest.h"

#include <math.h>
#include <string.h>

const ContestEntry *contest_baseline(const Contest *c, const ContestMix *m) {
    for (uint32_t i = 0; i < m->n_entries; i++)
        if (strcmp(m->entries[i].policy, c->baseline) == 0) return &m->entries[i];
    return m->n_entries > 0 ? &m->entries[0] : NULL;
}

static json_t *number(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static json_t *equal_json(const Contest *c, const ContestMix *m, const ContestEntry *e) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < CONTEST_EQUALS; i++)
        if (isfinite(m->equal[i]))
            json_array_append_new(
                list, json_pack("{s:s,s:f,s:f,s:o,s:o}", "of", contest_baseline(c, m)->policy,
                                "share", c->equal_share[i], "qps", m->equal[i], "mean_ms",
                                number(e->equal_ms[i]), "hit_rate", number(e->equal_hit[i])));
    return list;
}

static json_t *entry_json(const Contest *c, const ContestMix *m, const ContestEntry *e) {
    return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "policy", e->policy, "qps",
                     number(e->qps.mean), "qps_ci", number(e->qps.half), "mean_ms",
                     number(e->mean_ms), "p99_ms", number(e->p99_ms), "hit_rate",
                     number(e->hit_rate), "conflict_rate", number(e->conflict_rate), "core_use",
                     number(e->core_use), "equal_load", equal_json(c, m, e));
}

Err contest_json(const Contest *c, json_t **out) {
    json_t *mixes = json_array();
    for (uint32_t i = 0; i < c->n_mixes; i++) {
        json_t *policies = json_array();
        for (uint32_t k = 0; k < c->mixes[i].n_entries; k++)
            json_array_append_new(policies, entry_json(c, &c->mixes[i], &c->mixes[i].entries[k]));
        json_array_append_new(mixes,
                              json_pack("{s:s,s:o}", "mix", c->mixes[i].mix, "policies", policies));
    }
    *out = json_pack("{s:s,s:o}", "machine", c->machine, "mixes", mixes);
    return *out != NULL ? ERR_OK : err_set(ERR_INVALID, "a name in the results is not UTF-8");
}

static const Column columns[] = {
    {.key = "mix", .head = "mix"},
    {.key = "policy", .head = "policy"},
    {.key = "qps", .head = "requests/s", .decimals = 1},
    {.key = "qps_ci", .head = "+-", .decimals = 1},
    {.key = "gain", .head = "gain", .unit = "%", .scale = 0.01, .decimals = 0},
    {.key = "mean_ms", .head = "mean", .unit = "ms", .decimals = 2},
    {.key = "p99_ms", .head = "p99", .unit = "ms", .decimals = 2},
    {.key = "hit_rate", .head = "in time", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "conflict_rate", .head = "conflicts", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "core_use", .head = "cores used", .unit = "%", .scale = 0.01, .decimals = 0},
    {.key = "equal_ms", .head = "equal load", .unit = "ms", .decimals = 2},
    {.key = "equal_gain", .head = "change", .unit = "%", .scale = 0.01, .decimals = 0},
    {.key = "full_ms", .head = "full load", .unit = "ms", .decimals = 2},
    {.key = "full_gain", .head = "change", .unit = "%", .scale = 0.01, .decimals = 0},
};

static void real(Table *t, double v) {
    if (isfinite(v))
        table_real(t, v);
    else
        table_missing(t);
}

static void add_row(Table *t, const Contest *c, const ContestMix *m, const ContestEntry *e) {
    const ContestEntry *base = contest_baseline(c, m);
    table_row(t);
    table_text(t, m->mix);
    table_text(t, e->policy);
    real(t, e->qps.mean);
    real(t, e->qps.half);
    real(t, e->qps.mean / base->qps.mean - 1);
    real(t, e->mean_ms);
    real(t, e->p99_ms);
    real(t, e->hit_rate);
    real(t, e->conflict_rate);
    real(t, e->core_use);
    for (uint32_t i = 0; i < CONTEST_EQUALS; i++) {
        real(t, e->equal_ms[i]);
        real(t, e->equal_ms[i] / base->equal_ms[i] - 1);
    }
}

static void fill(Table *t, const Contest *c, const ContestMix *m, Arena *a) {
    table_init(t, a, columns, sizeof columns / sizeof *columns);
    for (const ContestMix *x = m != NULL ? m : c->mixes;
         x < (m != NULL ? m + 1 : c->mixes + c->n_mixes); x++)
        for (uint32_t i = 0; i < x->n_entries; i++) add_row(t, c, x, &x->entries[i]);
}

static char *legend(const Contest *c, Arena *a) {
    const char *base = c->n_mixes > 0 && c->mixes[0].n_entries > 0
                           ? contest_baseline(c, &c->mixes[0])->policy
                           : c->baseline;
    return arena_printf(
        a,
        "requests/s: the highest total rate at which %.0f %% of the requests are answered in time; "
        "mean and 95 %% interval over %u seeds. gain: against %s. mean to cores used: at %.0f %% "
        "of "
        "that rate. equal load, full load: mean latency of everybody at %.0f %% and %.0f %% of the "
        "rate that %s reached.",
        100 * c->target, c->seeds, base, 100 * c->calm, 100 * c->equal_share[0],
        100 * c->equal_share[1], base);
}

Err contest_print(const Contest *c, Arena *scratch, FILE *f) {
    size_t mark = scratch->used;
    Table  t;
    fill(&t, c, NULL, scratch);
    Err e = table_print(&t, f);
    (void)fprintf(f, "\n%s\n", legend(c, scratch));
    arena_rewind(scratch, mark);
    return e;
}

static const char **policy_names(const ContestMix *m, Arena *a) {
    const char **names = arena_new(a, const char *, m->n_entries);
    for (uint32_t i = 0; i < m->n_entries; i++) names[i] = m->entries[i].policy;
    return names;
}

static Err bars(Page *p, const ContestMix *m, const char *title, const char *unit, size_t value,
                size_t half, Arena *a) {
    double *y = arena_new(a, double, m->n_entries), *h = arena_new(a, double, m->n_entries);
    for (uint32_t i = 0; i < m->n_entries; i++) {
        const char *e = (const char *)&m->entries[i];
        memcpy(&y[i], e + value, sizeof *y);
        if (half != 0) memcpy(&h[i], e + half, sizeof *h);
    }
    ChartSeries s = {m->mix, NULL, y, half != 0 ? h : NULL, m->n_entries, false};
    Chart       c = {.kind = CHART_BAR,
                     .title = title,
                     .y_label = unit,
                     .groups = policy_names(m, a),
                     .series = &s,
                     .n_series = 1};
    return page_chart(p, &c);
}

static Err latencies(Page *p, const ContestMix *m, Arena *a) {
    ChartSeries *s = arena_new(a, ChartSeries, m->n_entries);
    uint32_t     n = 0;
    for (uint32_t i = 0; i < m->n_entries; i++) {
        const ContestEntry *e = &m->entries[i];
        if (e->n_latencies > 0)
            s[n++] = (ChartSeries){e->policy, NULL, e->latencies_ms, NULL, e->n_latencies, false};
    }
    Chart c = {.kind = CHART_DISTRIBUTION,
               .title = "Share of requests answered within a time, at equal load",
               .x_label = "latency [ms]",
               .y_label = "share",
               .series = s,
               .n_series = n,
               .log_x = true};
    return n > 0 ? page_chart(p, &c) : ERR_OK;
}

static Err trials(Page *p, const ContestMix *m, Arena *a) {
    ChartSeries *s = arena_new(a, ChartSeries, m->n_entries);
    uint32_t     most = 0;
    for (uint32_t i = 0; i < m->n_entries; i++) {
        const ContestEntry *e = &m->entries[i];
        double *x = arena_new(a, double, e->n_trials), *y = arena_new(a, double, e->n_trials);
        for (uint32_t k = 0; k < e->n_trials; k++) {
            x[k] = e->trials[k].rate;
            y[k] = e->trials[k].hit_rate;
        }
        s[i] = (ChartSeries){e->policy, x, y, NULL, e->n_trials, false};
        most = e->n_trials > most ? e->n_trials : most;
    }
    Chart c = {.kind = CHART_SCATTER,
               .title = "Every run of the searches",
               .x_label = "requests/s",
               .y_label = "share in time",
               .series = s,
               .n_series = m->n_entries,
               .log_x = true};
    return most > 0 ? page_chart(p, &c) : ERR_OK;
}

static Err mix_section(const Contest *c, const ContestMix *m, Page *p, Arena *a) {
    Table t;
    page_heading(p, m->mix);
    if (m->about != NULL) page_text(p, "%s", m->about);
    fill(&t, c, m, a);
    TRY(page_table(p, &t, NULL));
    TRY(bars(p, m, "Highest rate that meets the targets, with 95 % intervals", "requests/s",
             offsetof(ContestEntry, qps) + offsetof(Mean, mean),
             offsetof(ContestEntry, qps) + offsetof(Mean, half), a));
    if (isfinite(m->equal[0]))
        TRY(bars(p, m, "Mean latency at equal load", "ms", offsetof(ContestEntry, equal_ms), 0, a));
    TRY(latencies(p, m, a));
    return trials(p, m, a);
}

Err contest_page(const Contest *c, Arena *scratch, Page *p) {
    size_t mark = scratch->used;
    Err    e = ERR_OK;
    page_text(p, "Machine: %s.", c->machine);
    page_text(p, "%s", legend(c, scratch));
    for (uint32_t i = 0; e == ERR_OK && i < c->n_mixes; i++)
        e = mix_section(c, &c->mixes[i], p, scratch);
    arena_rewind(scratch, mark);
    return e;
}
