// edf: the earliest deadline first
//
// Whenever a unit is free, tasks are looked at in the order of their deadlines. Each takes the unit
// on which its next layer would end first, as far as the times alone can tell, and waits for a busy
// one when that ends earlier still, or not much later. What must be late is dropped, so that it
// cannot take others with it: not only when the best case says so, but when what is left would need
// `ease` times its least, as it does on a crowded package.
//
// Defaults were chosen on traces of the seeds 1 to 99, see bench/chip_tune.c: to drop was worth 6
// points over cells of all kinds, to give up early another 5, to wait for the fast kind 2.
#include "policy/chip/urgent.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(UrgentSettings, __VA_ARGS__)
    URGENT_SETTINGS(X, HOPE_DROP, 3.8, 8.0)
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
