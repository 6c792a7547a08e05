// Workers: one thread bound to each core, waiting for jobs: spinning first, then sleeping.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/err.h"
#include "base/clock.h"

typedef struct Workers Workers;
typedef void           WorkersFn(void *ctx, uint32_t core, void *job, uint32_t index);

typedef struct WorkersOptions {
    uint32_t        n;        // number of workers
    const uint32_t *cpus;     // [n] worker i is pinned to cpus[i]; NULL: not pinned
    TimeNs          spin_ns;  // before an idle worker sleeps: a wake-up costs about 50 us
    WorkersFn      *run;
    void           *ctx;
} WorkersOptions;

MUST_USE Err workers_create(Workers **out, const WorkersOptions *o);
void         workers_destroy(Workers *w);  // accepts NULL; after all jobs are done

// Gives the idle worker of a core a job: run(ctx, core, job, index). From any
// thread; neither blocks nor allocates. True: the worker sleeps and must be woken.
bool workers_give(Workers *w, uint32_t core, void *job, uint32_t index);
void workers_wake(Workers *w, uint32_t core);
void workers_post(Workers *w, uint32_t core, void *job, uint32_t index);  // gives and wakes
