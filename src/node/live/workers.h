// Workers: threads that wait for jobs, one bound to each core. Idle ones spin a while, then sleep.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/err.h"
#include "base/clock.h"

typedef struct Workers Workers;
typedef void           WorkersFn(void *ctx, uint32_t core, void *job, uint32_t index);

typedef struct WorkersOptions {
    uint32_t        n;        // so many
    const uint32_t *cpus;     // [n] worker i runs on cpus[i] alone; NULL: where the system likes
    TimeNs          spin_ns;  // before an idle one sleeps: waking it costs about 50 us
    WorkersFn      *run;
    void           *ctx;
} WorkersOptions;

MUST_USE Err workers_create(Workers **out, const WorkersOptions *o);
void         workers_destroy(Workers *w);  // accepts NULL; after all jobs are done

// run(ctx, core, job, index) on that core's worker, which has no job and was given none. By any
// thread; it neither waits nor allocates. True: the worker sleeps and must be woken.
bool workers_give(Workers *w, uint32_t core, void *job, uint32_t index);
void workers_wake(Workers *w, uint32_t core);
void workers_post(Workers *w, uint32_t core, void *job, uint32_t index);  // both
