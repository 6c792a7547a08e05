// Contention: the division of memory bandwidth and cache slices between running blocks.
#pragma once

#include <stdint.h>

// Max-min fair rate[i] for demand[i]: no rate exceeds its demand, and none could grow without
// shrinking a rate that is not larger.
void contention_share(const double *demand, uint32_t n, double supply, double *rate);

// Rate of one more block with unlimited demand.
double contention_newcomer(const double *demand, uint32_t n, double supply);

// Share of a slice, 0 to 1, held by a block with a footprint of `own` bytes there when
// all blocks have `all`: the larger of what others leave and its proportional part.
double contention_slice(uint64_t own, uint64_t all, double slice_bytes);
