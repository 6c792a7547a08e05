// Contention: how blocks that run at once divide the memory's bandwidth and a slice of cache.
#pragma once

#include <stdint.h>

// Max-min fair: nobody gets more than it asks for, and nobody could get more without taking it from
// one that has no more than itself. rate[i] for demand[i]; all of it when the supply suffices.
void contention_share(const double *demand, uint32_t n, double supply, double *rate);

// What one more that asks for all there is would get.
double contention_newcomer(const double *demand, uint32_t n, double supply);

// The part of a slice, 0 to 1, that a block holds which goes through `own` bytes there while
// everybody together goes through `all`: what others leave, and in proportion when that is less.
double contention_slice(uint64_t own, uint64_t all, double slice_bytes);
