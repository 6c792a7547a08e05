#include <math.h>
#include <string.h>

#include "report/match.h"

// The values that a dimension of the cells takes, in the order of their first appearance.
typedef struct Axes {
    const char **chips, **mixes;
    double      *loads, *bandwidths;
    uint32_t     n_chips, n_mixes, n_loads, n_bandwidths;
} Axes;

static void add_word(const char **to, uint32_t *n, const char *word) {
    for (uint32_t i = 0; i < *n; i++)
        if (strcmp(to[i], word) == 0) return;
    to[(*n)++] = word;
}

static void add_number(double *to, uint32_t *n, double x) {  // ascending, for lines
    uint32_t at = *n;
    for (uint32_t i = 0; i < *n; i++)
        if (to[i] == x) return;
    for (; at > 0 && to[at - 1] > x; at--) to[at] = to[at - 1];
    to[at] = x;
    (*n)++;
}

static Axes axes_of(const Match *m, const char *chip, Arena *a) {
    Axes x = {.chips = arena_new(a, const char *, m->n_cells),
              .mixes = arena_new(a, const char *, m->n_cells),
              .loads = arena_new(a, double, m->n_cells),
              .bandwidths = arena_new(a, double, m->n_cells)};
    for (uint32_t i = 0; i < m->n_cells; i++) {
        const MatchCell *c = &m->cells[i];
        if (chip != NULL && strcmp(chip, c->chip) != 0) continue;
        add_word(x.chips, &x.n_chips, c->chip);
        add_word(x.mixes, &x.n_mixes, c->mix);
        add_number(x.loads, &x.n_loads, c->load);
        add_number(x.bandwidths, &x.n_bandwidths, c->bandwidth);
    }
    return x;
}

// One series a policy: the share in time at each of n places, which differ in one dimension.
static ChartSeries *series(const Match *m, const MatchWhere *places, const double *x, uint32_t n,
                           Arena *a) {
    const MatchCell *any = &m->cells[0];
    ChartSeries     *s = arena_new(a, ChartSeries, any->n_entries);
    for (uint32_t i = 0; i < any->n_entries; i++) {
        double *y = arena_new(a, double, n), *half = arena_new(a, double, n);
        for (uint32_t k = 0; k < n; k++) {
            Mean v = match_over(m, &places[k], any->entries[i].policy, offsetof(MatchRun, sla));
            y[k] = 100 * v.mean;
            half[k] = 100 * v.half;
        }
        s[i] = (ChartSeries){any->entries[i].policy, x, y, half, n, false};
    }
    return s;
}

static Err by_mix(const Match *m, const char *chip, const Axes *x, Page *p, Arena *a) {
    MatchWhere *places = arena_new(a, MatchWhere, x->n_mixes);
    for (uint32_t i = 0; i < x->n_mixes; i++) places[i] = (MatchWhere){chip, x->mixes[i], NAN, NAN};
    Chart c = {.kind = CHART_BAR,
               .title =
                   arena_printf(a, "Requests in time by workload, %s, mean of its cells", chip),
               .y_label = "in time [%]",
               .most = 100,
               .groups = x->mixes,
               .series = series(m, places, NULL, x->n_mixes, a),
               .n_series = m->cells[0].n_entries};
    return page_chart(p, &c);
}

// A line a policy over places that differ in one number.
static Err lines(const Match *m, const char *title, const char *label, const MatchWhere *places,
                 const double *x, uint32_t n, Page *p, Arena *a) {
    const MatchEntry *bound = match_bound(m, &m->cells[0]);
    Chart             c = {.kind = CHART_LINE,
                           .title = title,
                           .x_label = label,
                           .y_label = "in time [%]",
                           .most = 100,
                           .series = series(m, places, x, n, a),
                           .n_series = m->cells[0].n_entries,
                           .bold = m->champion,
                           .dashed = bound != NULL ? bound->policy : NULL};
    return n > 1 ? page_chart(p, &c) : ERR_OK;
}

static Err over_bandwidth(const Match *m, MatchWhere at, const Axes *x, Page *p, Arena *a) {
    MatchWhere *places = arena_new(a, MatchWhere, x->n_bandwidths);
    char *title = arena_printf(a, "Requests in time against bandwidth, %s, %s", at.chip, at.mix);
    for (uint32_t i = 0; i < x->n_bandwidths; i++) {
        places[i] = at;
        places[i].bandwidth = x->bandwidths[i];
    }
    return lines(m, title, "memory bandwidth [B/cycle]", places, x->bandwidths, x->n_bandwidths, p,
                 a);
}

static Err over_load(const Match *m, MatchWhere at, const Axes *x, Page *p, Arena *a) {
    MatchWhere *places = arena_new(a, MatchWhere, x->n_loads);
    char       *title = arena_printf(a, "Requests in time against load, %s, %s", at.chip, at.mix);
    for (uint32_t i = 0; i < x->n_loads; i++) {
        places[i] = at;
        places[i].load = x->loads[i];
    }
    return lines(m, title, "load", places, x->loads, x->n_loads, p, a);
}

// One series a size; the points stand by size, then by period.
static uint32_t sweep_series(const Match *m, ChartSeries *s, Arena *a) {
    double  *x = arena_new(a, double, m->n_sweep), *y = arena_new(a, double, m->n_sweep);
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_sweep; i++) {
        const MatchPoint *at = &m->sweep[i];
        x[i] = at->period_us / 1000;
        y[i] = 100 * at->share.mean;
        if (i == 0 || at->hidden != at[-1].hidden)
            s[n++] = (ChartSeries){
                arena_printf(a, "hidden size %u", at->hidden), &x[i], &y[i], NULL, 0, false};
        s[n - 1].n++;
    }
    return n;
}

static Err sweep(const Match *m, Page *p, Arena *a) {
    ChartSeries *s = arena_new(a, ChartSeries, m->n_sweep);
    Table        t;
    Chart        c = {.kind = CHART_LINE,
                      .title = "Energy overhead of the policy against hidden size and period",
                      .x_label = "T_s [ms]",
                      .y_label = "share of the energy [%]",
                      .series = s,
                      .n_series = sweep_series(m, s, a),
                      .log_x = true,
                      .log_y = true};
    if (m->n_sweep == 0) return ERR_OK;
    page_heading(p, "What the policy itself costs");
    page_text(p, "%s", m->sweep_about);
    TRY(page_chart(p, &c));
    match_sweep_table(m, a, &t);
    return page_table(p, &t, NULL);
}

static Err verdict(const Match *m, Page *p, Arena *a) {
    MatchVerdict v;
    Table        t;
    if (!match_judge(m, a, &v)) return ERR_OK;
    page_text(p, "%s", match_words(m, &v, a));
    match_verdict_table(m, &v, a, &t);
    TRY(page_table(p, &t, "Cell by cell"));
    match_rival_table(&v, a, &t);
    return page_table(p, &t, "Against each policy");
}

static Err chip_section(const Match *m, const char *chip, Page *p, Arena *a) {
    Axes x = axes_of(m, chip, a);
    page_heading(p, arena_printf(a, "Package %s", chip));
    TRY(by_mix(m, chip, &x, p, a));
    for (uint32_t i = 0; i < x.n_mixes; i++)
        TRY(over_bandwidth(m, (MatchWhere){chip, x.mixes[i], NAN, NAN}, &x, p, a));
    for (uint32_t i = 0; i < x.n_mixes; i++)
        TRY(over_load(m, (MatchWhere){chip, x.mixes[i], NAN, NAN}, &x, p, a));
    return ERR_OK;
}

static Err all_cells(const Match *m, Page *p, Arena *a) {
    page_heading(p, "Every cell");
    for (uint32_t i = 0; i < m->n_cells; i++) {
        Table t;
        match_cell_table(m, &m->cells[i], a, &t);
        TRY(page_table(p, &t, match_title(&m->cells[i], a)));
    }
    return ERR_OK;
}

static Err sections(const Match *m, Page *p, Arena *a) {
    Axes x = axes_of(m, NULL, a);
    TRY(verdict(m, p, a));
    for (uint32_t i = 0; i < x.n_chips; i++) TRY(chip_section(m, x.chips[i], p, a));
    TRY(sweep(m, p, a));
    return all_cells(m, p, a);
}

Err match_page(const Match *m, Arena *scratch, Page *p) {
    size_t mark = scratch->used;
    if (m->about != NULL) page_text(p, "%s", m->about);
    page_text(p, "%s", match_legend(m, scratch));
    Err e = m->n_cells > 0 ? sections(m, p, scratch) : ERR_OK;
    arena_rewind(scratch, mark);
    return e;
}
