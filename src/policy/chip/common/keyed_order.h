// KeyedOrder: a policy that orders tasks by a key and starts each on the unit where its layer ends
// first. Infeasible tasks come last or are dropped.
#pragma once

#include "policy/chip/common/dispatch.h"

#define KEYED_ORDER_SETTINGS(X, action, factor, waits)                                             \
    FEASIBILITY_SETTINGS(X, action, factor) PATIENCE_SETTING(X, waits)

typedef struct KeyedOrderSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    KEYED_ORDER_SETTINGS(X, LATE_LAST, 1.0, 1.0)
#undef X
} KeyedOrderSettings;

// Nanoseconds; the least first.
typedef double KeyedOrderKey(const KeyedOrderSettings *cfg, const ChipView *v, const ChipTask *t);

// The policy's settings are KeyedOrderSettings.
uint32_t keyed_order_decide(DispatchState *s, KeyedOrderKey *key, const ChipView *v,
                            ChipAction *out, uint32_t max);
