// WorkStop: lets long loops end early when the run they belong to was told to stop, and sleep while
// it was told to pause. The result of a stopped loop is incomplete: its caller checks the flag
// afterwards and reports the run as stopped.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { WORK_BLOCK = 4096 };  // elements between two looks at the flag, where one takes nanoseconds

typedef enum WorkState { WORK_GO, WORK_STOP, WORK_PAUSE } WorkState;

typedef _Atomic uint32_t WorkFlag;  // a WorkState; a futex of the threads that pause

extern _Thread_local WorkFlag *work_stop_flag;  // of the work of this thread; never NULL

// The flag of the work that this thread does from now on; NULL: none. Returns the one before.
WorkFlag *work_stop_watch(WorkFlag *flag);

// Sets the flag, unless it says WORK_STOP already, and wakes threads that sleep at it. Threads that
// look at a flag that says WORK_PAUSE sleep until it says something else, so no lock may be held at
// a look.
void work_stop_tell(WorkFlag *flag, WorkState state);

bool work_stop_heed(void);  // sleeps while the flag says WORK_PAUSE; true: stop

static inline bool work_stopped(void) {
    uint32_t state = atomic_load_explicit(work_stop_flag, memory_order_relaxed);
    return __builtin_expect(state != WORK_GO, 0) && work_stop_heed();
}

MUST_USE Err work_stop_check(void);  // ERR_LIMIT if the work was told to stop

// End of the block of [from, n) that may be worked on before the next look; `from`: stop.
static inline int64_t work_block(int64_t from, int64_t n) {
    if (work_stopped() || from >= n) return from;
    return n - from < WORK_BLOCK ? n : from + WORK_BLOCK;
}

// for (int64_t i = 0; i < n; i++), which ends early if the work was told to stop; the body must not
// contain `break`.
#define WORK_EACH(i, n)                                                                            \
    for (int64_t i##_from = 0, i##_to; (i##_to = work_block(i##_from, (n))) > i##_from;            \
         i##_from = i##_to)                                                                        \
        for (int64_t i = i##_from; i < i##_to; i++)

void work_copy(void *to, const void *from, size_t n);  // memcpy that may end early; accepts n = 0
// memcpy that pauses when the work was told to, and is always complete; accepts n = 0.
void work_copy_all(void *to, const void *from, size_t n);
