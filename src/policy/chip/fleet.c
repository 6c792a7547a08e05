#include "policy/chip/fleet.h"

#include <math.h>

static const FleetPick nothing = {CHIP_NONE, INFINITY, INFINITY};

static void find_next(Fleet *f, uint32_t kind) {
    uint32_t first = f->first[kind], end = first + f->view->setup->kinds[kind].n_units;
    f->next[kind] = first < end ? first : CHIP_NONE;
    for (uint32_t u = first + 1; u < end; u++)
        if (f->at[u] < f->at[f->next[kind]]) f->next[kind] = u;
}

void fleet_open(Fleet *f, const ChipView *v) {
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

void fleet_heed(Fleet *f) {
    f->demand = f->view->demand;
    f->bytes_ns = f->view->setup->bytes_ns;
}

FleetPick fleet_of_kind(const Fleet *f, const ChipTask *t, uint32_t kind) {
    const ChipCost *c = chip_cost(fleet_model(f, t), t->layer, kind);
    if (f->next[kind] == CHIP_NONE || isinf(c->ns)) return nothing;
    float slower = (f->demand + c->bytes_ns) / f->bytes_ns;
    return (FleetPick){f->next[kind], f->at[f->next[kind]], slower > 1 ? c->ns * slower : c->ns};
}

FleetPick fleet_first(const Fleet *f, const ChipTask *t) {
    FleetPick best = nothing;
    for (uint32_t k = 0; k < f->view->setup->n_kinds; k++) {
        FleetPick p = fleet_of_kind(f, t, k);
        if (p.wait < best.wait || (p.wait == best.wait && p.ns < best.ns)) best = p;
    }
    return best;
}

FleetPick fleet_fastest(const Fleet *f, const ChipTask *t) {
    FleetPick best = nothing;
    for (uint32_t k = 0; k < f->view->setup->n_kinds; k++) {
        FleetPick p = fleet_of_kind(f, t, k);
        if (p.ns < best.ns) best = p;
    }
    return best;
}

FleetPick fleet_soonest(const Fleet *f, const ChipTask *t, float patience) {
    FleetPick free = nothing, busy = nothing;
    for (uint32_t k = 0; k < f->view->setup->n_kinds; k++) {
        FleetPick p = fleet_of_kind(f, t, k), *best = p.wait > 0 ? &busy : &free;
        if (p.wait + p.ns < best->wait + best->ns) *best = p;
    }
    if (free.unit == CHIP_NONE) return busy;
    return busy.wait + busy.ns < patience * free.ns ? busy : free;
}

void fleet_until(Fleet *f, uint32_t unit, float at) {
    if (f->at[unit] == 0) f->n_free--;
    f->at[unit] = at;
    find_next(f, f->view->setup->kind_of[unit]);
}

void fleet_claim(Fleet *f, const ChipTask *t, FleetPick p) {
    uint32_t kind = f->view->setup->kind_of[p.unit];
    if (p.wait == 0) f->demand += chip_cost(fleet_model(f, t), t->layer, kind)->bytes_ns;
    fleet_until(f, p.unit, f->at[p.unit] + fmaxf(p.ns, 1.0F));
}
