// Team: threads that run one function together, each its share. Idle ones spin a little, then
// sleep.
#pragma once

#include <stdint.h>

#include "base/err.h"

typedef struct Team Team;
typedef void        TeamFn(void *ctx, uint32_t index, uint32_t count);

enum { TEAM_MAX = 1024 };

// The caller is member 0, so one thread fewer is started. Member i runs on cpus[i] alone; with NULL
// each gets one of those our affinity allows, or none is bound when there are too few of them.
MUST_USE Err team_create(Team **out, uint32_t threads, const uint32_t *cpus);
void         team_destroy(Team *t);  // accepts NULL
uint32_t     team_size(const Team *t);

// fn(ctx, i, count) on every member, with denormals flushed; returns when all are done. By the
// thread that created the team, one run at a time.
void team_run(Team *t, TeamFn *fn, void *ctx);
void team_run_some(Team *t, uint32_t count, TeamFn *fn, void *ctx);  // the first count members

// Inside fn, by every member that runs it: all have come, and what they wrote is seen.
void team_barrier(Team *t);

// Binds the calling thread to member 0's CPU, for measuring; team_unpin lets it go.
void team_pin(Team *t);
void team_unpin(Team *t);
