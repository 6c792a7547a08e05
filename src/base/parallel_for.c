#include "base/parallel_for.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/cores.h"
#include "base/cpu.h"

enum { SCRATCH_SHIFT = 32 };  // address space reserved for each thread

typedef struct Shared {
    const ParallelFor *jobs;
    _Atomic uint32_t   next;
    pthread_mutex_t    lock;  // guards what follows, and the progress
    Err                err;
    char               why[512];
} Shared;

static bool finish_job(Shared *s, Err e) {  // false: stop
    const ParallelFor *j = s->jobs;
    (void)pthread_mutex_lock(&s->lock);
    if (e != ERR_OK && s->err == ERR_OK) {
        s->err = e;
        (void)snprintf(s->why, sizeof s->why, "%s", err_why());
    }
    if (e == ERR_OK && j->progress != NULL) progress_step(j->progress, j->progress_steps);
    bool ok = s->err == ERR_OK;
    (void)pthread_mutex_unlock(&s->lock);
    return ok;
}

static void *work(void *shared) {
    Shared *s = shared;
    Arena   scratch;
    Err     e = arena_init(&scratch, (size_t)1 << SCRATCH_SHIFT);
    if (e != ERR_OK) {
        (void)finish_job(s, e);
        return NULL;
    }
    for (uint32_t i; (i = atomic_fetch_add(&s->next, 1)) < s->jobs->n;) {
        arena_rewind(&scratch, 0);
        if (!finish_job(s, s->jobs->run(s->jobs->self, i, &scratch))) break;
    }
    arena_finish(&scratch);
    return NULL;
}

Err parallel_for(const ParallelFor *jobs, uint32_t threads) {
    Shared    s = {.jobs = jobs};
    pthread_t ids[CORES_MAX];
    uint32_t  n = 0;
    if (threads > jobs->n) threads = jobs->n;
    (void)pthread_mutex_init(&s.lock, NULL);
    while (n + 1 < threads && n < CORES_MAX && pthread_create(&ids[n], NULL, work, &s) == 0) n++;
    (void)work(&s);
    for (uint32_t i = 0; i < n; i++) (void)pthread_join(ids[i], NULL);
    (void)pthread_mutex_destroy(&s.lock);
    return s.err == ERR_OK ? ERR_OK : err_set(s.err, "%s", s.why);
}

uint32_t parallel_threads(int64_t requested) {
    Arena    a = {0};
    Cpu      cpu;
    uint32_t n = 1;
    if (requested > 0) return requested < CORES_MAX ? (uint32_t)requested : CORES_MAX;
    if (arena_init(&a, (size_t)1 << 24) == ERR_OK && cpu_read(&a, &cgroup_roots, &cpu) == ERR_OK)
        n = cpu_budget(&cpu, &cgroup_roots).cores;
    arena_finish(&a);
    return n;
}
