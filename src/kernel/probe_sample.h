// ProbeSample: the best of many short samples that members of a team take side by side.
#pragma once

#include "base/team.h"
#include "base/time.h"

// One sample's work of member index; round counts samples.
typedef void ProbeWork(void *self, uint32_t index, uint32_t round);

// Shortest time from the first member's start to the last one's end, over at least 3 samples and
// for as long as budget. 0 when there is no memory.
TimeNs probe_sample(Team *t, uint32_t count, TimeNs budget, ProbeWork *work, void *self);
