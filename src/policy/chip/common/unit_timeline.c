#include "policy/chip/common/unit_timeline.h"

#include <math.h>

static const UnitPick none = {CHIP_NONE, INFINITY, INFINITY};

static void find_next(UnitTimeline *t, uint32_t kind) {
    uint32_t first = t->first[kind], end = first + t->view->setup->kinds[kind].n_units;
    t->next[kind] = first < end ? first : CHIP_NONE;
    for (uint32_t u = first + 1; u < end; u++)
        if (t->at[u] < t->at[t->next[kind]]) t->next[kind] = u;
}

void unit_timeline_open(UnitTimeline *t, const ChipView *v) {
    const ChipSetup *s = v->setup;
    t->view = v;
    t->n_free = v->n_free;
    t->demand = 0;
    t->bytes_ns = INFINITY;
    for (uint32_t u = 0; u < s->n_units; u++) {
        TimeNs left = v->units[u].free_at - v->now;
        t->at[u] = v->units[u].task == CHIP_NONE ? 0.0F : left > 0 ? (float)left : 1.0F;
    }
    for (uint32_t k = 0, first = 0; k < s->n_kinds; k++) {
        t->first[k] = first;
        find_next(t, k);
        first += s->kinds[k].n_units;
    }
}

void unit_timeline_share_bandwidth(UnitTimeline *t) {
    t->demand = t->view->demand;
    t->bytes_ns = t->view->setup->bytes_ns;
}

UnitPick unit_timeline_of_kind(const UnitTimeline *t, const ChipTask *task, uint32_t kind) {
    const ChipCost *c = chip_cost(unit_timeline_model(t, task), task->layer, kind);
    if (t->next[kind] == CHIP_NONE || isinf(c->ns)) return none;
    float slower = (t->demand + c->bytes_ns) / t->bytes_ns;
    return (UnitPick){t->next[kind], t->at[t->next[kind]], slower > 1 ? c->ns * slower : c->ns};
}

UnitPick unit_timeline_first_free(const UnitTimeline *t, const ChipTask *task) {
    UnitPick best = none;
    for (uint32_t k = 0; k < t->view->setup->n_kinds; k++) {
        UnitPick p = unit_timeline_of_kind(t, task, k);
        if (p.wait < best.wait || (p.wait == best.wait && p.ns < best.ns)) best = p;
    }
    return best;
}

UnitPick unit_timeline_fastest(const UnitTimeline *t, const ChipTask *task) {
    UnitPick best = none;
    for (uint32_t k = 0; k < t->view->setup->n_kinds; k++) {
        UnitPick p = unit_timeline_of_kind(t, task, k);
        if (p.ns < best.ns) best = p;
    }
    return best;
}

UnitPick unit_timeline_first_to_end(const UnitTimeline *t, const ChipTask *task, float patience) {
    UnitPick free = none, busy = none;
    for (uint32_t k = 0; k < t->view->setup->n_kinds; k++) {
        UnitPick p = unit_timeline_of_kind(t, task, k), *best = p.wait > 0 ? &busy : &free;
        if (p.wait + p.ns < best->wait + best->ns) *best = p;
    }
    if (free.unit == CHIP_NONE) return busy;
    return busy.wait + busy.ns < patience * free.ns ? busy : free;
}

void unit_timeline_occupy(UnitTimeline *t, uint32_t unit, float until) {
    if (t->at[unit] == 0) t->n_free--;
    t->at[unit] = until;
    find_next(t, t->view->setup->kind_of[unit]);
}

void unit_timeline_reserve(UnitTimeline *t, const ChipTask *task, UnitPick p) {
    uint32_t kind = t->view->setup->kind_of[p.unit];
    if (p.wait == 0)
        t->demand += chip_cost(unit_timeline_model(t, task), task->layer, kind)->bytes_ns;
    unit_timeline_occupy(t, p.unit, t->at[p.unit] + fmaxf(p.ns, 1.0F));
}
