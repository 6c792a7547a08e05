#include <math.h>
#include <string.h>

#include "report/match.h"

#define MEAN(m, e, member)  match_mean(m, e, offsetof(MatchRun, member)).mean
#define COLUMNS(t, a, cols) table_init(t, a, cols, sizeof(cols) / sizeof *(cols))

static const Column cell_columns[] = {
    {.key = "policy", .head = "policy"},
    {.key = "role", .head = ""},
    {.key = "sla", .head = "in time", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "sla_half", .head = "+-", .scale = 0.01, .decimals = 1},
    {.key = "margin", .head = "margin", .unit = "pts", .scale = 0.01, .decimals = 1},
    {.key = "margin_half", .head = "+-", .scale = 0.01, .decimals = 1},
    {.key = "worst_sla", .head = "worst tenant", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "slowdown", .head = "slowdown", .decimals = 2},
    {.key = "energy_mj", .head = "energy", .unit = "mJ", .decimals = 0},
    {.key = "request_mj", .head = "a request", .unit = "mJ", .decimals = 2},
    {.key = "policy_share", .head = "policy", .unit = "%", .scale = 0.01, .decimals = 3},
    {.key = "bandwidth_use", .head = "memory", .unit = "%", .scale = 0.01, .decimals = 0},
    {.key = "unit_use", .head = "units", .unit = "%", .scale = 0.01, .decimals = 0},
    {.key = "decision_us", .head = "decision", .unit = "us", .decimals = 2},
    {.key = "measured_us", .head = "measured", .unit = "us", .decimals = 2},
};

static void real(Table *t, double v) {
    if (isfinite(v))
        table_real(t, v);
    else
        table_missing(t);
}

static const char *role(const Match *m, const MatchCell *c, const MatchEntry *e,
                        const MatchEntry *base) {
    if (e->clairvoyant) return "sees the future";
    if (e == match_part(m, c)) return "champion's rule";
    if (e == base) return "best baseline";
    return strcmp(e->policy, m->champion) == 0 ? "champion" : "";
}

static void cell_row(Table *t, const Match *m, const MatchCell *c, const MatchEntry *e,
                     const MatchEntry *base) {
    Mean sla = match_mean(m, e, offsetof(MatchRun, sla));
    Mean margin = base != NULL && base != e ? match_margin(m, e, base) : (Mean){NAN, NAN, NAN, 0};
    table_row(t);
    table_text(t, e->policy);
    table_text(t, role(m, c, e, base));
    real(t, sla.mean);
    real(t, sla.half);
    real(t, margin.mean);
    real(t, margin.half);
    real(t, e->worst_tenant != NULL ? e->worst_sla : NAN);
    real(t, MEAN(m, e, slowdown));
    real(t, MEAN(m, e, energy_mj));
    real(t, MEAN(m, e, request_mj));
    real(t, MEAN(m, e, policy_share));
    real(t, MEAN(m, e, bandwidth_use));
    real(t, MEAN(m, e, unit_use));
    real(t, MEAN(m, e, decision_us));
    if (m->measured) real(t, MEAN(m, e, measured_us));
}

void match_cell_table(const Match *m, const MatchCell *c, Arena *a, Table *t) {
    const MatchEntry *base = match_baseline(m, c);
    uint32_t          n = sizeof cell_columns / sizeof *cell_columns;
    table_init(t, a, cell_columns, m->measured ? n : n - 1);
    for (uint32_t i = 0; i < c->n_entries; i++) cell_row(t, m, c, &c->entries[i], base);
}

static const Column verdict_columns[] = {
    {.key = "chip", .head = "chip"},
    {.key = "mix", .head = "mix"},
    {.key = "load", .head = "load", .decimals = 2},
    {.key = "bandwidth", .head = "bandwidth", .unit = "B/cycle", .decimals = 1},
    {.key = "sla", .head = "champion", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "baseline", .head = "best baseline"},
    {.key = "baseline_sla", .head = "its rate", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "margin", .head = "margin", .unit = "pts", .scale = 0.01, .decimals = 1},
    {.key = "margin_half", .head = "+-", .scale = 0.01, .decimals = 1},
    {.key = "bound_sla", .head = "oracle", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "distance", .head = "below it", .unit = "pts", .scale = 0.01, .decimals = 1},
};

static void verdict_numbers(Table *t, const char *base, double ours, double theirs, Mean margin,
                            double bound) {
    real(t, ours);
    table_text(t, base);
    real(t, theirs);
    real(t, margin.mean);
    real(t, margin.half);
    real(t, bound);
    real(t, bound - ours);
}

void match_verdict_table(const Match *m, const MatchVerdict *v, Arena *a, Table *t) {
    COLUMNS(t, a, verdict_columns);
    for (uint32_t i = 0; i < m->n_cells; i++) {
        const MatchCell  *c = &m->cells[i];
        const MatchEntry *ours = match_find(c, m->champion), *base = match_baseline(m, c),
                         *bound = match_bound(m, c);
        table_row(t);
        table_text(t, c->chip);
        table_text(t, c->mix);
        table_real(t, c->load);
        table_real(t, c->bandwidth);
        verdict_numbers(t, base->policy, MEAN(m, ours, sla), MEAN(m, base, sla),
                        match_margin(m, ours, base), bound != NULL ? MEAN(m, bound, sla) : NAN);
    }
    table_total(t);
    table_text(t, "mean");
    for (uint32_t i = 0; i < 3; i++) table_missing(t);
    verdict_numbers(t, NULL, v->sla, v->baseline_sla, v->margin, v->bound_sla);
}

static const Column rival_columns[] = {
    {.key = "policy", .head = "against"},
    {.key = "paper", .head = "of"},
    {.key = "sla", .head = "its mean", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "margin", .head = "margin", .unit = "pts", .scale = 0.01, .decimals = 1},
    {.key = "margin_half", .head = "+-", .scale = 0.01, .decimals = 1},
    {.key = "gain", .head = "largest gain", .unit = "%", .scale = 0.01, .decimals = 0},
    {.key = "theirs", .head = "from", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "ours", .head = "to", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "at", .head = "in the cell"},
};

void match_rival_table(const MatchVerdict *v, Arena *a, Table *t) {
    COLUMNS(t, a, rival_columns);
    for (uint32_t i = 0; i < v->n_rivals; i++) {
        const MatchRival *r = &v->rivals[i];
        table_row(t);
        table_textf(t, "%s%s", r->policy, r->clairvoyant ? " (sees the future)" : "");
        table_text(t, r->paper);
        real(t, r->sla);
        real(t, r->margin.mean);
        real(t, r->margin.half);
        real(t, r->gain);
        real(t, r->theirs);
        real(t, r->our);
        table_text(t, r->at != NULL ? match_title(r->at, a) : NULL);
    }
}

static const Column sweep_columns[] = {
    {.key = "hidden", .head = "hidden size"},
    {.key = "period_us", .head = "T_s", .unit = "ms", .scale = 1000, .decimals = 2},
    {.key = "share", .head = "policy's energy", .unit = "%", .scale = 0.01, .decimals = 3},
    {.key = "share_half", .head = "+-", .scale = 0.01, .decimals = 3},
    {.key = "decision_us", .head = "decision", .unit = "us", .decimals = 2},
    {.key = "sla", .head = "in time", .unit = "%", .scale = 0.01, .decimals = 1},
};

void match_sweep_table(const Match *m, Arena *a, Table *t) {
    COLUMNS(t, a, sweep_columns);
    for (uint32_t i = 0; i < m->n_sweep; i++) {
        const MatchPoint *p = &m->sweep[i];
        table_row(t);
        table_int(t, p->hidden);
        table_real(t, p->period_us);
        real(t, p->share.mean);
        real(t, p->share.half);
        real(t, p->decision_us.mean);
        real(t, p->sla.mean);
    }
}
