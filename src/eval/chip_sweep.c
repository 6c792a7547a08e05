#include "eval/chip_sweep.h"

#include <string.h>

enum { TRACES = 5 };  // shares of energy hardly vary between traces

static const uint32_t sizes[] = {16, 32, 64, 128};
static const double   periods_us[] = {100, 250, 500, 1000, 2000};

enum { SIZES = sizeof sizes / sizeof *sizes, PERIODS = sizeof periods_us / sizeof *periods_us };

bool chip_sweep_fits(const ChipChoice *c) {
    for (uint32_t i = 0; c->policy->learned && i < c->policy->n_rows; i++)
        if (strcmp(c->policy->rows[i].key, "hidden") == 0) return true;
    return false;
}

static uint32_t traces_of(const ChipCompareParams *r) {
    return r->traces < TRACES ? r->traces : TRACES;
}

uint32_t chip_sweep_steps(const ChipCompareParams *r) { return SIZES * PERIODS * traces_of(r); }

static Err with_size(const ChipChoice *c, uint32_t hidden, Arena *a, ChipChoices *out) {
    *out = (ChipChoices){.at = {*c}, .n = 1};
    ChipChoice *copy = &out->at[0];
    copy->settings = arena_alloc(a, 1, c->policy->settings_size, 16);
    memcpy(copy->settings, c->settings, c->policy->settings_size);
    Settings s = chip_choice_settings(copy, a);
    return settings_set(&s, arena_printf(a, "hidden=%u", hidden));
}

static Err measure(const ChipCompareParams *r, const ChipChoices *c, Progress *p, Arena *a,
                   MatchPoint *out) {
    Match m = {.champion = ""};
    TRY(chip_compare_run(r, c, p, a, &m));
    const MatchEntry *e = &m.cells[0].entries[0];
    out->sla = match_mean(&m, e, offsetof(MatchRun, sla));
    out->share = match_mean(&m, e, offsetof(MatchRun, policy_share));
    out->decision_us = match_mean(&m, e, offsetof(MatchRun, decision_us));
    return ERR_OK;
}

static const char *about(const ChipCompareParams *r, const ChipChoice *c, Arena *a) {
    return arena_printf(
        a,
        "What %s itself takes of the energy, by the hidden size that is charged and the period "
        "T_s: %s, %s, load %.4g, %u traces.",
        c->policy->name, r->chips[0], r->mixes[0], r->loads[0], r->traces);
}

Err chip_sweep_run(const ChipCompareParams *r, const ChipChoice *c, Progress *p, Arena *a,
                   Match *out) {
    const double      own = 0;
    ChipCompareParams one = *r;
    MatchPoint       *points = arena_new(a, MatchPoint, SIZES * PERIODS);
    ChipChoices       with;
    one.mixes = &r->mixes[r->n_mixes - 1];
    one.bandwidths = &own;
    one.n_chips = one.n_mixes = one.n_loads = one.n_bandwidths = 1;
    one.traces = traces_of(r);
    one.measure = false;
    for (uint32_t i = 0; i < SIZES * PERIODS; i++) {
        points[i] =
            (MatchPoint){.hidden = sizes[i / PERIODS], .period_us = periods_us[i % PERIODS]};
        one.stage.period_us = points[i].period_us;
        TRY(with_size(c, points[i].hidden, a, &with));
        TRY(measure(&one, &with, p, a, &points[i]));
    }
    out->sweep = points;
    out->n_sweep = SIZES * PERIODS;
    out->sweep_about = about(&one, c, a);
    return ERR_OK;
}
