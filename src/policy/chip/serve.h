// Serve: tasks in a policy's order, each to the unit that a rule picks for it.
#pragma once

#include "policy/chip/fleet.h"
#include "policy/chip/order.h"

typedef enum ServeRule {
    SERVE_FIRST,  // see fleet_first, fleet_fastest, fleet_soonest
    SERVE_FASTEST,
    SERVE_SOONEST,
} ServeRule;

typedef struct Serve {
    ServeRule rule;
    double    patience;  // see fleet_soonest
    bool      strict;    // once somebody has to wait, all after it do
} Serve;

// Empties the order as far as there are free units, and returns how many actions it wrote.
uint32_t serve_all(const Serve *s, Order *o, Fleet *f, ChipAction *out, uint32_t max);
