// Stopwatch: measures one run of a version of a layer on some threads of a team, with caches as in
// a program.
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
    void (*warm)(void *self, Part part);  // reads the inputs into the cache; may be NULL
    void          *self;
    const Version *version;
} StopwatchWork;

typedef struct Stopwatch Stopwatch;

// Each thread has scratch_bytes of its own. Before a run each reads private_bytes of other memory,
// all together at least shared_bytes, as other layers of a program would.
MUST_USE Err stopwatch_create(Stopwatch **out, Team *team, size_t scratch_bytes,
                              size_t private_bytes, size_t shared_bytes);
void         stopwatch_destroy(Stopwatch *t);  // accepts NULL

// One run on `cores` threads, from common start to last end. *clean false: a thread was preempted,
// and the result is the longest CPU time of a thread.
TimeNs stopwatch_run(Stopwatch *t, StopwatchWork w, uint32_t cores, bool *clean);

TimeNs stopwatch_cpu_time(void);  // CPU time of the calling thread
