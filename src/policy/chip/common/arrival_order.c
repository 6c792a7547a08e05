#include "policy/chip/common/arrival_order.h"

static ArrivalOrder *carve_all(const ChipSetup *s, Carve *from) {
    TaskQueue     o;
    ArrivalOrder *a = carve(from, ArrivalOrder, 1);
    task_queue_carve(&o, s->n_slots, from);
    if (a != NULL) a->order = o;
    return a;
}

size_t arrival_order_size(const ChipSetup *setup, const void *settings) {
    (void)settings;
    Carve c = {0};
    carve_all(setup, &c);
    return c.used;
}

void arrival_order_init(void *state, const ChipSetup *setup, const void *settings,
                        const void *loaded) {
    (void)loaded;
    Carve         c = {.base = state};
    ArrivalOrder *a = carve_all(setup, &c);
    a->cfg = *(const ArrivalOrderSettings *)settings;
}

uint32_t arrival_order_decide(ArrivalOrder *a, UnitChoice rule, const ChipView *v, ChipAction *out,
                              uint32_t max) {
    if (v->n_free == 0 || v->n_waiting == 0) return 0;
    task_queue_clear(&a->order);
    for (uint32_t i = 0; i < v->n_waiting; i++) task_queue_add(&a->order, 0.0, v->waiting[i]);
    unit_timeline_open(&a->timeline, v);
    Dispatch dispatch = {.rule = rule, .strict = !a->cfg.overtake};
    return dispatch_all(&dispatch, &a->order, &a->timeline, out, max);
}
