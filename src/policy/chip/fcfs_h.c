// fcfs_h: first come, first served, every layer on its best unit
//
// As fcfs, but a layer runs on the kind of unit that computes it fastest and on no other, and waits
// for one of those. Each layer is as fast as can be; the other kinds may idle meanwhile, and the
// fast ones tend to be those that ask most of the memory.
#include "policy/chip/common/arrival_order.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(ArrivalOrderSettings, __VA_ARGS__)
    ARRIVAL_ORDER_SETTINGS(X)
#undef X
};

static uint32_t decide(void *state, const ChipView *view, ChipAction *out, uint32_t max) {
    return arrival_order_decide(state, CHOOSE_FASTEST, view, out, max);
}

const ChipPolicy chip_policy_fcfs_h = {
    .name = "fcfs_h",
    .about = "in order of arrival, on the fastest kind of unit for the layer, whoever waits for it",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(ArrivalOrderSettings),
    .state_size = arrival_order_size,
    .init = arrival_order_init,
    .decide = decide,
};
