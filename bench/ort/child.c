#include "bench/ort/child.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

Err child_send(int fd, const void *bytes, size_t n) {
    for (const char *at = bytes; n > 0;) {
        ssize_t put = write(fd, at, n);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return err_set(ERR_IO, "the other process is gone");
        at += put;
        n -= (size_t)put;
    }
    return ERR_OK;
}

Err child_take(int fd, void *bytes, size_t n) {
    for (char *at = bytes; n > 0;) {
        ssize_t got = read(fd, at, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return err_set(ERR_IO, "the other process is gone");
        at += got;
        n -= (size_t)got;
    }
    return ERR_OK;
}

Err child_start(Child *c, ChildFn *fn, const void *job) {
    int to[2], from[2];
    if (pipe(to) != 0) return err_set(ERR_IO, "no pipe: %s", strerror(errno));
    if (pipe(from) != 0) return err_set(ERR_IO, "no pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0) return err_set(ERR_IO, "no process: %s", strerror(errno));
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);  // a stopped child must not outlive its parent
        (void)close(to[1]);
        (void)close(from[0]);
        _exit(fn(job, to[0], from[1]) != ERR_OK);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    *c = (Child){.pid = pid, .to = to[1], .from = from[0]};
    return ERR_OK;
}

void child_hold(const Child *c) {
    (void)kill(c->pid, SIGSTOP);
    (void)waitpid(c->pid, NULL, WUNTRACED);
}

void child_wake(const Child *c) { (void)kill(c->pid, SIGCONT); }

void child_end(Child *c, const void *leave, size_t n) {
    if (c->pid == 0) return;
    child_wake(c);
    Err told =
        child_send(c->to, leave, n);  // closing is not enough: later children inherited the pipe
    (void)told;                       // a failed child has exited already
    (void)close(c->to);
    (void)close(c->from);
    (void)waitpid(c->pid, NULL, 0);
    *c = (Child){0};
}
