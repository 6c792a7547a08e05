// Barrier: threads wait here until all have come. It spins: for waits of microseconds.
#pragma once

#include <stdint.h>

#include "base/spin.h"

typedef struct Barrier {  // zeroed is ready, and ready again after each meeting
    _Alignas(64) _Atomic uint32_t arrived;
    _Alignas(64) _Atomic uint32_t phase;
} Barrier;

// Returns once `count` threads are here, all of which give the same count.
static inline void barrier_wait(Barrier *b, uint32_t count) {
    uint32_t phase = atomic_load_explicit(&b->phase, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) + 1 < count) {
        spin_wait_not(&b->phase, phase);
        return;
    }
    atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&b->phase, phase + 1, memory_order_release);
}
