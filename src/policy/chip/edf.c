// edf: the earliest deadline first
//
// Whenever a unit is free, tasks are looked at in the order of their deadlines. Each takes the unit
// on which its next layer would end first, as far as the times alone can tell, and waits for a busy
// one when that ends earlier still. What must be late, even if all that is left of it ran on the
// fastest units, goes after the others, so that it cannot take them with it.
#include "policy/chip/urgent.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(UrgentSettings, __VA_ARGS__)
    URGENT_SETTINGS(X, HOPE_LAST, 1.0, 1.0)
#undef X
};

static double key(const Urgent *u, const ChipView *v, const ChipTask *t) {
    (void)u;
    (void)v;
    return (double)t->request.deadline;
}

static uint32_t decide(void *state, const ChipView *view, ChipAction *out, uint32_t max) {
    return urgent_decide(state, key, view, out, max);
}

const ChipPolicy chip_policy_edf = {
    .name = "edf",
    .about = "the earliest deadline first, on the unit where its layer ends first",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(UrgentSettings),
    .state_size = urgent_size,
    .init = urgent_init,
    .decide = decide,
};
