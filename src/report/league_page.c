#include <math.h>
#include <string.h>

#include "report/league.h"

#define AT(member) offsetof(LeagueRun, member)

enum { LINES = 6 };  // that a chart shows before anybody clicks

static bool plays(const LeagueEntry *e) { return e->missing == NULL; }

// Of the champion and of those with the lowest mean completion time.
static bool is_shown(const League *l, const LeagueCell *c, const LeagueEntry *e) {
    double   own = league_mean(l, e, AT(jct_mean_s)).mean;
    uint32_t before = 1;
    if (strcmp(e->policy, l->champion) == 0) return true;
    for (uint32_t i = 0; i < c->n_entries; i++) {
        const LeagueEntry *o = &c->entries[i];
        if (!plays(o) || strcmp(o->policy, l->champion) == 0) continue;
        double its = league_mean(l, o, AT(jct_mean_s)).mean;
        before += its < own || (!(own < its) && o < e);
    }
    return before < LINES;
}

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
    ChartSeries s = {.name = title, .y = y, .half = half, .n = n};
    Chart       chart = {.kind = CHART_BAR,
                         .title = title,
                         .y_label = "hours",
                         .groups = groups,
                         .series = &s,
                         .n_series = 1,
                         .bold = l->champion};
    return page_chart(p, &chart);
}

static Err distribution(const League *l, const LeagueCell *c, Page *p, Arena *a) {
    ChartSeries *s = arena_new(a, ChartSeries, c->n_entries);
    uint32_t     n = 0;
    for (uint32_t i = 0; i < c->n_entries; i++) {
        const LeagueEntry *e = &c->entries[i];
        if (!plays(e) || e->curves.n_jct == 0) continue;
        s[n] = (ChartSeries){.name = e->policy, .y = e->curves.jct_s, .n = e->curves.n_jct};
        s[n++].hidden = !is_shown(l, c, e);
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
        if (!plays(e) || x->n_spans == 0) continue;
        s[n] = (ChartSeries){
            .name = e->policy, .x = x->at_h, .y = queue ? x->queue : x->gpu_use, .n = x->n_spans};
        s[n++].hidden = !is_shown(l, c, e);
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
    if (l->n_cells > 0 && l->cells[0].n_entries > LINES)
        page_text(p,
                  "Lines are those of %s and of the %d others with the lowest mean completion "
                  "time; a click on a name shows or hides one.",
                  l->champion, LINES - 1);
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
