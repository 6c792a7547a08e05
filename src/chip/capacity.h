// Capacity: an upper bound of the requests per second that a package can answer.
#pragma once

#include "contract/chip.h"

typedef struct CapacityCase {
    const ChipModel *models;  // [n]
    const double    *share;   // [n] of the requests
    uint32_t         n;
    const ChipKind  *kinds;  // [n_kinds]
    uint32_t         n_kinds;
    double           bytes_ns;     // of the memory
    double           dispatch_ns;  // overhead of each layer on its unit
} CapacityCase;

// The optimum of a linear program: layers are divided among kinds, even in fractions, so that the
// load of the busiest resource, a kind of unit or the memory, is least. No schedule answers more.
// Fails if a layer runs on no unit.
MUST_USE Err capacity_find(const CapacityCase *c, double *out);
