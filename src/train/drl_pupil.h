// DrlPupil: drl_single as a pupil. It imitates its rule, least work first, then learns by policy
// gradients: of several runs on the same trace, what those did that got further is done more.
#pragma once

#include "policy/cluster/drl/drl.h"
#include "train/pupil.h"

MUST_USE Err drl_pupil_open(uint32_t hidden, const void *settings, uint64_t seed, Arena *a,
                            Pupil **out);
