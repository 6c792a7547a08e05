// Capacity: how many requests a package could answer if no unit and no byte of bandwidth were lost.
#pragma once

#include "contract/chip.h"

typedef struct CapacityCase {
    const ChipModel *models;  // [n]
    const double    *share;   // [n] of the requests
    uint32_t         n;
    const ChipKind  *kinds;  // [n_kinds]
    uint32_t         n_kinds;
    double           bytes_ns;     // of the memory
    double           dispatch_ns;  // that a unit is taken for before each layer
} CapacityCase;

// Requests a second. Layers are divided among kinds as they will, even in parts, so that the
// busiest of units and memory is as little busy as can be: no schedule answers more. Fails when
// some layer runs nowhere.
MUST_USE Err capacity_find(const CapacityCase *c, double *out);
