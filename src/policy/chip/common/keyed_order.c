#include "policy/chip/common/keyed_order.h"

static const double last = 1e18;  // more than any time: 30 years

static KeyedOrder *carve_all(const ChipSetup *s, Carve *from) {
    TaskQueue   o;
    KeyedOrder *u = carve(from, KeyedOrder, 1);
    task_queue_carve(&o, s->n_slots, from);
    if (u != NULL) u->order = o;
    return u;
}

size_t keyed_order_size(const ChipSetup *setup, const void *settings) {
    (void)settings;
    Carve c = {0};
    carve_all(setup, &c);
    return c.used;
}

void keyed_order_init(void *state, const ChipSetup *setup, const void *settings,
                      const void *loaded) {
    (void)loaded;
    Carve       c = {.base = state};
    KeyedOrder *u = carve_all(setup, &c);
    u->cfg = *(const KeyedOrderSettings *)settings;
}

uint32_t keyed_order_decide(KeyedOrder *u, KeyedOrderKey *key, const ChipView *v, ChipAction *out,
                            uint32_t max) {
    uint32_t n = 0;
    task_queue_clear(&u->order);
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        bool            lost = infeasible(v, t, u->cfg.late_action, u->cfg.safety_factor);
        if (lost && u->cfg.late_action == LATE_DROP && n < max)
            out[n++] = (ChipAction){.verb = CHIP_DROP, .task = v->waiting[i]};
        else
            task_queue_add(&u->order, key(u, v, t) + (lost ? last : 0), v->waiting[i]);
    }
    if (u->order.n == 0 || v->n_free == 0) return n;
    unit_timeline_open(&u->timeline, v);
    Dispatch dispatch = {.rule = CHOOSE_FIRST_TO_END, .patience = u->cfg.patience};
    return n + dispatch_all(&dispatch, &u->order, &u->timeline, out + n, max - n);
}
