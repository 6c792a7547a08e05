// The sentences of a report, and the report as text.
#include <math.h>
#include <string.h>

#include "report/comparison_report.h"

static bool is_ratio(MetricId id) { return metrics[metric_delta_of(id)].delta == METRIC_RATIO; }

// "+1.2 +- 0.3 %", or points where shares are subtracted.
static const char *delta_text(MetricId id, Mean x, Arena *a) {
    const char *unit = is_ratio(id) ? "%" : "points";
    if (!isfinite(x.half)) return arena_printf(a, "%+.1f %s", 100 * x.mean, unit);
    return arena_printf(a, "%+.1f +- %.1f %s", 100 * x.mean, 100 * x.half, unit);
}

static const char *value_text(MetricId id, double v, Arena *a) {
    const Metric *m = &metrics[id];
    return arena_printf(a, "%.*f %s", m->decimals, v / m->scale, m->unit != NULL ? m->unit : "");
}

const char *report_verdict(const Comparison *c, const ComparisonCell *cell, Arena *a) {
    const ComparisonEntry *ours = comparison_subject(c, cell);
    const char            *text = "";
    for (uint32_t h = 0; metric_headline(c->tier, h) != METRICS; h++) {
        MetricId               id = metric_headline(c->tier, h);
        const ComparisonEntry *base = comparison_baseline(c, cell, id);
        if (ours == NULL || base == NULL || metric_delta_of(id) == METRICS) return "";
        Mean x = is_ratio(id) ? comparison_ratio(c, ours, base, id)
                              : comparison_difference(c, ours, base, id);
        if (is_ratio(id)) x.mean -= 1;
        text = arena_printf(a, "%s%s %s %s against %s", text, h > 0 ? ";" : "", metrics[id].head,
                            delta_text(id, x, a), base->policy);
    }
    return arena_printf(a, "%s against the best baseline:%s.", c->subject, text);
}

static const char *gain_text(const Comparison *c, MetricId id, Arena *a) {
    const ComparisonEntry *of = NULL;
    Change                 best = {.gain = NAN};
    for (uint32_t i = 0; i < c->cells[0].n_entries; i++) {
        const ComparisonEntry *e = &c->cells[0].entries[i];
        Change                 x;
        if (e->paper == NULL || e->rank > c->fair_rank) continue;
        if (!change_against(c, e->policy, id, &x) || !isfinite(x.gain)) continue;
        if (of != NULL && x.gain <= best.gain) continue;
        of = e;
        best = x;
    }
    if (of == NULL) return "";
    return arena_printf(
        a, " Largest gain over a published policy: %+.0f %% over %s, from %s to %s, in %s.",
        100 * best.gain, of->policy, value_text(id, best.gain_theirs, a),
        value_text(id, best.gain_ours, a), best.gain_at->title);
}

typedef const ComparisonEntry *(*Pick)(const Comparison *c, const ComparisonCell *cell,
                                       MetricId id);

static const ComparisonEntry *pick_part(const Comparison *c, const ComparisonCell *cell,
                                        MetricId id) {
    (void)id;
    return comparison_part(c, cell);
}

// Mean over the cells of an entry that every cell has; NaN otherwise.
static double mean_of(const Comparison *c, MetricId id, Pick pick) {
    double sum = 0;
    for (uint32_t i = 0; i < c->n_cells; i++) {
        const ComparisonEntry *e = pick(c, &c->cells[i], id);
        sum += e != NULL ? comparison_mean(c, &c->cells[i], e, id).mean / c->n_cells : NAN;
    }
    return sum;
}

static const char *others_text(const Comparison *c, MetricId id, Arena *a) {
    const ComparisonEntry *part = comparison_part(c, &c->cells[0]);
    double      rule = mean_of(c, id, pick_part), bound = mean_of(c, id, comparison_bound);
    const char *text = "";
    if (isfinite(rule) && !is_ratio(id))
        text = arena_printf(a, " Its rule without the network, %s, has %s.", part->policy,
                            value_text(id, rule, a));
    if (isfinite(bound) && !is_ratio(id))
        text = arena_printf(a, "%s The oracle, which sees the future, has %s.", text,
                            value_text(id, bound, a));
    return text;
}

const char *report_summary(const Comparison *c, MetricId id, Arena *a) {
    Change x;
    if (metric_delta_of(id) == METRICS || !change_against(c, NULL, id, &x)) return "";
    Mean overall = is_ratio(id) ? (Mean){.mean = x.mean, .half = NAN} : x.by_seed;
    return arena_printf(
        a,
        "%s against the best baseline of each cell: %s %s in the mean of %u cells (%s against %s); "
        "ahead in %u, even within the interval in %u, behind in %u. Weakest cell: %s, in "
        "%s.%s%s",
        c->subject, metrics[id].head, delta_text(id, overall, a), x.cells,
        value_text(id, x.ours, a), value_text(id, x.theirs, a), x.ahead, x.even, x.behind,
        delta_text(id, x.worst, a), x.worst_at->title, gain_text(c, id, a), others_text(c, id, a));
}

static bool same_reason(const ComparisonEntry *a, const ComparisonEntry *b) {
    return b->missing != NULL && strcmp(a->missing, b->missing) == 0;
}

// Policies with one reason stand together.
const char *report_missing(const ComparisonCell *cell, Arena *a) {
    const char *text = "";
    for (uint32_t i = 0; i < cell->n_entries; i++) {
        const ComparisonEntry *e = &cell->entries[i];
        uint32_t               first = 0;
        if (e->missing == NULL) continue;
        while (!same_reason(e, &cell->entries[first])) first++;
        if (first < i) continue;
        text = arena_printf(a, "%s%s", text, text[0] != '\0' ? "; " : "without ");
        for (uint32_t k = i; k < cell->n_entries; k++)
            if (same_reason(e, &cell->entries[k]))
                text = arena_printf(a, "%s%s%s", text, k > i ? ", " : "", cell->entries[k].policy);
        text = arena_printf(a, "%s: %s", text, e->missing);
    }
    return text;
}

static bool is_known(const Comparison *c, MetricId id) {
    for (uint32_t i = 0; i < c->n_cells; i++)
        for (uint32_t k = 0; k < c->cells[i].n_entries; k++)
            if (c->cells[i].entries[k].missing == NULL &&
                isfinite(comparison_mean(c, &c->cells[i], &c->cells[i].entries[k], id).mean))
                return true;
    return false;
}

const char *report_legend(const Comparison *c, Arena *a) {
    const char *text = arena_printf(a, "Means over %u seeds from %llu on, with 95 %% intervals.",
                                    c->seeds, (unsigned long long)c->first_seed);
    for (MetricId id = 0; id < METRICS; id++)
        if (metric_has(c->tier, id) && metrics[id].about != NULL && is_known(c, id))
            text = arena_printf(a, "%s %s: %s.", text, metrics[id].head, metrics[id].about);
    if (c->n_cells > 0 && c->cells[0].n_entries > 0 && c->cells[0].entries[0].knows != NULL)
        text = arena_printf(a,
                            "%s knows: job durations exactly (oracle), an estimate (predicted) or "
                            "nothing (blind).",
                            text);
    if (c->tier == TIER_CLUSTER && !c->timed)
        text = arena_printf(
            a, "%s Decisions were not timed, so that the same seeds give the same bytes.", text);
    return text;
}

static void print_line(const char *text, FILE *f) {
    if (text[0] != '\0') (void)fprintf(f, "%s\n", text);
}

static Err print_cell(const Comparison *c, const ComparisonCell *cell, Arena *a, FILE *f) {
    Table t;
    (void)fprintf(f, "%s\n", cell->title);
    report_cell_table(c, cell, a, &t);
    TRY(table_print(&t, f));
    print_line(report_missing(cell, a), f);
    print_line(report_verdict(c, cell, a), f);
    return ERR_OK;
}

static Err print_summary(const Comparison *c, Arena *a, FILE *f) {
    Table t;
    if (c->n_sweep > 0) {
        report_sweep_table(c, a, &t);
        (void)fprintf(f, "\n%s\n", c->sweep_about);
        TRY(table_print(&t, f));
    }
    if (report_cells_table(c, a, &t)) {
        (void)fprintf(f, "\n%s against the best baseline of each cell\n", c->subject);
        TRY(table_print(&t, f));
    }
    if (report_policies_table(c, a, &t)) {
        (void)fprintf(f, "\n%s against each policy, over all cells\n", c->subject);
        TRY(table_print(&t, f));
    }
    for (uint32_t h = 0; c->n_cells > 1 && metric_headline(c->tier, h) != METRICS; h++) {
        const char *text = report_summary(c, metric_headline(c->tier, h), a);
        if (text[0] != '\0') (void)fprintf(f, "\n%s\n", text);
    }
    return ERR_OK;
}

Err report_print(const Comparison *c, Arena *scratch, FILE *f) {
    size_t mark = scratch->used;
    Err    e = ERR_OK;
    for (uint32_t i = 0; e == ERR_OK && i < c->n_cells; i++) {
        if (i > 0) (void)fputc('\n', f);
        e = print_cell(c, &c->cells[i], scratch, f);
    }
    if (e == ERR_OK) e = print_summary(c, scratch, f);
    if (c->about != NULL) (void)fprintf(f, "\n%s\n", c->about);
    (void)fprintf(f, "\n%s\n", report_legend(c, scratch));
    arena_rewind(scratch, mark);
    return e;
}
