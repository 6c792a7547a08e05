#include "policy/chip/common/keyed_order.h"

typedef struct Keyed {
    const KeyedOrderSettings *cfg;
    KeyedOrderKey            *key;
} Keyed;

static double key_of(const void *self, const ChipView *v, const ChipTask *t, bool late) {
    const double last = 1e18;  // beyond any time: 30 years
    const Keyed *k = self;
    return k->key(k->cfg, v, t) + (late ? last : 0);
}

uint32_t keyed_order_decide(DispatchState *s, KeyedOrderKey *key, const ChipView *v,
                            ChipAction *out, uint32_t max) {
    const KeyedOrderSettings *cfg = s->settings;
    Keyed                     k = {cfg, key};
    Feasibility               f = {cfg->late_action, cfg->safety_factor};
    uint32_t                  n = task_queue_fill(&s->queue, v, &f, key_of, &k, out, max);
    if (task_queue_empty(&s->queue) || v->n_free == 0) return n;
    unit_timeline_open(&s->timeline, v);
    Dispatch d = {.choice = CHOOSE_FIRST_TO_END, .patience = cfg->patience};
    return n + dispatch_all(&d, &s->queue, &s->timeline, out + n, max - n);
}
