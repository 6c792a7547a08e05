// CorePlacement: which of the free cores, when it is known how many.
#pragma once

#include "contract/node.h"

Cores core_placement_first(const Cores *free, uint32_t n);  // those with the lowest numbers

enum { PLACEMENT_SLICES = CORES_MAX };

// The cores of each slice of shared cache.
typedef struct CorePlacement {
    uint32_t n_slices;
    uint16_t sizes[PLACEMENT_SLICES];
    Cores    slices[PLACEMENT_SLICES];
} CorePlacement;

void core_placement_init(CorePlacement *p, const NodeMachine *m);

// Whole slices first, then the fullest one that the rest fits into; slices that hold cores of
// `near` before others. n cores must be free.
Cores core_placement_slices(const CorePlacement *p, const Cores *free, uint32_t n,
                            const Cores *near);
