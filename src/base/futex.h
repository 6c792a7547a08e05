// Futex: sleep on a word until somebody who changed it wakes us. Linux alone.
#pragma once

#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"

// Returns at once when *word is not old; may return for no reason, so look again.
static inline void futex_wait(_Atomic uint32_t *word, uint32_t old) {
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
}

// The same, for at most so long.
static inline void futex_wait_for(_Atomic uint32_t *word, uint32_t old, TimeNs most) {
    struct timespec t = {.tv_sec = most / 1000000000, .tv_nsec = most % 1000000000};
    if (most > 0) (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, &t, NULL, 0);
}

static inline void futex_wake(_Atomic uint32_t *word, uint32_t sleepers) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, sleepers, NULL, NULL, 0);
}
