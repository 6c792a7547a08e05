// least_slack: least slack first
//
// As edf, but by slack: the time to the deadline less the time that the remaining layers need, each
// on its fastest unit, times `safety_factor`. A long network with a late deadline goes before a
// short one that can still be answered at the last moment.
//
// Defaults of late_action, safety_factor and patience were chosen on traces of seeds 1 to 99 with
// bench/chip_tune.c.
#include "policy/chip/common/dispatch.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(KeyedOrderSettings, __VA_ARGS__)
    KEYED_ORDER_SETTINGS(X, LATE_DROP, 8.0, 2.0)
#undef X
};

static double key(const KeyedOrderSettings *cfg, const ChipView *v, const ChipTask *t) {
    return feasibility_slack_ns(v, t, cfg->safety_factor);
}

static uint32_t decide(void *state, const ChipView *view, ChipAction *out, uint32_t max) {
    return keyed_order_decide(state, key, view, out, max);
}

const ChipPolicy chip_policy_least_slack = {KEYED_ORDER_POLICY(
    "least_slack", "the least time to spare first, on the unit where its layer ends first")};
