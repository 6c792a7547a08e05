// Timing: the shortest time of each version of a job.
#pragma once

#include "bench/kernels/job.h"

// Measures version v; the shortest time of all calls is kept in j->shortest[v].
void timing_measure(Bench *b, Job *j, uint32_t v);

uint32_t timing_best(const Job *j);  // the version with the shortest time

MUST_USE Err timing_start(Arena *a, bool quick, Bench *b);
