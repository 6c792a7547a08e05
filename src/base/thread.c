#include "base/thread.h"

#include <signal.h>
#include <string.h>

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
