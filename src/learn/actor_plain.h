// ActorPlain: an actor's forward pass for one sequence, in plain loops with a fixed order of sums.
//
// No BLAS and no libm: every machine gives the same bits. For where an actor decides.
#pragma once

#include "learn/actor.h"

size_t actor_plain_scratch(Actor a, uint32_t items);  // floats

// out [items][actions] of x [items][in], one after the other; w as for actor_forward.
void actor_plain(Actor a, const float *w, uint32_t items, const float *x, float *out,
                 float *scratch);
