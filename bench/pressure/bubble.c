#include "bench/pressure/bubble.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/sync.h"

// A triad: two streams are read, one is written, one step at a time.
enum {
    STEP_BYTES = 16 << 10,
    STREAMS = 3,
    CHUNK_BYTES = STREAMS * STEP_BYTES,
    HUGE_PAGE = 2 << 20
};

struct Bubble {
    const Isa       *isa;
    Arena            memory;
    char            *base;
    size_t           most;  // multiple of CHUNK_BYTES
    pthread_t        thread;
    _Atomic uint32_t changes;  // incremented by each bubble_set
    _Atomic size_t   bytes;
    _Atomic uint64_t bytes_per_ms;  // 0: no limit
    _Atomic uint64_t moved;
    _Atomic bool     stop;
};

static void triad(Bubble *b, size_t at) {
    float *a = (float *)(void *)(b->base + at);
    size_t n = STEP_BYTES / sizeof *a;
    b->isa->probe_triad(a + n, a + 2 * n, n, a);
    atomic_fetch_add_explicit(&b->moved, CHUNK_BYTES, memory_order_relaxed);
}

static void throttle(TimeNs start, uint64_t moved, uint64_t bytes_per_ms) {
    if (bytes_per_ms == 0) return;
    TimeNs due = start + (TimeNs)((double)moved / (double)bytes_per_ms * 1e6);
    while (clock_now(clock_monotonic()) < due) spin_pause();
}

// Until the next bubble_set.
static void stream(Bubble *b, uint32_t notify) {
    size_t   bytes = atomic_load(&b->bytes), at = 0;
    uint64_t limit = atomic_load(&b->bytes_per_ms), moved = 0;
    TimeNs   start = clock_now(clock_monotonic());
    while (atomic_load_explicit(&b->changes, memory_order_relaxed) == notify) {
        triad(b, at);
        moved += CHUNK_BYTES;
        at = at + (size_t)2 * CHUNK_BYTES <= bytes ? at + CHUNK_BYTES : 0;
        throttle(start, moved, limit);
    }
}

static void *work(void *bubble) {
    Bubble *b = bubble;
    memset(b->base, 0, b->most);
    for (;;) {
        uint32_t notify = atomic_load(&b->changes);
        if (atomic_load(&b->stop)) return NULL;
        if (atomic_load(&b->bytes) == 0)
            futex_wait(&b->changes, notify);
        else
            stream(b, notify);
    }
}

static void notify(Bubble *b) {
    atomic_fetch_add(&b->changes, 1);
    futex_wake(&b->changes, 1);
}

static Err start(Bubble *b, int32_t cpu) {
    cpu_set_t set;
    int       bad = pthread_create(&b->thread, NULL, work, b);
    if (bad != 0) return err_set(ERR_LIMIT, "cannot start a thread: %s", strerror(bad));
    CPU_ZERO(&set);
    if (cpu >= 0 && cpu < CPU_SETSIZE) {
        CPU_SET((size_t)cpu, &set);
        (void)pthread_setaffinity_np(b->thread, sizeof set, &set);
    }
    return ERR_OK;
}

Err bubble_create(Bubble **out, const Isa *isa, int32_t cpu, size_t most_bytes) {
    Arena  a = {0};
    size_t most = (most_bytes / CHUNK_BYTES + 1) * CHUNK_BYTES;
    if (most_bytes > (size_t)1 << 40)
        return err_set(ERR_LIMIT, "%zu bytes are too many", most_bytes);
    TRY(arena_init(&a, most + (size_t)2 * HUGE_PAGE));
    Bubble *b = arena_new(&a, Bubble, 1);
    b->isa = isa;
    b->most = most;
    b->base = arena_alloc(&a, 1, most, HUGE_PAGE);
    (void)madvise(b->base, most, MADV_HUGEPAGE);
    b->memory = a;
    Err e = start(b, cpu);
    if (e == ERR_OK)
        *out = b;
    else
        arena_finish(&a);
    return e;
}

void bubble_destroy(Bubble *b) {
    if (b == NULL) return;
    atomic_store(&b->stop, true);
    notify(b);
    CHECK(pthread_join(b->thread, NULL) == 0);
    Arena a = b->memory;
    arena_finish(&a);
}

void bubble_set(Bubble *b, size_t bytes, double gbs) {
    size_t most = bytes < b->most ? bytes : b->most;
    atomic_store(&b->bytes, most);
    atomic_store(&b->bytes_per_ms, gbs > 0 ? (uint64_t)(gbs * 1e6) : 0);
    notify(b);
}

uint64_t bubble_moved(const Bubble *b) {
    return atomic_load_explicit(&b->moved, memory_order_relaxed);
}
