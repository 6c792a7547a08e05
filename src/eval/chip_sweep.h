// ChipSweep: what a policy's own network costs, by its size and by how often it thinks.
#pragma once

#include "eval/chip_compare.h"

bool     chip_sweep_fits(const ChipChoice *c);  // it has a network whose size can be charged
uint32_t chip_sweep_steps(const ChipCompareParams *r);

// On the first package and the last workload at the first load and the package's own bandwidth.
// Fills the sweep of `out`.
MUST_USE Err chip_sweep_run(const ChipCompareParams *r, const ChipChoice *c, Progress *p, Arena *a,
                            Match *out);
