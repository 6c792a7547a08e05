// Futex: sleep on a word until somebody who changed it wakes us. Linux alone.
#pragma once

#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

// Returns at once when *word is not old; may return for no reason, so look again.
static inline void futex_wait(_Atomic uint32_t *word, uint32_t old) {
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
}

static inline void futex_wake(_Atomic uint32_t *word, uint32_t sleepers) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, sleepers, NULL, NULL, 0);
}
