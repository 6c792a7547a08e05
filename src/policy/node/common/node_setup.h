// NodeSetup helpers: values that several policies derive from a NodeSetup before a run, and the
// hysteresis of interference levels.
#pragma once

#include "base/carve.h"
#include "contract/node.h"

// [layers of the longest model] version 0 of every layer: policy state starts zeroed.
static inline uint8_t *node_setup_carve_solo(const NodeSetup *s, Carve *from) {
    uint32_t longest = 0;
    for (uint32_t i = 0; i < s->n_tenants; i++)
        if (s->tenants[i].model->n_layers > longest) longest = s->tenants[i].model->n_layers;
    return carve(from, uint8_t, longest);
}

static inline TimeNs node_setup_least_qos(const NodeSetup *s) {
    TimeNs least = s->tenants[0].qos_ns;
    for (uint32_t i = 1; i < s->n_tenants; i++)
        if (s->tenants[i].qos_ns < least) least = s->tenants[i].qos_ns;
    return least;
}

// Granularity of core allocations: at most an eighth of the machine, at least one core.
static inline uint32_t node_setup_quantum(const NodeMachine *m, uint32_t quantum) {
    uint32_t most = m->n_cores / 8, q = quantum < most ? quantum : most;
    return q > 0 ? q : 1;
}

// The next interference level: stays at `current` until the pressure passes the midpoint to the
// next level by `margin`.
static inline uint32_t level_hysteresis(uint32_t current, float pressure, double margin) {
    double away = (double)pressure - (double)current;
    if (away <= 0.5 + margin && away >= -0.5 - margin) return current;
    double rounded = (double)pressure + 0.5;
    return rounded < 0 ? 0 : rounded >= NODE_LEVELS ? NODE_LEVELS - 1 : (uint32_t)rounded;
}
