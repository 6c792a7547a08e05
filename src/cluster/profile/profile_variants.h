// Variants of profiles: copies, powers of a class, the mean of all classes, the default alone.
#pragma once

#include "cluster/profile/profiles.h"

// A copy that shares no memory with the original but names.
MUST_USE Err profile_copy(const ClusterProfiles *p, Arena *a, ClusterProfiles *out);

// Values to a power: with values of 1 at the default, above 1 means more sensitive.
void profile_grid_raise(ProfileGrid *g, double power);

// Adds a class with the sensitivities of another to a power; there must be room. Levels are built
// by the next profile_set_share.
void profile_add_power(ClusterProfiles *p, uint32_t base, double power, Arena *a);
// Adds a class with the weighted mean of all others: geometric for speeds, arithmetic else.
MUST_USE Err profile_add_mean(ClusterProfiles *p, uint32_t *out);
// Adds a class with the default demand as its only level, that gains nothing by sharing a GPU.
MUST_USE Err profile_add_default(ClusterProfiles *p, uint32_t *out);
