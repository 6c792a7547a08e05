// Runs: many jobs at once, each thread with memory of its own. Which thread does what does not show
// in the result.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/team.h"

typedef struct Runs Runs;

// Job i of n; what it takes from the arena is gone when it returns.
typedef Err RunsFn(void *self, uint32_t i, Arena *a);

MUST_USE Err runs_create(Runs **out, uint32_t threads, Arena *a);
void         runs_destroy(Runs *r);
Team        *runs_team(Runs *r);
MUST_USE Err runs_each(Runs *r, uint32_t n, RunsFn *fn, void *self);
