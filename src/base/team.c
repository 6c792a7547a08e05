#include "base/team.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fp.h"
#include "base/sync.h"

// Waking a sleeping thread costs tens of microseconds, so a worker spins before it sleeps.
enum { SPIN_NS = 150000, SPIN_ROUNDS = 256, CPU_NONE = -1, CPUS_MAX = 1 << 14 };

typedef struct Member {
    _Alignas(128) _Atomic uint32_t posted;  // runs posted to it
    _Atomic uint32_t sleeps;
    uint32_t         index;
    int32_t          cpu;
    pthread_t        thread;
    Team            *team;
} Member;

struct Team {
    _Alignas(128) TeamFn *fn;  // function of the current run; NULL: exit
    void    *ctx;
    uint32_t count;
    _Alignas(128) _Atomic uint32_t done;  // finished workers, over all runs
    Barrier   barrier;
    uint32_t  size, started;
    cpu_set_t before;  // the caller's affinity before team_pin
    bool      pinned;
    Member    members[];
};

static bool spin_for_call(Member *m, uint32_t seen) {
    Clock  clock = clock_monotonic();
    TimeNs end = clock_now(clock) + SPIN_NS;
    do {
        if (spin_until_not(&m->posted, seen, SPIN_ROUNDS)) return true;
    } while (clock_now(clock) < end);
    return false;
}

static void sleep_for_call(Member *m, uint32_t seen) {
    atomic_store(&m->sleeps, 1);
    while (atomic_load(&m->posted) == seen) futex_wait(&m->posted, seen);
    atomic_store_explicit(&m->sleeps, 0, memory_order_relaxed);
}

// Each side writes its word before it reads the other's (sequentially consistent), so that no
// wake-up is lost.
static void call(Member *m) {
    uint32_t posted = atomic_load_explicit(&m->posted, memory_order_relaxed) + 1;
    atomic_store(&m->posted, posted);
    if (atomic_load(&m->sleeps) != 0) futex_wake(&m->posted, 1);
}

static void *work(void *member) {
    Member *m = member;
    Team   *t = m->team;
    (void)fpu_flush_denormals();
    for (uint32_t seen = 0;; seen++) {
        if (!spin_for_call(m, seen)) sleep_for_call(m, seen);
        if (t->fn == NULL) return NULL;
        t->fn(t->ctx, m->index, t->count);
        atomic_fetch_add_explicit(&t->done, 1, memory_order_release);
    }
}

static void pin_thread(pthread_t thread, int32_t cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu < 0 || cpu >= CPU_SETSIZE) return;
    CPU_SET((size_t)cpu, &set);
    (void)pthread_setaffinity_np(thread, sizeof set, &set);  // best effort: the CPU may be offline
}

// CPUs of the affinity mask, from the caller's on; none if they are too few.
static void choose_cpus(Team *t) {
    cpu_set_t set;
    int       here = sched_getcpu();
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < (int)t->size) return;
    if (here < 0) here = 0;
    uint32_t n = 0;
    for (int i = 0; i < CPU_SETSIZE && n < t->size; i++) {
        int cpu = (here + i) % CPU_SETSIZE;
        if (CPU_ISSET((size_t)cpu, &set)) t->members[n++].cpu = cpu;
    }
}

static Err start(Team *t) {
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);  // signals go to the calling thread
    int bad = 0;
    for (t->started = 1; t->started < t->size; t->started++) {
        Member *m = &t->members[t->started];
        char    name[16];
        bad = pthread_create(&m->thread, NULL, work, m);
        if (bad != 0) break;
        (void)snprintf(name, sizeof name, "team-%u", m->index);
        (void)pthread_setname_np(m->thread, name);
        pin_thread(m->thread, m->cpu);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return bad == 0 ? ERR_OK
                    : err_set(ERR_LIMIT, "cannot start thread %u of %u: %s", t->started + 1,
                              t->size, strerror(bad));
}

Err team_create(Team **out, uint32_t threads, const uint32_t *cpus) {
    CHECK(threads > 0);
    if (threads > TEAM_MAX)
        return err_set(ERR_LIMIT, "%u threads are more than %d", threads, TEAM_MAX);
    Team *t = aligned_alloc(_Alignof(Team), sizeof(Team) + threads * sizeof(Member));
    if (t == NULL) return err_set(ERR_LIMIT, "no memory for %u threads", threads);
    memset(t, 0, sizeof(Team) + threads * sizeof(Member));
    t->size = threads;
    for (uint32_t i = 0; i < threads; i++) {
        CHECK(cpus == NULL || cpus[i] < CPUS_MAX);
        int32_t cpu = cpus != NULL ? (int32_t)cpus[i] : CPU_NONE;
        t->members[i] = (Member){.index = i, .cpu = cpu, .team = t};
    }
    if (cpus == NULL) choose_cpus(t);
    Err e = start(t);
    if (e == ERR_OK)
        *out = t;
    else
        team_destroy(t);
    return e;
}

void team_destroy(Team *t) {
    if (t == NULL) return;
    team_unpin(t);
    t->fn = NULL;
    for (uint32_t i = 1; i < t->started; i++) call(&t->members[i]);
    for (uint32_t i = 1; i < t->started; i++) CHECK(pthread_join(t->members[i].thread, NULL) == 0);
    free(t);
}

uint32_t team_size(const Team *t) { return t->size; }

void team_run_some(Team *t, uint32_t count, TeamFn *fn, void *ctx) {
    CHECK(fn != NULL && t->fn == NULL && count > 0 && count <= t->size);
    t->fn = fn;
    t->ctx = ctx;
    t->count = count;
    uint32_t done = atomic_load_explicit(&t->done, memory_order_relaxed);
    for (uint32_t i = 1; i < count; i++) call(&t->members[i]);
    FpuState before = fpu_flush_denormals();
    fn(ctx, 0, count);
    fpu_restore(before);
    for (uint32_t now = done; now != done + count - 1;) {
        spin_wait_not(&t->done, now);
        now = atomic_load_explicit(&t->done, memory_order_acquire);
    }
    t->fn = NULL;
}

void team_run(Team *t, TeamFn *fn, void *ctx) { team_run_some(t, t->size, fn, ctx); }

void team_barrier(Team *t) { barrier_wait(&t->barrier, t->count); }

void team_pin(Team *t) {
    if (t->pinned || t->members[0].cpu < 0) return;
    if (sched_getaffinity(0, sizeof t->before, &t->before) != 0) return;
    pin_thread(pthread_self(), t->members[0].cpu);
    t->pinned = true;
}

void team_unpin(Team *t) {
    if (t->pinned) (void)sched_setaffinity(0, sizeof t->before, &t->before);
    t->pinned = false;
}
