// least_slack: who can least afford to wait first
//
// As edf, but in the order of slack: the time to the deadline less all that is left to compute,
// every layer on its fastest unit. A long network cfg a late deadline goes before a short one that
// can still be answered at the last moment.
//
// Defaults were chosen on traces of the seeds 1 to 99, see bench/chip_tune.c: hopeless,
// safety_factor and patience.
#include "policy/chip/common/keyed_order.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(KeyedOrderSettings, __VA_ARGS__)
    KEYED_ORDER_SETTINGS(X, LATE_DROP, 8.0, 2.0)
#undef X
};

static double key(const KeyedOrder *u, const ChipView *v, const ChipTask *t) {
    return feasibility_slack_ns(v, t, u->cfg.safety_factor);
}

static uint32_t decide(void *state, const ChipView *view, ChipAction *out, uint32_t max) {
    return keyed_order_decide(state, key, view, out, max);
}

const ChipPolicy chip_policy_least_slack = {
    .name = "least_slack",
    .about = "the least time to spare first, on the unit where its layer ends first",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(KeyedOrderSettings),
    .state_size = keyed_order_size,
    .init = keyed_order_init,
    .decide = decide,
};
