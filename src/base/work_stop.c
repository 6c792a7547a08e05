#include "base/work_stop.h"

#include <limits.h>
#include <string.h>

#include "base/sync.h"

enum { COPY_PIECE = 1 << 18 };  // bytes

static WorkFlag never = WORK_GO;

_Thread_local WorkFlag *work_stop_flag = &never;

WorkFlag *work_stop_watch(WorkFlag *flag) {
    WorkFlag *before = work_stop_flag;
    work_stop_flag = flag != NULL ? flag : &never;
    return before;
}

void work_stop_tell(WorkFlag *flag, WorkState state) {
    uint32_t before = atomic_load(flag);
    do {
        if (before == WORK_STOP) return;
    } while (!atomic_compare_exchange_weak(flag, &before, state));
    if (before == WORK_PAUSE && state != WORK_PAUSE) futex_wake(flag, INT_MAX);
}

bool work_stop_heed(void) {
    WorkFlag *flag = work_stop_flag;
    uint32_t  state;
    while ((state = atomic_load_explicit(flag, memory_order_acquire)) == WORK_PAUSE)
        futex_wait(flag, WORK_PAUSE);
    return state == WORK_STOP;
}

Err work_stop_check(void) {
    return work_stopped() ? err_set(ERR_LIMIT, "stopped: the run took too long") : ERR_OK;
}

void work_copy_all(void *to, const void *from, size_t n) {
    for (size_t at = 0; at < n; at += COPY_PIECE) {
        (void)work_stopped();
        memcpy((char *)to + at, (const char *)from + at, n - at < COPY_PIECE ? n - at : COPY_PIECE);
    }
}

void work_copy(void *to, const void *from, size_t n) {
    size_t at = 0;
    for (; n - at > COPY_PIECE; at += COPY_PIECE) {
        if (work_stopped()) return;
        memcpy((char *)to + at, (const char *)from + at, COPY_PIECE);
    }
    if (n > at) memcpy((char *)to + at, (const char *)from + at, n - at);
}
