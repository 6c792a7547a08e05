// Pareto: selects the few versions of a layer that suffice at every interference level.
#pragma once

#include <stdint.h>

#include "compile/tune/pressure.h"
#include "compile/layer_profile.h"

#define PARETO_LOSS   0.10  // allowed slowdown against the whole front, at any level and core count
#define PARETO_SLACK  1.5   // versions slower than the fastest by this factor are useless
#define PARETO_WANTED 3     // versions to keep if so many differ
#define PARETO_DIFFER 1.5   // ratio of tasks, cache or bytes moved that makes versions different
#define PARETO_NOISE  0.02  // relative difference of times that is noise

TimeNs pareto_fastest(const LayerProfile *p, uint32_t k);  // least time on counts[k] cores

// Candidates that no other dominates in time (on each core count), tasks, L3 footprint and bytes
// moved, within PARETO_SLACK; by descending footprint. `out` has p->n elements; returns the number.
uint32_t pareto_front(const LayerProfile *p, uint32_t *out);

// Sets p->kept: the fastest without interference, both ends of the front if they differ, then those
// that reduce the loss most until it is below PARETO_LOSS, then fast versions that differ up to
// PARETO_WANTED, at last also dominated ones, because footprints are modelled. `front` has p->n
// elements. Returns the remaining loss.
double pareto_keep(LayerProfile *p, const Pressure *m, uint32_t *front);

// Sets p->kept to the fastest of some[n] and others that differ, up to PARETO_WANTED.
void pareto_keep_some(LayerProfile *p, const uint32_t *some, uint32_t n);

// Maximum over levels and core counts of (best of set / best of all) - 1.
double pareto_loss(const LayerProfile *p, const Pressure *m, const uint32_t *all, uint32_t n_all,
                   const uint32_t *set, uint32_t n_set);
