// KeyedOrder: tasks by a time that says how urgent they are, each to the unit on which it ends
// first.
#pragma once

#include "policy/chip/common/feasibility.h"
#include "policy/chip/common/dispatch.h"

#define KEYED_ORDER_SETTINGS(X, lost, factor, waits)                                               \
    FEASIBILITY_SETTINGS(X, lost, factor) PATIENCE_SETTING(X, waits)

typedef struct KeyedOrderSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    KEYED_ORDER_SETTINGS(X, LATE_LAST, 1.0, 1.0)
#undef X
} KeyedOrderSettings;

typedef struct KeyedOrder {
    KeyedOrderSettings cfg;
    TaskQueue          order;
    UnitTimeline       timeline;
} KeyedOrder;

size_t keyed_order_size(const ChipSetup *setup, const void *settings);
void   keyed_order_init(void *state, const ChipSetup *setup, const void *settings,
                        const void *loaded);

// The key by which tasks are ordered: least first.
typedef double KeyedOrderKey(const KeyedOrder *u, const ChipView *v, const ChipTask *t);
uint32_t keyed_order_decide(KeyedOrder *u, KeyedOrderKey *key, const ChipView *v, ChipAction *out,
                            uint32_t max);
