#include "node/live/workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/thread.h"
#include "base/clock.h"
#include "base/fp.h"
#include "base/sync.h"

enum { SPIN_ROUNDS = 128 };

typedef struct Worker {
    _Alignas(128) _Atomic uint32_t posted;  // jobs posted
    _Atomic uint32_t sleeps;
    void            *job;
    uint32_t         index, core;
    Workers         *all;
    pthread_t        thread;
} Worker;

struct Workers {
    WorkersOptions o;
    uint32_t       started;
    Worker         at[];
};

// Yields to other threads on this core: one may be about to post the next job.
static bool spin_for_job(Worker *w, uint32_t seen) {
    Clock  clock = clock_monotonic();
    TimeNs end = clock_now(clock) + w->all->o.spin_ns;
    if (w->all->o.spin_ns <= 0) return atomic_load(&w->posted) != seen;
    do {
        if (spin_until_not(&w->posted, seen, SPIN_ROUNDS)) return true;
        (void)sched_yield();
    } while (clock_now(clock) < end);
    return false;
}

// Both sides write one word and then read the other's, sequentially consistent: no wake-up is lost.
static void sleep_for_job(Worker *w, uint32_t seen) {
    atomic_store(&w->sleeps, 1);
    while (atomic_load(&w->posted) == seen) futex_wait(&w->posted, seen);
    atomic_store_explicit(&w->sleeps, 0, memory_order_relaxed);
}

bool workers_give(Workers *all, uint32_t core, void *job, uint32_t index) {
    Worker *w = &all->at[core];
    CHECK(core < all->o.n);
    w->job = job;
    w->index = index;
    atomic_fetch_add(&w->posted, 1);
    return atomic_load(&w->sleeps) != 0;
}

void workers_wake(Workers *all, uint32_t core) { futex_wake(&all->at[core].posted, 1); }

void workers_post(Workers *all, uint32_t core, void *job, uint32_t index) {
    if (workers_give(all, core, job, index)) workers_wake(all, core);
}

static void *work(void *self) {
    Worker        *w = self;
    const Workers *all = w->all;
    (void)fpu_flush_denormals();
    for (uint32_t seen = 0;; seen++) {
        if (!spin_for_job(w, seen)) sleep_for_job(w, seen);
        if (w->job == NULL) return NULL;
        all->o.run(all->o.ctx, w->core, w->job, w->index);
    }
}

static void pin(const Worker *w) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (w->all->o.cpus == NULL || w->all->o.cpus[w->core] >= CPU_SETSIZE) return;
    CPU_SET((size_t)w->all->o.cpus[w->core], &set);
    (void)pthread_setaffinity_np(w->thread, sizeof set,
                                 &set);  // fails if the CPU is offline: not pinned
}

static Err start_one(Workers *all, uint32_t i) {
    Worker *w = &all->at[i];
    char    name[16];
    *w = (Worker){.core = i, .all = all};
    (void)snprintf(name, sizeof name, "core-%u", i);
    TRY(thread_start(&w->thread, name, work, w));
    pin(w);
    return ERR_OK;
}

Err workers_create(Workers **out, const WorkersOptions *o) {
    Err e = ERR_OK;
    CHECK(o->n > 0 && o->run != NULL);
    Workers *w = aligned_alloc(_Alignof(Workers), sizeof(Workers) + o->n * sizeof(Worker));
    if (w == NULL) return err_set(ERR_LIMIT, "no memory for %u workers", o->n);
    *w = (Workers){.o = *o};
    while (e == ERR_OK && w->started < o->n) {
        e = start_one(w, w->started);
        if (e == ERR_OK) w->started++;
    }
    w->o.cpus = NULL;
    if (e == ERR_OK)
        *out = w;
    else
        workers_destroy(w);
    return e;
}

void workers_destroy(Workers *w) {
    if (w == NULL) return;
    for (uint32_t i = 0; i < w->started; i++) workers_post(w, i, NULL, 0);
    for (uint32_t i = 0; i < w->started; i++) CHECK(pthread_join(w->at[i].thread, NULL) == 0);
    free(w);
}
