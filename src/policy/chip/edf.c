// edf: the earliest deadline first
//
// Whenever a unit is free, tasks are looked at in the order of their deadlines. Each takes the unit
// on which its next layer would end first, as far as the times alone can tell, and waits for a busy
// one when that ends earlier still, or not much later. What must be late is dropped, so that it
// cannot take others cfg it: not only when the best case says so, but when what is left would need
// `safety_factor` times its least, as it does on a crowded package.
//
// Defaults were chosen on traces of the seeds 1 to 99, see bench/chip_tune.c: to drop was worth 6
// points over cells of all kinds, to give up early another 5, to wait for the fast kind 2.
#include "policy/chip/common/keyed_order.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(KeyedOrderSettings, __VA_ARGS__)
    KEYED_ORDER_SETTINGS(X, LATE_DROP, 3.8, 8.0)
#undef X
};

static double key(const KeyedOrder *u, const ChipView *v, const ChipTask *t) {
    (void)u;
    (void)v;
    return (double)t->request.deadline;
}

static uint32_t decide(void *state, const ChipView *view, ChipAction *out, uint32_t max) {
    return keyed_order_decide(state, key, view, out, max);
}

const ChipPolicy chip_policy_edf = {
    .name = "edf",
    .about = "the earliest deadline first, on the unit where its layer ends first",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(KeyedOrderSettings),
    .state_size = keyed_order_size,
    .init = keyed_order_init,
    .decide = decide,
};
