// Arrival: tasks in the order in which requests came, each to the unit that a rule picks.
#pragma once

#include "policy/chip/serve.h"

#define ARRIVAL_SETTINGS(X)                                                                        \
    X(overtake, bool, true, 0, 1, "who finds a free unit passes who has to wait for one")

typedef struct ArrivalSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    ARRIVAL_SETTINGS(X)
#undef X
} ArrivalSettings;

typedef struct Arrival {
    ArrivalSettings with;
    Order           order;
    Fleet           fleet;
} Arrival;

size_t arrival_size(const ChipSetup *setup, const void *settings);
void   arrival_init(void *state, const ChipSetup *setup, const void *settings, const void *loaded);
uint32_t arrival_decide(Arrival *a, ServeRule rule, const ChipView *v, ChipAction *out,
                        uint32_t max);
