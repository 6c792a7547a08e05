// Spin: waiting for another core without sleeping, and giving way when that takes long.
#pragma once

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

static inline void spin_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Until *word differs from old, or after `rounds` looks at it: did it change?
static inline bool spin_until_not(const _Atomic uint32_t *word, uint32_t old, uint32_t rounds) {
    for (uint32_t i = 0; i < rounds; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != old) return true;
        spin_pause();
    }
    return atomic_load_explicit(word, memory_order_acquire) != old;
}

// Until *word differs from old. Others run in between when there are more threads than cores.
static inline void spin_wait_not(const _Atomic uint32_t *word, uint32_t old) {
    while (!spin_until_not(word, old, 4096)) (void)sched_yield();
}
