// Cost: what a layer takes on a unit: the best mapping of its dataflow that the buffers allow.
#pragma once

#include "chip/package.h"
#include "chip/shape.h"
#include "contract/chip.h"

typedef struct Cost {
    double cycles;                        // of the unit's clock; INFINITY: it cannot compute it
    double read_bytes, write_bytes;       // of memory
    double bytes_cycle;                   // its demand b: both over cycles
    double buffer_bytes, register_bytes;  // on-chip traffic
    double energy_pj, utilization;
} Cost;

Cost cost_of(const Shape *s, const Unit *u);

// A network's table for the kinds of a package, in nanoseconds; searches are remembered.
MUST_USE Err cost_model(const char *network, const Package *p, Arena *a, ChipModel *out);
