// Slow profile: obvious implementations of profile lookups and rules, as references.
#pragma once

#include "base/rng.h"
#include "contract/cluster_profile.h"

ProfileGrid slow_profile_random(Rng *rng);  // monotone, of any size, positive
double      slow_profile_grid(const ProfileGrid *g, double row, double column);
bool        slow_profile_monotone(const ClusterProfile *c);

// Least cost of a measured point or the default that keeps the fraction `keep` of the default's
// speed with no more cores or memory than the default; cost: cores + GB, each relative to the
// default.
double slow_profile_cheapest(const ClusterProfiles *p, const ClusterProfile *c, double keep);
