// Workers: one thread bound to each core, waiting for jobs: spinning first, then sleeping.
//
// A thread whose job takes too long can be demoted: it goes on at the lowest priority and ends
// after its job, and a spare thread takes over its core.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cores.h"
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
void         workers_destroy(Workers *w);  // accepts NULL; waits for the jobs of demoted threads

// Gives the idle worker of a core a job: run(ctx, core, job, index). From any
// thread; neither blocks nor allocates. True: the worker sleeps and must be woken.
bool workers_give(Workers *w, uint32_t core, void *job, uint32_t index);
void workers_wake(Workers *w, uint32_t core);
void workers_post(Workers *w, uint32_t core, void *job, uint32_t index);  // gives and wakes

// From one thread at a time: starts a spare thread, joins demoted threads that have ended. They may
// block.
MUST_USE Err workers_add_spare(Workers *w);
void         workers_join_demoted(Workers *w);
uint32_t     workers_spares(const Workers *w);
// The thread of the core's current job is demoted and a spare, which there is, takes its place. One
// thread at a time calls this or gives jobs to that core; it does not block.
void workers_demote(Workers *w, uint32_t core);
bool workers_begun(const Workers *w, const Cores *cores);  // their threads can be demoted
// Sum of the times in which these workers were runnable but had no CPU; -1: unknown.
TimeNs workers_delay_ns(const Workers *all, const Cores *cores);
TimeNs workers_cpu_ns(const Workers *w, const Cores *cores);  // CPU time of their threads
