// least_slack: who can least afford to wait first
//
// As edf, but in the order of slack: the time to the deadline less all that is left to compute,
// every layer on its fastest unit. A long network with a late deadline goes before a short one that
// can still be answered at the last moment.
//
// Defaults were chosen on traces of the seeds 1 to 99, see bench/chip_tune.c: hopeless, ease and
// patience.
#include "policy/chip/urgent.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(UrgentSettings, __VA_ARGS__)
    URGENT_SETTINGS(X, HOPE_DROP, 8.0, 2.0)
#undef X
};

static double key(const Urgent *u, const ChipView *v, const ChipTask *t) {
    return hope_slack(v, t, u->with.ease);
}

static uint32_t decide(void *state, const ChipView *view, ChipAction *out, uint32_t max) {
    return urgent_decide(state, key, view, out, max);
}

const ChipPolicy chip_policy_least_slack = {
    .name = "least_slack",
    .about = "the least time to spare first, on the unit where its layer ends first",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(UrgentSettings),
    .state_size = urgent_size,
    .init = urgent_init,
    .decide = decide,
};
