#include "policy/chip/common/unit_timeline.h"

#include <math.h>

static const UnitPick nothing = {CHIP_NONE, INFINITY, INFINITY};

static void find_next(UnitTimeline *f, uint32_t kind) {
    uint32_t first = f->first[kind], end = first + f->view->setup->kinds[kind].n_units;
    f->next[kind] = first < end ? first : CHIP_NONE;
    for (uint32_t u = first + 1; u < end; u++)
        if (f->at[u] < f->at[f->next[kind]]) f->next[kind] = u;
}

void unit_timeline_open(UnitTimeline *f, const ChipView *v) {
    const ChipSetup *s = v->setup;
    f->view = v;
    f->n_free = v->n_free;
    f->demand = 0;
    f->bytes_ns = INFINITY;
    for (uint32_t u = 0; u < s->n_units; u++) {
        TimeNs left = v->units[u].free_at - v->now;
        f->at[u] = v->units[u].task == CHIP_NONE ? 0.0F : left > 0 ? (float)left : 1.0F;
    }
    for (uint32_t k = 0, first = 0; k < s->n_kinds; k++) {
        f->first[k] = first;
        find_next(f, k);
        first += s->kinds[k].n_units;
    }
}

void unit_timeline_share_bandwidth(UnitTimeline *f) {
    f->demand = f->view->demand;
    f->bytes_ns = f->view->setup->bytes_ns;
}

UnitPick unit_timeline_of_kind(const UnitTimeline *f, const ChipTask *t, uint32_t kind) {
    const ChipCost *c = chip_cost(unit_timeline_model(f, t), t->layer, kind);
    if (f->next[kind] == CHIP_NONE || isinf(c->ns)) return nothing;
    float slower = (f->demand + c->bytes_ns) / f->bytes_ns;
    return (UnitPick){f->next[kind], f->at[f->next[kind]], slower > 1 ? c->ns * slower : c->ns};
}

UnitPick unit_timeline_first_free(const UnitTimeline *f, const ChipTask *t) {
    UnitPick best = nothing;
    for (uint32_t k = 0; k < f->view->setup->n_kinds; k++) {
        UnitPick p = unit_timeline_of_kind(f, t, k);
        if (p.wait < best.wait || (p.wait == best.wait && p.ns < best.ns)) best = p;
    }
    return best;
}

UnitPick unit_timeline_fastest(const UnitTimeline *f, const ChipTask *t) {
    UnitPick best = nothing;
    for (uint32_t k = 0; k < f->view->setup->n_kinds; k++) {
        UnitPick p = unit_timeline_of_kind(f, t, k);
        if (p.ns < best.ns) best = p;
    }
    return best;
}

UnitPick unit_timeline_first_to_end(const UnitTimeline *f, const ChipTask *t, float patience) {
    UnitPick free = nothing, busy = nothing;
    for (uint32_t k = 0; k < f->view->setup->n_kinds; k++) {
        UnitPick p = unit_timeline_of_kind(f, t, k), *best = p.wait > 0 ? &busy : &free;
        if (p.wait + p.ns < best->wait + best->ns) *best = p;
    }
    if (free.unit == CHIP_NONE) return busy;
    return busy.wait + busy.ns < patience * free.ns ? busy : free;
}

void unit_timeline_occupy(UnitTimeline *f, uint32_t unit, float at) {
    if (f->at[unit] == 0) f->n_free--;
    f->at[unit] = at;
    find_next(f, f->view->setup->kind_of[unit]);
}

void unit_timeline_reserve(UnitTimeline *f, const ChipTask *t, UnitPick p) {
    uint32_t kind = f->view->setup->kind_of[p.unit];
    if (p.wait == 0) f->demand += chip_cost(unit_timeline_model(f, t), t->layer, kind)->bytes_ns;
    unit_timeline_occupy(f, p.unit, f->at[p.unit] + fmaxf(p.ns, 1.0F));
}
