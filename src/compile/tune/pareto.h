// Pareto: of all versions of a layer, the few that suffice whatever the neighbours do.
#pragma once

#include <stdint.h>

#include "compile/tune/pressure.h"
#include "compile/layer_profile.h"

#define PARETO_LOSS   0.10  // what may be lost against the whole set, at any level, on any count
#define PARETO_SLACK  1.5   // slower than the fastest by more: of no use to anybody
#define PARETO_WANTED 3     // versions, when there are so many that differ
#define PARETO_DIFFER 1.5   // in tasks, cache or bytes moved, by this factor: clearly
#define PARETO_NOISE  0.02  // times closer than this are the same

// Those that no other beats in time (on each count), tasks, L3 and bytes moved at once, within the
// slack; by falling footprint. out holds p->n; returns how many.
uint32_t pareto_front(const LayerProfile *p, uint32_t *out);

// Sets p->kept: the fastest alone, both ends of the front where they differ, what lowers the loss
// most until it is small enough, then up to PARETO_WANTED fast ones that clearly differ, in the end
// also beaten ones: footprints are a model's. front is room for p->n. Returns the loss that
// remains.
double pareto_keep(LayerProfile *p, const Pressure *m, uint32_t *front);

// Sets p->kept to the fastest of some[n] and up to PARETO_WANTED in all that clearly differ.
void pareto_keep_some(LayerProfile *p, const uint32_t *some, uint32_t n);

// max over levels and counts of (best of set / best of all) - 1.
double pareto_loss(const LayerProfile *p, const Pressure *m, const uint32_t *all, uint32_t n_all,
                   const uint32_t *set, uint32_t n_set);
