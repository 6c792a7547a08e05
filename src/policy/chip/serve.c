#include "policy/chip/serve.h"

static FleetPick pick(const Serve *s, const Fleet *f, const ChipTask *t) {
    if (s->rule == SERVE_FIRST) return fleet_first(f, t);
    if (s->rule == SERVE_FASTEST) return fleet_fastest(f, t);
    return fleet_soonest(f, t, (float)s->patience);
}

uint32_t serve_all(const Serve *s, Order *o, Fleet *f, ChipAction *out, uint32_t max) {
    uint32_t n = 0;
    while (o->n > 0 && f->n_free > 0 && n < max) {
        uint32_t        task = order_pop(o).task;
        const ChipTask *t = &f->view->tasks[task];
        FleetPick       p = pick(s, f, t);
        if (p.unit == CHIP_NONE) continue;
        if (p.wait == 0)
            out[n++] = (ChipAction){.verb = CHIP_START, .task = task, .unit = p.unit};
        else if (s->strict)
            break;
        fleet_claim(f, t, p);
    }
    return n;
}
