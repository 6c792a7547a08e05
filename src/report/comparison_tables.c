// Columns follow result/metric.def: every metric of the tier, with its deltas behind it. A column
// without any value is left out.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/comparison_report.h"

enum { TEXTS = 4, TAIL = 2, COLUMNS_MAX = TEXTS + COMPARISON_FIELDS + 2 * METRICS + TAIL };

typedef struct Shown {  // a column of a metric
    MetricId id;
    bool     half;  // half of its interval instead of its mean
} Shown;

typedef struct Layout {
    Shown    at[2 * METRICS];
    uint32_t n;
} Layout;

static void add_shown(Layout *l, MetricId id) {
    const Metric *m = &metrics[id];
    l->at[l->n++] = (Shown){id, false};
    if (m->ends != NULL || m->half != NULL) l->at[l->n++] = (Shown){id, true};
}

static Layout layout_of(Tier tier) {
    Layout l = {.n = 0};
    for (MetricId id = 0; id < METRICS; id++) {
        if (metrics[id].delta != METRIC_VALUE || !metric_has(tier, id)) continue;
        add_shown(&l, id);
        for (MetricId d = 0; d < METRICS; d++)
            if (metrics[d].delta != METRIC_VALUE && metrics[d].of == id) add_shown(&l, d);
    }
    return l;
}

static bool is_reference(const Comparison *c, const ComparisonCell *cell, const ComparisonEntry *e,
                         const Metric *m) {
    if (m->delta == METRIC_VALUE) return false;
    switch (m->versus) {
    case METRIC_SUBJECT: return e == comparison_subject(c, cell);
    case METRIC_BASELINE: return e == comparison_baseline(c, cell, m->of);
    case METRIC_BOUND: return e == comparison_bound(c, cell, m->of);
    }
    return false;
}

static double shown_value(const Comparison *c, const ComparisonCell *cell, const ComparisonEntry *e,
                          Shown s) {
    if (is_reference(c, cell, e, &metrics[s.id])) return NAN;
    Mean x = comparison_mean(c, cell, e, s.id);
    return s.half ? x.half : x.mean;
}

static void real(Table *t, double v) {
    if (isfinite(v))
        table_real(t, v + 0.0);  // no -0
    else
        table_missing(t);
}

static Column column_of(Shown s, Arena *a) {
    const Metric *m = &metrics[s.id];
    Column        col = {.key = m->key,
                         .head = m->head,
                         .unit = m->unit,
                         .scale = m->scale,
                         .decimals = m->decimals};
    if (!s.half) return col;
    col.key = m->half != NULL ? m->half : arena_printf(a, "%s_half", m->key);
    col.head = "+-";
    col.unit = NULL;
    return col;
}

// Only columns with a value somewhere in the cells stay.
static void drop_empty(const Comparison *c, const ComparisonCell *cells, uint32_t n, Layout *l) {
    uint32_t kept = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        bool any = false;
        for (uint32_t i = 0; i < n && !any; i++)
            for (uint32_t j = 0; j < cells[i].n_entries && !any; j++)
                any = cells[i].entries[j].missing == NULL &&
                      isfinite(shown_value(c, &cells[i], &cells[i].entries[j], l->at[k]));
        if (any) l->at[kept++] = l->at[k];
    }
    l->n = kept;
}

static const char *role_of(const Comparison *c, const ComparisonCell *cell,
                           const ComparisonEntry *e) {
    if (strcmp(e->policy, c->subject) == 0) return c->subject_role;
    if (e->part_of != NULL && strcmp(e->part_of, c->subject) == 0) return "part of it";
    if (e->rank > c->fair_rank) return e->knows != NULL ? "knows more" : "sees the future";
    if (metric_delta_of(metric_headline(c->tier, 0)) == METRICS) return NULL;
    return e == comparison_baseline(c, cell, metric_headline(c->tier, 0)) ? "best baseline" : NULL;
}

static const Column text_columns[TEXTS] = {
    {.key = "policy", .head = "policy"},
    {.key = "role", .head = ""},
    {.key = "knows", .head = "knows"},
    {.key = "part_of", .head = "part of"},
};
static const Column tail_columns[TAIL] = {
    {.key = "worst_tenant", .head = "worst tenant"},
    {.key = "worst_sla", .head = "in time", .unit = "%", .scale = 0.01, .decimals = 1},
};

static bool has_tail(const Comparison *c) { return c->tier == TIER_CHIP; }

static void add_row(const Comparison *c, const ComparisonCell *cell, const ComparisonEntry *e,
                    const Layout *l, bool csv, Table *t) {
    table_row(t);
    for (uint32_t i = 0; csv && i < cell->n_fields; i++) {
        const CellField *f = &cell->fields[i];
        if (f->kind == FIELD_TEXT)
            table_text(t, f->text);
        else if (f->kind == FIELD_INT)
            table_int(t, (int64_t)f->number);
        else
            table_real(t, f->number);
    }
    table_text(t, e->policy);
    const char *role = role_of(c, cell, e);
    table_text(t, role != NULL || csv ? role : "");
    if (csv || cell->entries[0].knows != NULL) table_text(t, e->knows);
    if (csv) table_text(t, e->part_of);
    for (uint32_t k = 0; k < l->n; k++) real(t, shown_value(c, cell, e, l->at[k]));
    if (!has_tail(c)) return;
    table_text(t, e->worst_tenant);
    real(t, e->worst_tenant != NULL ? e->worst_sla : NAN);
}

// Tables for people are of one cell, and CSV files of all.
static void fill(const Comparison *c, const ComparisonCell *cells, uint32_t n, bool csv, Arena *a,
                 Table *t) {
    Column  *cols = arena_new(a, Column, COLUMNS_MAX);
    uint32_t n_cols = 0;
    Layout   l = layout_of(c->tier);
    if (!csv) drop_empty(c, cells, n, &l);
    for (uint32_t i = 0; csv && n > 0 && i < cells[0].n_fields; i++)
        cols[n_cols++] = (Column){.key = cells[0].fields[i].key, .head = cells[0].fields[i].key};
    for (uint32_t i = 0; i < TEXTS; i++)
        if (csv || i < 2 || (i == 2 && n > 0 && cells[0].entries[0].knows != NULL))
            cols[n_cols++] = text_columns[i];
    for (uint32_t k = 0; k < l.n; k++) cols[n_cols++] = column_of(l.at[k], a);
    for (uint32_t i = 0; has_tail(c) && i < TAIL; i++) cols[n_cols++] = tail_columns[i];
    table_init(t, a, cols, n_cols);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < cells[i].n_entries; k++)
            if (cells[i].entries[k].missing == NULL)
                add_row(c, &cells[i], &cells[i].entries[k], &l, csv, t);
}

void report_cell_table(const Comparison *c, const ComparisonCell *cell, Arena *a, Table *t) {
    fill(c, cell, 1, false, a, t);
}

Err report_csv(const Comparison *c, Arena *scratch, FILE *f) {
    size_t mark = scratch->used;
    Table  t;
    fill(c, c->cells, c->n_cells, true, scratch, &t);
    Err e = table_csv(&t, f);
    arena_rewind(scratch, mark);
    return e;
}

static bool is_comparable(const Comparison *c) {
    return metric_delta_of(metric_headline(c->tier, 0)) != METRICS;
}

static bool is_ratio(MetricId id) { return metrics[metric_delta_of(id)].delta == METRIC_RATIO; }

static Column metric_column(MetricId id, const char *head) {
    const Metric *m = &metrics[id];
    return (Column){
        .key = m->key, .head = head, .unit = m->unit, .scale = m->scale, .decimals = m->decimals};
}

// A ratio less 1 is shown in percent.
static Column delta_column(MetricId id, const char *head) {
    MetricId d = metric_delta_of(id);
    return (Column){.key = metrics[d].key,
                    .head = head,
                    .unit = head[0] == '+' ? NULL
                            : is_ratio(id) ? "%"
                                           : metrics[d].unit,
                    .scale = 0.01,
                    .decimals = 1};
}

enum { CELLS_EACH = 7, POLICIES_EACH = 6, HEADLINES = 2 };

static void add_cells_columns(MetricId id, Column *to) {
    to[0] = metric_column(id, metrics[id].head);
    to[1] = (Column){.key = "baseline", .head = "best baseline"};
    to[2] = metric_column(id, "baseline's");
    to[3] = delta_column(id, "difference");
    to[4] = delta_column(id, "+-");
    to[5] = metric_column(id, "oracle's");
    to[6] = delta_column(id, "below oracle");
}

static void add_cells_row(const Comparison *c, const ComparisonCell *cell, MetricId id, Table *t) {
    const ComparisonEntry *ours = comparison_subject(c, cell),
                          *base = comparison_baseline(c, cell, id),
                          *bound = comparison_bound(c, cell, id);
    bool   ratio = is_ratio(id);
    double value = comparison_mean(c, cell, ours, id).mean;
    double most = bound != NULL ? comparison_mean(c, cell, bound, id).mean : NAN;
    Mean   delta =
        ratio ? comparison_ratio(c, ours, base, id) : comparison_difference(c, ours, base, id);
    real(t, value);
    table_text(t, base->policy);
    real(t, comparison_mean(c, cell, base, id).mean);
    real(t, ratio ? delta.mean - 1 : delta.mean);
    real(t, delta.half);
    if (ratio) return;
    real(t, most);
    real(t, most - value);
}

static uint32_t cells_each(MetricId id) { return is_ratio(id) ? CELLS_EACH - 2 : CELLS_EACH; }

bool report_cells_table(const Comparison *c, Arena *a, Table *t) {
    Column  *cols = arena_new(a, Column, COMPARISON_FIELDS + HEADLINES * CELLS_EACH);
    uint32_t n = 0;
    if (!is_comparable(c) || c->n_cells < 2) return false;
    cols[n++] = (Column){.key = "cell", .head = "cell"};
    for (uint32_t h = 0; metric_headline(c->tier, h) != METRICS; h++) {
        MetricId id = metric_headline(c->tier, h);
        add_cells_columns(id, &cols[n]);
        n += cells_each(id);
    }
    table_init(t, a, cols, n);
    for (uint32_t i = 0; i < c->n_cells; i++) {
        const ComparisonCell *cell = &c->cells[i];
        if (comparison_subject(c, cell) == NULL) continue;
        if (comparison_baseline(c, cell, metric_headline(c->tier, 0)) == NULL) continue;
        table_row(t);
        table_text(t, cell->title);
        for (uint32_t h = 0; metric_headline(c->tier, h) != METRICS; h++)
            add_cells_row(c, cell, metric_headline(c->tier, h), t);
    }
    return t->n_rows > 0;
}

// A ratio has no interval over several cells.
static uint32_t add_policies_columns(MetricId id, Column *to) {
    uint32_t n = 0;
    to[n++] = metric_column(id, metrics[id].head);
    to[n++] = delta_column(id, "change");
    if (!is_ratio(id)) to[n++] = delta_column(id, "+-");
    to[n++] = delta_column(id, "best");
    to[n++] = delta_column(id, "worst");
    to[n++] = (Column){.key = "cells", .head = "ahead, even, behind"};
    return n;
}

static void add_policies_row(const Change *x, MetricId id, Table *t) {
    real(t, x->theirs);
    real(t, is_ratio(id) ? x->mean : x->by_seed.mean);
    if (!is_ratio(id)) real(t, x->by_seed.half);
    real(t, x->best.mean);
    real(t, x->worst.mean);
    table_textf(t, "%u, %u, %u", x->ahead, x->even, x->behind);
}

static uint32_t add_gain_columns(MetricId id, Column *to) {
    uint32_t n = 0;
    if (!is_ratio(id)) {
        to[n++] = (Column){
            .key = "gain", .head = "largest gain", .unit = "%", .scale = 0.01, .decimals = 0};
        to[n++] = metric_column(id, "from");
        to[n++] = metric_column(id, "to");
    }
    to[n++] = (Column){.key = "at", .head = is_ratio(id) ? "best in the cell" : "in the cell"};
    return n;
}

static void add_gain(const Change *x, MetricId id, Table *t) {
    if (!is_ratio(id)) {
        real(t, x->gain);
        real(t, x->gain_theirs);
        real(t, x->gain_ours);
    }
    const ComparisonCell *at = is_ratio(id) ? x->best_at : x->gain_at;
    table_text(t, at != NULL ? at->title : "");
}

static uint32_t policies_columns(const Comparison *c, Column *cols) {
    uint32_t n = 0;
    cols[n++] = (Column){.key = "policy", .head = "against"};
    cols[n++] = (Column){.key = "knows", .head = c->tier == TIER_CLUSTER ? "knows" : "paper"};
    for (uint32_t h = 0; metric_headline(c->tier, h) != METRICS; h++)
        n += add_policies_columns(metric_headline(c->tier, h), &cols[n]);
    return n + add_gain_columns(metric_headline(c->tier, 0), &cols[n]);
}

static void add_policy(const Comparison *c, const ComparisonEntry *e, Table *t) {
    MetricId first = metric_headline(c->tier, 0);
    Change   x;
    if (!change_against(c, e->policy, first, &x)) return;
    table_row(t);
    table_textf(t, "%s%s", e->policy,
                e->rank > c->fair_rank && e->knows == NULL ? " (sees the future)" : "");
    table_text(t, e->knows != NULL ? e->knows : e->paper != NULL ? e->paper : "");
    for (uint32_t h = 0; metric_headline(c->tier, h) != METRICS; h++) {
        Change y;
        if (change_against(c, e->policy, metric_headline(c->tier, h), &y))
            add_policies_row(&y, metric_headline(c->tier, h), t);
    }
    add_gain(&x, first, t);
}

bool report_policies_table(const Comparison *c, Arena *a, Table *t) {
    Column *cols = arena_new(a, Column, 6 + HEADLINES * POLICIES_EACH);
    if (!is_comparable(c) || c->n_cells == 0) return false;
    table_init(t, a, cols, policies_columns(c, cols));
    for (uint32_t i = 0; i < c->cells[0].n_entries; i++) add_policy(c, &c->cells[0].entries[i], t);
    return t->n_rows > 0;
}

static const Column sweep_columns[] = {
    {.key = "hidden", .head = "hidden size"},
    {.key = "period_us", .head = "T_s", .unit = "ms", .scale = 1000, .decimals = 2},
    {.key = "share", .head = "policy's energy", .unit = "%", .scale = 0.01, .decimals = 3},
    {.key = "share_half", .head = "+-", .scale = 0.01, .decimals = 3},
    {.key = "decision_us", .head = "decision", .unit = "us", .decimals = 2},
    {.key = "sla", .head = "in time", .unit = "%", .scale = 0.01, .decimals = 1},
};

void report_sweep_table(const Comparison *c, Arena *a, Table *t) {
    table_init(t, a, sweep_columns, sizeof sweep_columns / sizeof *sweep_columns);
    for (uint32_t i = 0; i < c->n_sweep; i++) {
        const SweepPoint *p = &c->sweep[i];
        table_row(t);
        table_int(t, p->hidden);
        table_real(t, p->period_us);
        real(t, p->share.mean);
        real(t, p->share.half);
        real(t, p->decision_us.mean);
        real(t, p->sla.mean);
    }
}
