#include <string.h>

#include "eval/chip_compare.h"

enum { SEEDS = 5 };  // shares of energy hardly vary between seeds

static const uint32_t sizes[] = {16, 32, 64, 128};
static const double   periods_us[] = {100, 250, 500, 1000, 2000};

enum { SIZES = sizeof sizes / sizeof *sizes, PERIODS = sizeof periods_us / sizeof *periods_us };

static bool has_network(const PolicyChoice *c) {
    const ChipPolicy *p = c->policy;
    for (uint32_t i = 0; p->learned && i < p->n_rows; i++)
        if (strcmp(p->rows[i].key, "hidden") == 0) return true;
    return false;
}

const PolicyChoice *chip_sweep_policy(const PolicyChoices *c) {
    for (uint32_t i = 0; i < c->n; i++)
        if (has_network(&c->at[i])) return &c->at[i];
    return NULL;
}

static uint32_t seeds_of(const ChipCompareParams *p) {
    return p->common.seeds < SEEDS ? p->common.seeds : SEEDS;
}

uint64_t chip_sweep_runs(const ChipCompareParams *p) { return SIZES * PERIODS * seeds_of(p); }

static Err with_size(const PolicyChoice *c, uint32_t hidden, Arena *a, PolicyChoices *out) {
    *out = (PolicyChoices){.at = {*c}, .n = 1};
    PolicyChoice *copy = &out->at[0];
    copy->settings = arena_alloc(a, 1, c->info.settings_size, 16);
    memcpy(copy->settings, c->settings, c->info.settings_size);
    Settings s = policy_choice_settings(copy, a);
    return settings_set(&s, arena_printf(a, "hidden=%u", hidden));
}

static Err measure(const ChipCompareParams *p, const PolicyChoices *c, Arena *a, SweepPoint *out) {
    Comparison one = {0};
    TRY(chip_compare(p, c, a, &one));
    const ComparisonCell  *cell = &one.cells[0];
    const ComparisonEntry *e = &cell->entries[0];
    out->sla = comparison_mean(&one, cell, e, METRIC_SLA);
    out->share = comparison_mean(&one, cell, e, METRIC_POLICY_ENERGY_SHARE);
    out->decision_us = comparison_mean(&one, cell, e, METRIC_DECISION_US);
    return ERR_OK;
}

static const char *about(const ChipCompareParams *p, const PolicyChoice *c, Arena *a) {
    return arena_printf(
        a,
        "Share of the energy that %s itself takes, by the hidden size that is charged and the "
        "period T_s: %s, %s, load %.4g, %u seeds.",
        c->label, p->chips[0], p->mixes[0], p->loads[0], p->common.seeds);
}

Err chip_sweep(const ChipCompareParams *p, const PolicyChoice *c, Arena *a, Comparison *out) {
    const double      own = 0;
    ChipCompareParams one = *p;
    SweepPoint       *points = arena_new(a, SweepPoint, SIZES * PERIODS);
    one.mixes = &p->mixes[p->n_mixes - 1];
    one.bandwidths = &own;
    one.n_chips = one.n_mixes = one.n_loads = one.n_bandwidths = 1;
    one.common.seeds = seeds_of(p);
    one.common.timed = false;
    one.common.subject = "";
    for (uint32_t i = 0; i < SIZES * PERIODS; i++) {
        PolicyChoices with;
        points[i] =
            (SweepPoint){.hidden = sizes[i / PERIODS], .period_us = periods_us[i % PERIODS]};
        one.scenario.period_us = points[i].period_us;
        TRY(with_size(c, points[i].hidden, a, &with));
        TRY(measure(&one, &with, a, &points[i]));
    }
    out->sweep = points;
    out->n_sweep = SIZES * PERIODS;
    out->sweep_about = about(&one, c, a);
    return ERR_OK;
}
