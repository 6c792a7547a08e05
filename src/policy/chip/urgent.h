// Urgent: tasks by a time that says how urgent they are, each to the unit on which it ends first.
#pragma once

#include "policy/chip/hope.h"
#include "policy/chip/serve.h"

#define URGENT_SETTINGS(X, lost, factor, waits)                                                    \
    HOPE_SETTINGS(X, lost, factor) FLEET_SETTINGS(X, waits)

typedef struct UrgentSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    URGENT_SETTINGS(X, HOPE_LAST, 1.0, 1.0)
#undef X
} UrgentSettings;

typedef struct Urgent {
    UrgentSettings with;
    Order          order;
    Fleet          fleet;
} Urgent;

size_t urgent_size(const ChipSetup *setup, const void *settings);
void   urgent_init(void *state, const ChipSetup *setup, const void *settings, const void *loaded);

// The key by which tasks are ordered: least first.
typedef double UrgentKey(const Urgent *u, const ChipView *v, const ChipTask *t);
uint32_t urgent_decide(Urgent *u, UrgentKey *key, const ChipView *v, ChipAction *out, uint32_t max);
