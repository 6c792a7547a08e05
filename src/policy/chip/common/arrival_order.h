// ArrivalOrder: tasks in the order in which requests came, each to the unit that a rule picks.
#pragma once

#include "policy/chip/common/dispatch.h"

#define ARRIVAL_ORDER_SETTINGS(X)                                                                  \
    X(overtake, bool, true, 0, 1, "who finds a free unit passes who has to wait for one")

typedef struct ArrivalOrderSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    ARRIVAL_ORDER_SETTINGS(X)
#undef X
} ArrivalOrderSettings;

typedef struct ArrivalOrder {
    ArrivalOrderSettings cfg;
    TaskQueue            order;
    UnitTimeline         timeline;
} ArrivalOrder;

size_t   arrival_order_size(const ChipSetup *setup, const void *settings);
void     arrival_order_init(void *state, const ChipSetup *setup, const void *settings,
                            const void *loaded);
uint32_t arrival_order_decide(ArrivalOrder *a, UnitChoice rule, const ChipView *v, ChipAction *out,
                              uint32_t max);
