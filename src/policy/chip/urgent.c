#include "policy/chip/urgent.h"

static const double last = 1e18;  // more than any time: 30 years

static Urgent *carve_all(const ChipSetup *s, Carve *from) {
    Order   o;
    Urgent *u = carve(from, Urgent, 1);
    order_carve(&o, s->n_slots, from);
    if (u != NULL) u->order = o;
    return u;
}

size_t urgent_size(const ChipSetup *setup, const void *settings) {
    (void)settings;
    Carve c = {0};
    carve_all(setup, &c);
    return c.used;
}

void urgent_init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    (void)loaded;
    Carve   c = {.base = state};
    Urgent *u = carve_all(setup, &c);
    u->with = *(const UrgentSettings *)settings;
}

uint32_t urgent_decide(Urgent *u, UrgentKey *key, const ChipView *v, ChipAction *out,
                       uint32_t max) {
    uint32_t n = 0;
    order_clear(&u->order);
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        bool            lost = hope_lost(v, t, u->with.hopeless, u->with.ease);
        if (lost && u->with.hopeless == HOPE_DROP && n < max)
            out[n++] = (ChipAction){.verb = CHIP_DROP, .task = v->waiting[i]};
        else
            order_add(&u->order, key(u, v, t) + (lost ? last : 0), v->waiting[i]);
    }
    if (u->order.n == 0 || v->n_free == 0) return n;
    fleet_open(&u->fleet, v);
    Serve serve = {.rule = SERVE_SOONEST, .patience = u->with.patience};
    return n + serve_all(&serve, &u->order, &u->fleet, out + n, max - n);
}
