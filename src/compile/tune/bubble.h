// Bubble: a neighbour on purpose, a thread that uses up shared cache and memory bandwidth.
//
// For tools, benchmarks and measurements alone.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernel/isa.h"

typedef struct Bubble Bubble;

enum { BUBBLE_ANYWHERE = -1 };

// It rests at first. cpu: the one it is bound to. Works on up to most_bytes.
MUST_USE Err bubble_create(Bubble **out, const Isa *isa, int32_t cpu, size_t most_bytes);
void         bubble_destroy(Bubble *b);  // accepts NULL

// From now on it goes through `bytes` round and round (0: it rests), at so many GB/s at most (0: as
// many as it can).
void bubble_set(Bubble *b, size_t bytes, double gbs);

uint64_t bubble_moved(const Bubble *b);  // bytes read and written since it was created
