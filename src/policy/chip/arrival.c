#include "policy/chip/arrival.h"

static Arrival *carve_all(const ChipSetup *s, Carve *from) {
    Order    o;
    Arrival *a = carve(from, Arrival, 1);
    order_carve(&o, s->n_slots, from);
    if (a != NULL) a->order = o;
    return a;
}

size_t arrival_size(const ChipSetup *setup, const void *settings) {
    (void)settings;
    Carve c = {0};
    carve_all(setup, &c);
    return c.used;
}

void arrival_init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    (void)loaded;
    Carve    c = {.base = state};
    Arrival *a = carve_all(setup, &c);
    a->with = *(const ArrivalSettings *)settings;
}

uint32_t arrival_decide(Arrival *a, ServeRule rule, const ChipView *v, ChipAction *out,
                        uint32_t max) {
    if (v->n_free == 0 || v->n_waiting == 0) return 0;
    order_clear(&a->order);
    for (uint32_t i = 0; i < v->n_waiting; i++) order_add(&a->order, 0.0, v->waiting[i]);
    fleet_open(&a->fleet, v);
    Serve serve = {.rule = rule, .strict = !a->with.overtake};
    return serve_all(&serve, &a->order, &a->fleet, out, max);
}
