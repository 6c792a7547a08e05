// Synchronisation between threads: spinning, futexes, and a spinning barrier.
#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static inline void spin_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Spins until *word differs from old, for at most `rounds` reads; true if it changed.
static inline bool spin_until_not(const _Atomic uint32_t *word, uint32_t old, uint32_t rounds) {
    for (uint32_t i = 0; i < rounds; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != old) return true;
        spin_pause();
    }
    return atomic_load_explicit(word, memory_order_acquire) != old;
}

// Spins until *word differs from old; yields the CPU at times, in case threads outnumber cores.
static inline void spin_wait_not(const _Atomic uint32_t *word, uint32_t old) {
    while (!spin_until_not(word, old, 4096)) (void)sched_yield();
}

// Sleeps until futex_wake, or returns at once if *word is not old. Wakes spuriously: check again.
static inline void futex_wait(_Atomic uint32_t *word, uint32_t old) {
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
}

// The same with a timeout.
static inline void futex_wait_for(_Atomic uint32_t *word, uint32_t old, TimeNs timeout) {
    struct timespec t = {.tv_sec = timeout / 1000000000, .tv_nsec = timeout % 1000000000};
    if (timeout > 0) (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, &t, NULL, 0);
}

static inline void futex_wake(_Atomic uint32_t *word, uint32_t sleepers) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, sleepers, NULL, NULL, 0);
}

// A barrier for waits of microseconds: it spins. Starts zeroed, and can be used again at once.
typedef struct Barrier {
    _Alignas(64) _Atomic uint32_t arrived;
    _Alignas(64) _Atomic uint32_t phase;
} Barrier;

// Returns when `count` threads have called it, all with the same count.
static inline void barrier_wait(Barrier *b, uint32_t count) {
    uint32_t phase = atomic_load_explicit(&b->phase, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) + 1 < count) {
        spin_wait_not(&b->phase, phase);
        return;
    }
    atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&b->phase, phase + 1, memory_order_release);
}
