// CorePlacement: selects which of the free cores to use, given their number.
#pragma once

#include "contract/node.h"

Cores core_placement_first(const Cores *free, uint32_t n);  // the n lowest numbers

enum { PLACEMENT_SLICES = CORES_MAX };

typedef struct CorePlacement {  // the cores of each slice of the shared cache
    uint32_t n_slices;
    uint16_t sizes[PLACEMENT_SLICES];
    Cores    slices[PLACEMENT_SLICES];
} CorePlacement;

void core_placement_init(CorePlacement *p, const NodeMachine *m);

// Whole free slices first, then the slice that the rest fits best; slices with cores of `near` are
// preferred. n cores must be free.
Cores core_placement_slices(const CorePlacement *p, const Cores *free, uint32_t n,
                            const Cores *near);
