// Slow profile: obvious implementations of profile lookups and rules, as references.
#pragma once

#include "base/rng.h"
#include "contract/cluster_profile.h"

ProfileGrid slow_profile_random(Rng *rng);  // monotone, of any size, positive
double      slow_profile_grid(const ProfileGrid *g, double row, double column);
bool        slow_profile_monotone(const ClusterProfile *c);

// The least cost of a measured point, or the default, that has so much of the default's speed and
// no more of anything than the default: cores + GB, each by the default's.
double slow_profile_cheapest(const ClusterProfiles *p, const ClusterProfile *c, double keep);
