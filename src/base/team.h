// Team: a fixed group of threads that run one function together (fork-join). Idle threads spin for
// 150 us, then sleep.
#pragma once

#include <stdint.h>

#include "base/err.h"

typedef struct Team Team;
typedef void        TeamFn(void *ctx, uint32_t index, uint32_t count);

enum { TEAM_MAX = 1024 };

// The caller is member 0, so threads - 1 are started. Member i is pinned to cpus[i]; with NULL to
// CPUs of the affinity mask, or none is pinned if there are fewer than threads.
MUST_USE Err team_create(Team **out, uint32_t threads, const uint32_t *cpus);
void         team_destroy(Team *t);  // accepts NULL
uint32_t     team_size(const Team *t);

// Calls fn(ctx, i, count) on every member with denormals flushed, and returns when all are done.
// Only the creating thread calls it, one run at a time.
void team_run(Team *t, TeamFn *fn, void *ctx);
void team_run_some(Team *t, uint32_t count, TeamFn *fn, void *ctx);  // the first count members

// Within fn, by every running member: waits for all, and makes their writes visible.
void team_barrier(Team *t);

// Pins the calling thread to member 0's CPU for measurements, until team_unpin.
void team_pin(Team *t);
void team_unpin(Team *t);
