// Measure: how long each heavy step of a program takes, for those that nobody tuned.
#pragma once

#include "compile/program.h"

// Steps without a profile get one of a single version, in the arena. A few runs each.
MUST_USE Err measure_steps(Program *p, Team *team, const uint32_t *counts, uint32_t n_counts,
                           Arena *a);
