#include "base/parallel_for.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/cores.h"
#include "base/cpu.h"

enum { JOB_BYTES_SHIFT = 32 };

typedef struct Threads {  // what the threads share
    const ParallelFor *jobs;
    _Atomic uint32_t   next;
    pthread_mutex_t    lock;  // of what is below, and of the progress
    Err                err;
    char               why[512];
} Threads;

static bool settle(Threads *c, Err e) {  // true: go on
    const ParallelFor *j = c->jobs;
    (void)pthread_mutex_lock(&c->lock);
    if (e != ERR_OK && c->err == ERR_OK) {
        c->err = e;
        (void)snprintf(c->why, sizeof c->why, "%s", err_why());
    }
    if (e == ERR_OK && j->progress != NULL) progress_step(j->progress, j->worth);
    bool fine = c->err == ERR_OK;
    (void)pthread_mutex_unlock(&c->lock);
    return fine;
}

static void *work(void *self) {
    Threads *c = self;
    Arena    a;
    Err      e = arena_init(&a, (size_t)1 << JOB_BYTES_SHIFT);
    if (e != ERR_OK) (void)settle(c, e);
    for (uint32_t i; e == ERR_OK && (i = atomic_fetch_add(&c->next, 1)) < c->jobs->n;) {
        arena_rewind(&a, 0);
        if (!settle(c, c->jobs->run(c->jobs->self, i, &a))) break;
    }
    if (e == ERR_OK) arena_finish(&a);
    return NULL;
}

Err parallel_for(const ParallelFor *jobs, uint32_t threads) {
    Threads   c = {.jobs = jobs};
    pthread_t ids[CORES_MAX];
    uint32_t  n = 0;
    (void)pthread_mutex_init(&c.lock, NULL);
    while (n + 1 < threads && n < CORES_MAX && pthread_create(&ids[n], NULL, work, &c) == 0) n++;
    (void)work(&c);
    for (uint32_t i = 0; i < n; i++) (void)pthread_join(ids[i], NULL);
    (void)pthread_mutex_destroy(&c.lock);
    return c.err == ERR_OK ? ERR_OK : err_set(c.err, "%s", c.why);
}

uint32_t parallel_threads(int64_t asked) {
    Arena    a = {0};
    Cpu      cpu;
    uint32_t n = 1;
    if (asked > 0) return asked < CORES_MAX ? (uint32_t)asked : CORES_MAX;
    if (arena_init(&a, (size_t)1 << 24) == ERR_OK && cpu_read(&a, &cgroup_roots, &cpu) == ERR_OK)
        n = cpu_budget(&cpu, &cgroup_roots).cores;
    arena_finish(&a);
    return n;
}
