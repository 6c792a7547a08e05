#include "base/work_stop.h"

#include <string.h>

enum { COPY_PIECE = 1 << 18 };  // bytes

static const _Atomic bool never = false;

_Thread_local const _Atomic bool *work_stop_flag = &never;

const _Atomic bool *work_stop_watch(const _Atomic bool *flag) {
    const _Atomic bool *before = work_stop_flag;
    work_stop_flag = flag != NULL ? flag : &never;
    return before;
}

Err work_stop_check(void) {
    return work_stopped() ? err_set(ERR_LIMIT, "stopped: the run took too long") : ERR_OK;
}

void work_copy(void *to, const void *from, size_t n) {
    size_t at = 0;
    for (; n - at > COPY_PIECE; at += COPY_PIECE) {
        if (work_stopped()) return;
        memcpy((char *)to + at, (const char *)from + at, COPY_PIECE);
    }
    if (n > at) memcpy((char *)to + at, (const char *)from + at, n - at);
}
