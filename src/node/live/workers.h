// Workers: one thread bound to each core, waiting for jobs: spinning first, then sleeping.
//
// A thread with a job that takes too long can be demoted: a spare thread takes over its core, and
// it is a spare thread itself after its job.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cores.h"
#include "base/cpu.h"
#include "base/err.h"
#include "base/clock.h"

typedef struct Workers Workers;
typedef struct Worker  Worker;
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

// From one thread at a time: starts a spare thread, joins threads that have ended. They may block.
MUST_USE Err workers_add_spare(Workers *w);
void         workers_join_ended(Workers *w);
uint32_t     workers_spares(const Workers *w);

// One thread at a time calls the functions below or gives jobs; none of them blocks.
bool workers_begun(const Workers *w, const Cores *cores);  // their threads can be demoted
// The threads of the cores' current jobs are demoted and spares, which there are, take their
// places. The list of the demoted threads is the caller's until workers_take_back.
Worker *workers_demote(Workers *w, const Cores *cores);
void    workers_move(Workers *w, Worker *demoted, uint32_t core);  // binds them to that core
TimeNs  worker_list_cpu_ns(const Worker *demoted);                 // CPU time of the threads
// Lowers their priority. An unprivileged process cannot raise it again: they end after their job.
void workers_lower(Worker *demoted);
// They are done with their job, or about to be: they become spares or end.
void workers_take_back(Workers *w, Worker *demoted);
// Sum of the times in which these workers were runnable but had no CPU; -1: unknown.
TimeNs workers_delay_ns(const Workers *all, const Cores *cores);
TimeNs workers_cpu_ns(const Workers *w, const Cores *cores);  // CPU time of their threads
