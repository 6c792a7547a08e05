// fcfs: first come, first served
//
// The oldest request's next layer goes to the unit that is free first, whichever that is, as long
// as it can compute the layer; of several free ones it takes the fastest. Nothing is known of
// deadlines, of how unlike units are, or of the memory that they share.
#include "policy/chip/common/arrival_order.h"
#include "policy/policies.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(ArrivalOrderSettings, __VA_ARGS__)
    ARRIVAL_ORDER_SETTINGS(X)
#undef X
};

static uint32_t decide(void *state, const ChipView *view, ChipAction *out, uint32_t max) {
    return arrival_order_decide(state, CHOOSE_FIRST_FREE, view, out, max);
}

const ChipPolicy chip_policy_fcfs = {
    .name = "fcfs",
    .about = "in order of arrival, on whichever unit is free first",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(ArrivalOrderSettings),
    .state_size = arrival_order_size,
    .init = arrival_order_init,
    .decide = decide,
};
