#include <math.h>
#include <string.h>

#include "report/league.h"

#define AT(member) offsetof(LeagueRun, member)

static bool plays(const LeagueEntry *e) { return e->missing == NULL; }

// A group a policy, in the order of the table; one series.
static Err bars(const League *l, const LeagueCell *c, const char *title, size_t member, Page *p,
                Arena *a) {
    const char **groups = arena_new(a, const char *, c->n_entries);
    double      *y = arena_new(a, double, c->n_entries), *half = arena_new(a, double, c->n_entries);
    uint32_t     n = 0;
    for (uint32_t i = 0; i < c->n_entries; i++) {
        if (!plays(&c->entries[i])) continue;
        Mean x = league_mean(l, &c->entries[i], member);
        groups[n] = c->entries[i].policy;
        y[n] = x.mean / 3600;
        half[n++] = x.half / 3600;
    }
    ChartSeries s = {title, NULL, y, half, n};
    Chart       chart = {.kind = CHART_BAR,
                         .title = title,
                         .y_label = "hours",
                         .groups = groups,
                         .series = &s,
                         .n_series = 1};
    return page_chart(p, &chart);
}

static Err distribution(const League *l, const LeagueCell *c, Page *p, Arena *a) {
    ChartSeries *s = arena_new(a, ChartSeries, c->n_entries);
    uint32_t     n = 0;
    for (uint32_t i = 0; i < c->n_entries; i++) {
        const LeagueEntry *e = &c->entries[i];
        if (plays(e) && e->curves.n_jct > 0)
            s[n++] = (ChartSeries){e->policy, NULL, e->curves.jct_s, NULL, e->curves.n_jct};
    }
    Chart chart = {.kind = CHART_DISTRIBUTION,
                   .title = "Jobs done within a time of their submission, all seeds",
                   .x_label = "completion time [s]",
                   .y_label = "share of the jobs",
                   .series = s,
                   .n_series = n,
                   .log_x = true,
                   .bold = l->champion};
    return n > 0 ? page_chart(p, &chart) : ERR_OK;
}

static Err course(const League *l, const LeagueCell *c, bool queue, Page *p, Arena *a) {
    ChartSeries *s = arena_new(a, ChartSeries, c->n_entries);
    uint32_t     n = 0;
    for (uint32_t i = 0; i < c->n_entries; i++) {
        const LeagueEntry  *e = &c->entries[i];
        const LeagueCurves *x = &e->curves;
        if (plays(e) && x->n_spans > 0)
            s[n++] =
                (ChartSeries){e->policy, x->at_h, queue ? x->queue : x->gpu_use, NULL, x->n_spans};
    }
    Chart chart = {.kind = CHART_LINE,
                   .title = queue ? "Jobs that wait, over time, first seed"
                                  : "GPUs in use over time, first seed",
                   .x_label = "hours since the first submission",
                   .y_label = queue ? "jobs" : "GPUs in use [%]",
                   .most = queue ? 0 : 100,
                   .series = s,
                   .n_series = n,
                   .bold = l->champion};
    return n > 0 ? page_chart(p, &chart) : ERR_OK;
}

static Err cell(const League *l, const LeagueCell *c, Page *p, Arena *a) {
    const char *verdict = league_verdict(l, c, a), *missing = league_missing(c, a);
    Table       t;
    page_heading(p, league_title(c, a));
    if (verdict[0] != '\0') page_text(p, "%s", verdict);
    if (missing[0] != '\0') page_text(p, "%s", missing);
    TRY(bars(l, c, "Mean completion time", AT(jct_mean_s), p, a));
    TRY(bars(l, c, "Makespan", AT(makespan_s), p, a));
    TRY(distribution(l, c, p, a));
    TRY(course(l, c, false, p, a));
    TRY(course(l, c, true, p, a));
    league_cell_table(l, c, a, &t);
    return page_table(p, &t, NULL);
}

Err league_page(const League *l, Arena *scratch, Page *p) {
    Err   e = ERR_OK;
    Table t;
    if (l->about != NULL) page_text(p, "%s", l->about);
    page_text(p, "%s", league_legend(l, scratch));
    if (league_change_table(l, scratch, &t))
        e = page_table(p, &t,
                       arena_printf(scratch, "%s over all cells, less is better", l->champion));
    for (uint32_t i = 0; e == ERR_OK && i < l->n_cells; i++) {
        size_t mark = scratch->used;
        e = cell(l, &l->cells[i], p, scratch);
        arena_rewind(scratch, mark);
    }
    return e;
}
