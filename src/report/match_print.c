#include <math.h>

#include "report/match.h"

char *match_title(const MatchCell *c, Arena *a) {
    return arena_printf(a, "%s, %s, load %.4g, %.4g B/cycle", c->chip, c->mix, c->load,
                        c->bandwidth);
}

char *match_legend(const Match *m, Arena *a) {
    return arena_printf(
        a,
        "in time: share of the requests answered by their deadlines, mean and 95 %% interval over "
        "%u traces of %u requests. margin: more than the best online baseline of the cell, trace "
        "by trace. worst tenant: the lowest share of a tenant. slowdown: latency over the best "
        "case alone. policy: the policy's own share of the energy. decision: what one is charged "
        "on the package's controller%s. A load of 1 is what the package could just answer with "
        "perfect packing at its own bandwidth.",
        m->traces, m->requests, m->measured ? "; measured: what one took on this machine" : "");
}

static char *bound_words(const MatchVerdict *v, Arena *a) {
    if (!isfinite(v->bound_sla)) return arena_str(a, "");
    return arena_printf(a, " The oracle, which sees the future, has %.1f %%.", 100 * v->bound_sla);
}

static char *part_words(const MatchVerdict *v, Arena *a) {
    if (v->part == NULL) return arena_str(a, "");
    return arena_printf(a, " Its rule without the network, %s, has %.1f %%.", v->part,
                        100 * v->part_sla);
}

static char *gain_words(const MatchVerdict *v, Arena *a) {
    const MatchRival *best = NULL;
    for (uint32_t i = 0; i < v->n_rivals; i++) {
        const MatchRival *r = &v->rivals[i];
        if (r->paper == NULL || r->clairvoyant || !isfinite(r->gain)) continue;
        if (best == NULL || r->gain > best->gain) best = r;
    }
    if (best == NULL) return arena_str(a, "");
    return arena_printf(
        a,
        " Largest gain over a published policy: %+.0f %% over %s, from %.1f %% to %.1f %%, in %s.",
        100 * best->gain, best->policy, 100 * best->theirs, 100 * best->our,
        match_title(best->at, a));
}

static char *plus_minus(Mean x, Arena *a) {
    if (!isfinite(x.half)) return arena_printf(a, "%+.1f points", 100 * x.mean);
    return arena_printf(a, "%+.1f +- %.1f points", 100 * x.mean, 100 * x.half);
}

char *match_words(const Match *m, const MatchVerdict *v, Arena *a) {
    return arena_printf(
        a,
        "%s against the best online baseline of each cell: %s in the mean of %u cells (%.1f %% "
        "against %.1f %%); ahead in %u, even within the interval in %u, behind in %u. Smallest "
        "margin: %s, in %s.%s%s%s",
        m->champion, plus_minus(v->margin, a), m->n_cells, 100 * v->sla, 100 * v->baseline_sla,
        v->ahead, v->even, v->behind, plus_minus(v->worst_margin, a), match_title(v->worst, a),
        gain_words(v, a), part_words(v, a), bound_words(v, a));
}

static Err print_verdict(const Match *m, Arena *a, FILE *f) {
    MatchVerdict v;
    Table        t;
    if (!match_judge(m, a, &v)) return ERR_OK;
    (void)fputc('\n', f);
    match_verdict_table(m, &v, a, &t);
    TRY(table_print(&t, f));
    (void)fputc('\n', f);
    match_rival_table(&v, a, &t);
    TRY(table_print(&t, f));
    (void)fprintf(f, "\n%s\n", match_words(m, &v, a));
    return ERR_OK;
}

static Err print_sweep(const Match *m, Arena *a, FILE *f) {
    Table t;
    if (m->n_sweep == 0) return ERR_OK;
    match_sweep_table(m, a, &t);
    (void)fprintf(f, "\n%s\n", m->sweep_about);
    return table_print(&t, f);
}

Err match_print(const Match *m, Arena *scratch, FILE *f) {
    size_t mark = scratch->used;
    Err    e = ERR_OK;
    for (uint32_t i = 0; e == ERR_OK && i < m->n_cells; i++) {
        Table t;
        (void)fprintf(f, "%s%s\n", i > 0 ? "\n" : "", match_title(&m->cells[i], scratch));
        match_cell_table(m, &m->cells[i], scratch, &t);
        e = table_print(&t, f);
    }
    if (e == ERR_OK) e = print_sweep(m, scratch, f);
    if (e == ERR_OK) e = print_verdict(m, scratch, f);
    (void)fprintf(f, "\n%s\n", match_legend(m, scratch));
    arena_rewind(scratch, mark);
    return e;
}
