// Place: which of the free cores, when it is known how many.
#pragma once

#include "contract/node.h"

Cores place_first(const Cores *free, uint32_t n);  // those with the lowest numbers

enum { PLACE_SLICES = CORES_MAX };

// The cores of each slice of shared cache.
typedef struct Place {
    uint32_t n_slices;
    uint16_t sizes[PLACE_SLICES];
    Cores    slices[PLACE_SLICES];
} Place;

void place_init(Place *p, const NodeMachine *m);

// Whole slices first, then the fullest one that the rest fits into; slices that hold cores of
// `near` before others. n cores must be free.
Cores place_slices(const Place *p, const Cores *free, uint32_t n, const Cores *near);
