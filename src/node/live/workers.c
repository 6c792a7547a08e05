#include "node/live/workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/run_delay.h"
#include "base/thread.h"
#include "base/clock.h"
#include "base/fp.h"
#include "base/sync.h"

enum { SPIN_ROUNDS = 128, YIELDED_NS = 100000, NICE_LEAST = 19, NICE_STEP = 8 };

// Threads of blocks that have cores wake up beside others; a demoted one has the usual slice.
enum { SLICE_NS = 100000 };

// Spare threads beyond this many, and two per core, end.
enum { SPARES_KEPT = 8 };

struct Worker {
    _Alignas(128) _Atomic uint32_t posted;  // jobs posted
    _Atomic uint32_t sleeps;
    _Atomic uint32_t last;  // number of the post that ends the thread, once dismissed
    _Atomic bool     dismissed;
    void            *job;
    uint32_t         index, core;
    _Atomic bool     spare;    // spare or demoted: sleeps at once, is bound to `core` with a job
    bool             lowered;  // has a low priority
    Workers         *all;
    pthread_t        thread;
    _Atomic pid_t    tid;   // 0: the thread has not begun
    _Atomic bool     left;  // it is about to end
    struct Worker   *next;  // in the list of spare threads, or in one of demoted threads
    struct Worker   *sibling;
};

struct Workers {
    WorkersOptions    o;
    _Atomic(Worker *) spares;
    _Atomic uint32_t  n_spares;
    Worker           *every;  // all threads that are not joined
    uint32_t          started;
    uint32_t          cpus[CORES_MAX];
    _Atomic(Worker *) at[];  // [n] by core
};

// Yields to other threads on this core: one may be about to post the next job. A thread that keeps
// the core for longer has work of its own: the worker sleeps, because spinning would spend its
// share of the CPU, and sched_yield gives up a whole time slice.
static bool spin_for_job(Worker *w, uint32_t seen) {
    TimeNs t = clock_monotonic_ns();
    for (TimeNs end = t + w->all->o.spin_ns, before = t; t < end; before = t) {
        if (spin_until_not(&w->posted, seen, SPIN_ROUNDS)) return true;
        (void)sched_yield();
        t = clock_monotonic_ns();
        if (t - before > YIELDED_NS) break;
    }
    return atomic_load(&w->posted) != seen;
}

// Both sides write one word and then read the other's, sequentially consistent: no wake-up is lost.
static void sleep_for_job(Worker *w, uint32_t seen) {
    atomic_store(&w->sleeps, 1);
    while (atomic_load(&w->posted) == seen) futex_wait(&w->posted, seen);
    atomic_store_explicit(&w->sleeps, 0, memory_order_relaxed);
}

bool workers_give(Workers *all, uint32_t core, void *job, uint32_t index) {
    CHECK(core < all->o.n);
    Worker *w = atomic_load(&all->at[core]);
    w->job = job;
    w->index = index;
    atomic_fetch_add(&w->posted, 1);
    return atomic_load(&w->sleeps) != 0;
}

void workers_wake(Workers *all, uint32_t core) {
    futex_wake(&atomic_load(&all->at[core])->posted, 1);
}

void workers_post(Workers *all, uint32_t core, void *job, uint32_t index) {
    if (workers_give(all, core, job, index)) workers_wake(all, core);
}

// The thread ends after the jobs posted so far. The last job stays in place: its thread may not
// have read it yet.
static void dismiss(Worker *w) {
    atomic_store(&w->last, atomic_load(&w->posted) + 1);
    atomic_store(&w->dismissed, true);
    atomic_fetch_add(&w->posted, 1);
    futex_wake(&w->posted, 1);
}

static void bind_to(const Worker *w, uint32_t core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (w->all->o.cpus == NULL || w->all->o.cpus[core] >= CPU_SETSIZE) return;
    CPU_SET((size_t)w->all->o.cpus[core], &set);
    (void)pthread_setaffinity_np(w->thread, sizeof set,
                                 &set);  // fails if the CPU is offline: not bound
}

// A spare thread learns its core with its first job.
static void begin_job(Worker *w) {
    if (atomic_exchange(&w->spare, false)) {
        bind_to(w, w->core);
        thread_set_slice(0, SLICE_NS);
    }
    w->all->o.run(w->all->o.ctx, w->core, w->job, w->index);
}

static void *work(void *self) {
    Worker *w = self;
    (void)fpu_flush_denormals();
    thread_set_slice(0, SLICE_NS);
    atomic_store(&w->tid, (pid_t)syscall(SYS_gettid));
    for (uint32_t seen = 0;; seen++) {
        if (atomic_load(&w->spare) || !spin_for_job(w, seen)) sleep_for_job(w, seen);
        if (atomic_load(&w->dismissed) && atomic_load(&w->last) == seen + 1) break;
        begin_job(w);
    }
    atomic_store(&w->left, true);
    return NULL;
}

static Err start_one(Workers *all, uint32_t core, bool spare, Worker **out) {
    char    name[16] = "core";
    Worker *w = aligned_alloc(_Alignof(Worker), sizeof(Worker));
    if (w == NULL) return err_set(ERR_LIMIT, "no memory for a worker");
    *w = (Worker){.core = core, .all = all, .spare = spare};
    if (!spare) (void)snprintf(name, sizeof name, "core-%u", core);
    Err e = thread_start(&w->thread, name, work, w);
    if (e != ERR_OK) {
        free(w);
        return e;
    }
    w->sibling = all->every;
    all->every = w;
    *out = w;
    return ERR_OK;
}

static void put_spare(Workers *all, Worker *w) {
    w->next = atomic_load(&all->spares);
    while (!atomic_compare_exchange_weak(&all->spares, &w->next, w)) continue;
    atomic_fetch_add(&all->n_spares, 1);
}

Err workers_add_spare(Workers *all) {
    Worker *w = NULL;
    TRY(start_one(all, 0, true, &w));
    put_spare(all, w);
    return ERR_OK;
}

uint32_t workers_spares(const Workers *all) { return atomic_load(&all->n_spares); }

// Takes from the list at one place only, so its head cannot be replaced by an equal one meanwhile.
static Worker *take_spare(Workers *all) {
    Worker *w = atomic_load(&all->spares);
    while (w != NULL && !atomic_compare_exchange_weak(&all->spares, &w, w->next)) continue;
    if (w != NULL) atomic_fetch_sub(&all->n_spares, 1);
    return w;
}

// Its thread may sleep still: between workers_give and workers_wake, which will find the spare. So
// it is woken here.
static Worker *demote_one(Workers *all, uint32_t core) {
    Worker *old = atomic_load(&all->at[core]), *w = take_spare(all);
    CHECK(w != NULL);
    w->core = core;
    atomic_store(&all->at[core], w);
    atomic_store(&old->spare, true);
    if (atomic_load(&old->sleeps) != 0) futex_wake(&old->posted, 1);
    thread_set_slice(atomic_load(&old->tid), 0);
    return old;
}

Worker *workers_demote(Workers *all, const Cores *cores) {
    Worker *list = NULL;
    for (uint32_t c = cores_next(cores, 0); c < CORES_MAX; c = cores_next(cores, c + 1)) {
        Worker *w = demote_one(all, c);
        w->next = list;
        list = w;
    }
    return list;
}

void workers_move(Workers *all, Worker *demoted, uint32_t core) {
    CHECK(core < all->o.n);
    for (Worker *w = demoted; w != NULL; w = w->next) bind_to(w, core);
}

static TimeNs cpu_ns(const Worker *w) {
    struct timespec t = {0};
    clockid_t       clock;
    if (pthread_getcpuclockid(w->thread, &clock) == 0) (void)clock_gettime(clock, &t);
    return (TimeNs)t.tv_sec * 1000000000 + t.tv_nsec;
}

TimeNs worker_list_cpu_ns(const Worker *demoted) {
    TimeNs sum = 0;
    for (const Worker *w = demoted; w != NULL; w = w->next) sum += cpu_ns(w);
    return sum;
}

// A sixth of the weight of other threads. Not less: a thread that hardly runs may hold a lock of
// the system, such as that of the address space, and all others would wait for it. The thread
// cannot end before dismiss(), so its number is not another thread's.
void workers_lower(Worker *demoted) {
    for (Worker *w = demoted; w != NULL; w = w->next) {
        pid_t tid = atomic_load(&w->tid);
        int   nice = getpriority(PRIO_PROCESS, (id_t)tid) + NICE_STEP;
        (void)setpriority(PRIO_PROCESS, (id_t)tid, nice < NICE_LEAST ? nice : NICE_LEAST);
        w->lowered = true;
    }
}

void workers_take_back(Workers *all, Worker *demoted) {
    while (demoted != NULL) {
        Worker *w = demoted;
        demoted = w->next;
        if (w->lowered || workers_spares(all) >= SPARES_KEPT + 2 * all->o.n) {
            dismiss(w);
            continue;
        }
        atomic_store(&w->spare, true);
        put_spare(all, w);
    }
}

bool workers_begun(const Workers *all, const Cores *cores) {
    for (uint32_t c = cores_next(cores, 0); c < CORES_MAX; c = cores_next(cores, c + 1))
        if (atomic_load(&atomic_load(&all->at[c])->tid) == 0) return false;
    return true;
}

TimeNs workers_cpu_ns(const Workers *all, const Cores *cores) {
    TimeNs sum = 0;
    for (uint32_t c = cores_next(cores, 0); c < CORES_MAX; c = cores_next(cores, c + 1))
        sum += cpu_ns(atomic_load(&all->at[c]));
    return sum;
}

TimeNs workers_delay_ns(const Workers *all, const Cores *cores) {
    TimeNs sum = 0;
    for (uint32_t c = cores_next(cores, 0); c < CORES_MAX; c = cores_next(cores, c + 1)) {
        TimeNs one = run_delay_of(atomic_load(&atomic_load(&all->at[c])->tid));
        if (one < 0) return -1;
        sum += one;
    }
    return sum;
}

static void join_one(Worker *w) {
    CHECK(pthread_join(w->thread, NULL) == 0);
    free(w);
}

void workers_join_ended(Workers *all) {
    for (Worker **at = &all->every; *at != NULL;) {
        Worker *w = *at;
        if (!atomic_load(&w->left)) {
            at = &w->sibling;
            continue;
        }
        *at = w->sibling;
        join_one(w);
    }
}

static Err start_all(Workers *all) {
    while (all->started < all->o.n) {
        Worker *w = NULL;
        TRY(start_one(all, all->started, false, &w));
        atomic_store(&all->at[all->started++], w);
        bind_to(w, w->core);
    }
    return ERR_OK;
}

Err workers_create(Workers **out, const WorkersOptions *o) {
    CHECK(o->n > 0 && o->n <= CORES_MAX && o->run != NULL);
    Workers *w = calloc(1, sizeof(Workers) + o->n * sizeof(Worker *));
    if (w == NULL) return err_set(ERR_LIMIT, "no memory for %u workers", o->n);
    w->o = *o;
    if (o->cpus != NULL) memcpy(w->cpus, o->cpus, o->n * sizeof *o->cpus);
    w->o.cpus = o->cpus != NULL ? w->cpus : NULL;
    Err e = start_all(w);
    if (e == ERR_OK)
        *out = w;
    else
        workers_destroy(w);
    return e;
}

void workers_destroy(Workers *all) {
    if (all == NULL) return;
    for (Worker *w = all->every; w != NULL; w = w->sibling)
        if (!atomic_load(&w->dismissed)) dismiss(w);
    while (all->every != NULL) {
        Worker *w = all->every;
        all->every = w->sibling;
        join_one(w);
    }
    free(all);
}
