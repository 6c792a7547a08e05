// Ladder: the few points of cores, memory and GPU share at which jobs of a class are worth running.
#pragma once

#include "contract/cluster_profile.h"

typedef struct AllocLevelParams {
    double keep;        // the lowest rung has at least so much of the speed of the default
    double step;        // each rung above buys at least so much more than the one below
    double share_keep;  // a rung with half a GPU needs so much; above 1: there is none
} AllocLevelParams;

#define ALLOC_LEVEL_PARAMS ((AllocLevelParams){0.9, 0.05, 0.9})

// Of points that were measured, and the default. half_speed: with company on its GPU, on average.
AllocLevels alloc_levels_build(const ProfileGrid *speed, double share_cores, double share_gb,
                               double half_speed, const AllocLevelParams *rule);
