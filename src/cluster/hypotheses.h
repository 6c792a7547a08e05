// Hypotheses: the table of profiles that an estimator chooses from, made from a library.
#pragma once

#include "cluster/information.h"
#include "estimator/profile_posterior.h"

// The library's classes, then the same with their sensitivities raised to lower and higher powers
// as far as there is room, then their mean. Writes into `profiles`, which must outlive the table.
MUST_USE Err hypotheses_make(const ClusterProfiles *library, Arena *a, ClusterProfiles *profiles,
                             HypothesisTable *out);
