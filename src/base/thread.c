#include "base/thread.h"

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

Err thread_start(pthread_t *out, const char *name, void *(*run)(void *self), void *self) {
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int bad = pthread_create(out, NULL, run, self);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (bad != 0)
        return err_set(ERR_LIMIT, "cannot start thread '%s': %s; raise ulimit -u", name,
                       strerror(bad));
    (void)pthread_setname_np(*out, name);
    return ERR_OK;
}

// struct sched_attr of Linux: its header cannot be included beside <sched.h>.
typedef struct SchedAttr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t  nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
} SchedAttr;

void thread_set_slice(pid_t tid, TimeNs slice) {
    SchedAttr a = {.size = sizeof a};
    if (syscall(SYS_sched_getattr, tid, &a, sizeof a, 0) != 0 || a.policy != SCHED_OTHER) return;
    a.runtime = (uint64_t)slice;
    (void)syscall(SYS_sched_setattr, tid, &a, 0);
}
