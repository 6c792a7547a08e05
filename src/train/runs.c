#include "train/runs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/cores.h"

enum { JOB_BYTES_SHIFT = 31 };

struct Runs {
    Team            *team;
    Arena            arenas[CORES_MAX];
    RunsFn          *fn;
    void            *self;
    uint32_t         n;
    _Atomic uint32_t next;
    pthread_mutex_t  lock;  // of what is below
    Err              err;
    char             why[512];
};

Err runs_create(Runs **out, uint32_t threads, Arena *a) {
    Runs *r = arena_new(a, Runs, 1);
    if (threads > CORES_MAX) threads = CORES_MAX;
    TRY(team_create(&r->team, threads, NULL));
    (void)pthread_mutex_init(&r->lock, NULL);
    *out = r;
    for (uint32_t i = 0; i < threads; i++) {
        Err e = arena_init(&r->arenas[i], (size_t)1 << JOB_BYTES_SHIFT);
        if (e == ERR_OK) continue;
        runs_destroy(r);
        return e;
    }
    return ERR_OK;
}

void runs_destroy(Runs *r) {
    if (r == NULL) return;
    for (uint32_t i = 0; i < CORES_MAX; i++) arena_finish(&r->arenas[i]);
    team_destroy(r->team);
    (void)pthread_mutex_destroy(&r->lock);
}

Team *runs_team(Runs *r) { return r->team; }

static void fail(Runs *r, Err e) {
    (void)pthread_mutex_lock(&r->lock);
    if (r->err == ERR_OK) {
        r->err = e;
        (void)snprintf(r->why, sizeof r->why, "%s", err_why());
    }
    (void)pthread_mutex_unlock(&r->lock);
    atomic_store(&r->next, r->n);
}

static void work(void *ctx, uint32_t index, uint32_t count) {
    Runs *r = ctx;
    (void)count;
    for (uint32_t i; (i = atomic_fetch_add(&r->next, 1)) < r->n;) {
        arena_rewind(&r->arenas[index], 0);
        Err e = r->fn(r->self, i, &r->arenas[index]);
        if (e != ERR_OK) fail(r, e);
    }
}

Err runs_each(Runs *r, uint32_t n, RunsFn *fn, void *self) {
    r->fn = fn;
    r->self = self;
    r->n = n;
    r->err = ERR_OK;
    atomic_store(&r->next, 0);
    team_run(r->team, work, r);
    return r->err == ERR_OK ? ERR_OK : err_set(r->err, "%s", r->why);
}
