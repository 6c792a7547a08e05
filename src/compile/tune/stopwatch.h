// Stopwatch: how long one version of a layer takes on some of a team's cores, as in a program.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/team.h"
#include "base/clock.h"
#include "kernel/isa.h"
#include "kernel/version.h"

typedef struct StopwatchWork {
    void (*run)(void *self, const Version *v, Part part);
    void (*warm)(void *self, Part part);  // reads what a program has just written; may be NULL
    void          *self;
    const Version *version;
} StopwatchWork;

typedef struct Stopwatch Stopwatch;

// Each member has scratch_bytes of its own. Before a run each reads private_bytes of other memory,
// and all together at least shared_bytes: in a program other layers have just filled the caches.
MUST_USE Err stopwatch_create(Stopwatch **out, Team *team, size_t scratch_bytes,
                              size_t private_bytes, size_t shared_bytes);
void         stopwatch_destroy(Stopwatch *t);  // accepts NULL

// One run on `cores` members, from the moment all are ready until all are done. Not clean: a core
// was lowered away meanwhile, and the longest CPU time of a member is the answer.
TimeNs stopwatch_run(Stopwatch *t, StopwatchWork w, uint32_t cores, bool *clean);
