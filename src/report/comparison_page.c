#include <math.h>
#include <string.h>

#include "report/comparison_report.h"

enum { LINES = 6 };  // lines that a chart shows before the reader selects others

static bool has_runs(const ComparisonEntry *e) { return e->missing == NULL; }

// The subject, and the entries that are best by the first headline metric.
static bool is_shown(const Comparison *c, const ComparisonCell *cell, const ComparisonEntry *e) {
    MetricId id = metric_headline(c->tier, 0);
    bool     lower = metrics[id].better == METRIC_LOWER;
    double   own = comparison_mean(c, cell, e, id).mean;
    uint32_t before = 1;
    if (strcmp(e->policy, c->subject) == 0) return true;
    for (uint32_t i = 0; i < cell->n_entries; i++) {
        const ComparisonEntry *o = &cell->entries[i];
        if (!has_runs(o) || strcmp(o->policy, c->subject) == 0) continue;
        double its = comparison_mean(c, cell, o, id).mean;
        bool   better = lower ? its < own : its > own, worse = lower ? own < its : own > its;
        before += better || (!worse && o < e);
    }
    return before < LINES;
}

static const char *label_of(const Metric *m, Arena *a) {
    if (m->unit == NULL) return m->head;
    return arena_printf(a, "%s [%s]", m->head, m->unit);
}

static double most_of(const Metric *m) { return m->scale == 0.01 ? 100 : 0; }

// A group for each policy, in the order of the table; one series.
static Err cell_bars(const Comparison *c, const ComparisonCell *cell, MetricId id, Page *p,
                     Arena *a) {
    const Metric *m = &metrics[id];
    const char  **groups = arena_new(a, const char *, cell->n_entries);
    double       *y = arena_new(a, double, cell->n_entries);
    double       *half = arena_new(a, double, cell->n_entries);
    uint32_t      n = 0, known = 0;
    for (uint32_t i = 0; i < cell->n_entries; i++) {
        if (!has_runs(&cell->entries[i])) continue;
        Mean x = comparison_mean(c, cell, &cell->entries[i], id);
        groups[n] = cell->entries[i].policy;
        y[n] = x.mean / m->scale;
        half[n++] = m->ends != NULL || m->half != NULL ? x.half / m->scale : NAN;
        if (isfinite(x.mean)) known++;
    }
    ChartSeries s = {.name = m->head, .y = y, .half = half, .n = n};
    Chart       chart = {.kind = CHART_BAR,
                         .title = m->about != NULL ? m->about : m->head,
                         .y_label = label_of(m, a),
                         .most = most_of(m),
                         .groups = groups,
                         .series = &s,
                         .n_series = 1,
                         .bold = c->subject};
    return known > 0 ? page_chart(p, &chart) : ERR_OK;
}

static const Chart curve_charts[CURVES] = {
#define X(id, form, heading, x_name, y_name, limit, log)                                           \
    {.kind = CHART_##form,                                                                         \
     .title = heading,                                                                             \
     .x_label = x_name,                                                                            \
     .y_label = y_name,                                                                            \
     .most = limit,                                                                                \
     .log_x = log},
#include "result/curve.def"
#undef X
};

static Err curves(const Comparison *c, const ComparisonCell *cell, CurveId id, Page *p, Arena *a) {
    ChartSeries *s = arena_new(a, ChartSeries, cell->n_entries);
    Chart        chart = curve_charts[id];
    for (uint32_t i = 0; i < cell->n_entries; i++) {
        const ComparisonEntry *e = &cell->entries[i];
        const Curve           *x = &e->curves[id];
        if (!has_runs(e) || x->n == 0) continue;
        s[chart.n_series++] = (ChartSeries){
            .name = e->policy, .x = x->x, .y = x->y, .n = x->n, .hidden = !is_shown(c, cell, e)};
    }
    chart.series = s;
    chart.bold = c->subject;
    return chart.n_series > 0 ? page_chart(p, &chart) : ERR_OK;
}

// The first headline metric against another one, a point for each policy: those with none above and
// beside them are the best compromises.
static Err cell_points(const Comparison *c, const ComparisonCell *cell, MetricId id, Page *p,
                       Arena *a) {
    const Metric *up = &metrics[metric_headline(c->tier, 0)], *along = &metrics[id];
    ChartSeries  *s = arena_new(a, ChartSeries, cell->n_entries);
    Chart         chart = {.kind = CHART_SCATTER,
                           .title = arena_printf(a, "%s against the %s", up->head, along->about),
                           .x_label = label_of(along, a),
                           .y_label = label_of(up, a),
                           .most = most_of(up),
                           .series = s,
                           .bold = c->subject};
    for (uint32_t i = 0; i < cell->n_entries; i++) {
        const ComparisonEntry *e = &cell->entries[i];
        double                *at = arena_new(a, double, 2);
        if (!has_runs(e)) continue;
        at[0] = comparison_mean(c, cell, e, id).mean / along->scale;
        at[1] = comparison_mean(c, cell, e, metric_headline(c->tier, 0)).mean / up->scale;
        if (!isfinite(at[0])) continue;
        s[chart.n_series++] = (ChartSeries){.name = e->policy, .x = &at[0], .y = &at[1], .n = 1};
    }
    return chart.n_series > 0 ? page_chart(p, &chart) : ERR_OK;
}

static void text(Page *p, const char *words) {
    if (words[0] != '\0') page_text(p, "%s", words);
}

static Err cell_section(const Comparison *c, const ComparisonCell *cell, Page *p, Arena *a) {
    Table t;
    page_heading(p, cell->title);
    if (cell->about != NULL) page_text(p, "%s", cell->about);
    text(p, report_verdict(c, cell, a));
    text(p, report_missing(cell, a));
    for (MetricId id = 0; id < METRICS; id++)
        if (metric_has(c->tier, id) && (metrics[id].flags & METRIC_CHART) != 0)
            TRY(cell_bars(c, cell, id, p, a));
    for (MetricId id = 0; id < METRICS; id++)
        if (metric_has(c->tier, id) && (metrics[id].flags & METRIC_AGAINST) != 0)
            TRY(cell_points(c, cell, id, p, a));
    for (CurveId id = 0; id < CURVES; id++) TRY(curves(c, cell, id, p, a));
    report_cell_table(c, cell, a, &t);
    return page_table(p, &t, NULL);
}

// One series for each policy: the headline metric in n sets of cells.
static ChartSeries *series(const Comparison *c, const CellFilter *where, const double *x,
                           uint32_t n, Arena *a) {
    const ComparisonCell *any = &c->cells[0];
    MetricId              id = metric_headline(c->tier, 0);
    ChartSeries          *s = arena_new(a, ChartSeries, any->n_entries);
    for (uint32_t i = 0; i < any->n_entries; i++) {
        double *y = arena_new(a, double, n), *half = arena_new(a, double, n);
        for (uint32_t k = 0; k < n; k++) {
            Mean v = comparison_over(c, &where[k], any->entries[i].policy, id);
            y[k] = v.mean / metrics[id].scale;
            half[k] = v.half / metrics[id].scale;
        }
        s[i] = (ChartSeries){any->entries[i].policy, x, y, half, n, false};
    }
    return s;
}

static Chart chart_of(const Comparison *c, ChartKind kind, Arena *a) {
    const ComparisonEntry *bound = comparison_bound(c, &c->cells[0], metric_headline(c->tier, 0));
    const Metric          *m = &metrics[metric_headline(c->tier, 0)];
    return (Chart){.kind = kind,
                   .y_label = label_of(m, a),
                   .most = most_of(m),
                   .n_series = c->cells[0].n_entries,
                   .bold = kind == CHART_LINE ? c->subject : NULL,
                   .dashed = bound != NULL && bound->knows == NULL ? bound->policy : NULL};
}

static Err group_bars(const Comparison *c, const char **groups, uint32_t n, Page *p, Arena *a) {
    CellFilter *where = arena_new(a, CellFilter, n);
    Chart       chart = chart_of(c, CHART_BAR, a);
    if (n < 2) return ERR_OK;
    for (uint32_t i = 0; i < n; i++) where[i] = (CellFilter){.group = groups[i]};
    chart.title =
        arena_printf(a, "%s, mean of the cells", metrics[metric_headline(c->tier, 0)].about);
    chart.groups = groups;
    chart.series = series(c, where, NULL, n, a);
    return page_chart(p, &chart);
}

static uint32_t values_of(const Comparison *c, const char *group, const char *key, double *to) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_cells; i++) {
        double   x = comparison_field(&c->cells[i], key);
        uint32_t at = 0;
        if (strcmp(c->cells[i].group, group) != 0) continue;
        while (at < n && to[at] < x) at++;
        if (at < n && to[at] == x) continue;
        memmove(&to[at + 1], &to[at], (n++ - at) * sizeof *to);
        to[at] = x;
    }
    return n;
}

// The headline metric of a group over a condition that is a number.
static Err axis_lines(const Comparison *c, const char *group, const CellField *f, Page *p,
                      Arena *a) {
    double     *x = arena_new(a, double, c->n_cells + 1);
    uint32_t    n = values_of(c, group, f->key, x);
    CellFilter *where = arena_new(a, CellFilter, n);
    Chart       chart = chart_of(c, CHART_LINE, a);
    if (n < 2) return ERR_OK;
    for (uint32_t i = 0; i < n; i++)
        where[i] = (CellFilter){.group = group, .key = f->key, .value = x[i]};
    chart.title = arena_printf(a, "%s against %s, %s", metrics[metric_headline(c->tier, 0)].head,
                               f->key, group);
    chart.x_label = f->axis;
    chart.series = series(c, where, x, n, a);
    return page_chart(p, &chart);
}

static Err group_charts(const Comparison *c, Page *p, Arena *a) {
    const char **groups = arena_new(a, const char *, c->n_cells);
    uint32_t     n = 0;
    for (uint32_t i = 0; i < c->n_cells; i++) {
        uint32_t k = 0;
        while (k < n && strcmp(groups[k], c->cells[i].group) != 0) k++;
        if (k == n) groups[n++] = c->cells[i].group;
    }
    TRY(group_bars(c, groups, n, p, a));
    for (uint32_t i = 0; i < c->cells[0].n_fields; i++)
        for (uint32_t k = 0; k < n && c->cells[0].fields[i].axis != NULL; k++)
            TRY(axis_lines(c, groups[k], &c->cells[0].fields[i], p, a));
    return ERR_OK;
}

// One series for each size; the points stand by size, then by period.
static uint32_t sweep_series(const Comparison *c, ChartSeries *s, Arena *a) {
    double  *x = arena_new(a, double, c->n_sweep), *y = arena_new(a, double, c->n_sweep);
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_sweep; i++) {
        const SweepPoint *at = &c->sweep[i];
        x[i] = at->period_us / 1000;
        y[i] = 100 * at->share.mean;
        if (i == 0 || at->hidden != at[-1].hidden)
            s[n++] = (ChartSeries){
                arena_printf(a, "hidden size %u", at->hidden), &x[i], &y[i], NULL, 0, false};
        s[n - 1].n++;
    }
    return n;
}

static Err sweep(const Comparison *c, Page *p, Arena *a) {
    ChartSeries *s = arena_new(a, ChartSeries, c->n_sweep);
    Table        t;
    Chart        chart = {.kind = CHART_LINE,
                          .title = "Energy overhead of the policy against hidden size and period",
                          .x_label = "T_s [ms]",
                          .y_label = "share of the energy [%]",
                          .series = s,
                          .n_series = sweep_series(c, s, a),
                          .log_x = true,
                          .log_y = true};
    if (c->n_sweep == 0) return ERR_OK;
    page_heading(p, "Cost of the policy itself");
    page_text(p, "%s", c->sweep_about);
    TRY(page_chart(p, &chart));
    report_sweep_table(c, a, &t);
    return page_table(p, &t, NULL);
}

static Err summary(const Comparison *c, Page *p, Arena *a) {
    Table t;
    for (uint32_t h = 0; c->n_cells > 1 && metric_headline(c->tier, h) != METRICS; h++)
        text(p, report_summary(c, metric_headline(c->tier, h), a));
    if (report_cells_table(c, a, &t))
        TRY(page_table(p, &t,
                       arena_printf(a, "%s against the best baseline of each cell", c->subject)));
    if (report_policies_table(c, a, &t))
        TRY(page_table(p, &t,
                       arena_printf(a, "%s against each policy, over all cells", c->subject)));
    return group_charts(c, p, a);
}

Err report_page(const Comparison *c, Arena *scratch, Page *p) {
    size_t mark = scratch->used;
    Err    e = ERR_OK;
    if (c->machine != NULL) page_text(p, "Machine: %s.", c->machine);
    if (c->about != NULL) page_text(p, "%s", c->about);
    page_text(p, "%s", report_legend(c, scratch));
    if (c->n_cells > 0 && c->cells[0].n_entries > LINES)
        page_text(p,
                  "Charts first show %s and the %d best other policies; a click on a name shows "
                  "or hides one.",
                  c->subject, LINES - 1);
    if (c->n_cells > 0) e = summary(c, p, scratch);
    if (e == ERR_OK) e = sweep(c, p, scratch);
    for (uint32_t i = 0; e == ERR_OK && i < c->n_cells; i++) {
        size_t cell = scratch->used;
        e = cell_section(c, &c->cells[i], p, scratch);
        arena_rewind(scratch, cell);
    }
    arena_rewind(scratch, mark);
    return e;
}
