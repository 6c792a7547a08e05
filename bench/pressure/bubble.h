// Bubble: a synthetic co-runner, a thread that uses shared cache and memory bandwidth.
//
// (Mars et al., Bubble-Up, MICRO 2011.)
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernel/isa.h"

typedef struct Bubble Bubble;

enum { BUBBLE_ANYWHERE = -1 };

// Idle at first. cpu: the core it is bound to. Its working set is at most most_bytes.
MUST_USE Err bubble_create(Bubble **out, const Isa *isa, int32_t cpu, size_t most_bytes);
void         bubble_destroy(Bubble *b);  // accepts NULL

// Streams through `bytes` repeatedly (0: idle), at most at `gbs` GB/s (0: no limit).
void bubble_set(Bubble *b, size_t bytes, double gbs);

uint64_t bubble_moved(const Bubble *b);  // bytes read and written so far
