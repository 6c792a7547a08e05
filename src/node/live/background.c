// A CPU-time timer interrupts the thread after each slice, and the signal handler
// sleeps in proportion. So even code that never yields keeps to its share.
#include "node/live/background.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/thread.h"

enum { SLICE_NS = 2000000, SECOND_NS = 1000000000, NICE_LEAST = 19, WHEN_IDLE = 20 };

struct Background {
    pthread_t     thread;
    double        share;
    int           nice;  // WHEN_IDLE: SCHED_IDLE
    BackgroundFn *fn;
    void         *ctx;
    Err           result;
    char          why[512];
    _Atomic bool  done;
};

static _Thread_local _Atomic int64_t rest_ns;

static void sleep_it_off(int signal) {
    (void)signal;
    int             before = errno;
    int64_t         ns = atomic_load_explicit(&rest_ns, memory_order_relaxed);
    struct timespec t = {.tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR) continue;
    errno = before;
}

static bool start_timer(timer_t *timer) {
    struct sigaction  act = {.sa_handler = sleep_it_off, .sa_flags = SA_RESTART};
    struct sigevent   event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 3};
    struct itimerspec every = {.it_value.tv_nsec = SLICE_NS, .it_interval.tv_nsec = SLICE_NS};
    sigset_t          ours;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGRTMIN + 3);
    if (sigaction(SIGRTMIN + 3, &act, NULL) != 0) return false;
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, timer) != 0) return false;
    (void)pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
    return timer_settime(*timer, 0, &every, NULL) == 0;
}

static void *work(void *self) {
    Background        *b = self;
    timer_t            timer = 0;
    struct sched_param none = {0};
    bool               idle = b->nice == WHEN_IDLE;
    // Without permission for SCHED_IDLE, a nice level.
    if (idle) (void)pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), idle ? NICE_LEAST : b->nice);
    atomic_store(&rest_ns, (int64_t)(SLICE_NS * (1 - b->share) / b->share));
    bool timed = b->share < 1 && start_timer(&timer);
    b->result = b->fn(b->ctx);
    if (b->result != ERR_OK) (void)snprintf(b->why, sizeof b->why, "%s", err_why());
    if (timed) (void)timer_delete(timer);
    atomic_store(&b->done, true);
    return NULL;
}

static Err start(Background **out, double share, int nice, BackgroundFn *fn, void *ctx) {
    Background *b = calloc(1, sizeof *b);
    if (b == NULL) return err_set(ERR_LIMIT, "no memory for a thread");
    CHECK(share > 0 && share <= 1);
    b->share = share;
    b->nice = nice;
    b->fn = fn;
    b->ctx = ctx;
    Err e = thread_start(&b->thread, "background", work, b);
    if (e == ERR_OK)
        *out = b;
    else
        free(b);
    return e;
}

Err background_start(Background **out, double share, BackgroundFn *fn, void *ctx) {
    return start(out, share, WHEN_IDLE, fn, ctx);
}

Err background_nice(Background **out, double share, int nice, BackgroundFn *fn, void *ctx) {
    CHECK(nice >= 0 && nice <= NICE_LEAST);
    return start(out, share, nice, fn, ctx);
}

bool background_done(const Background *b) { return atomic_load(&b->done); }

Err background_join(Background *b) {
    CHECK(pthread_join(b->thread, NULL) == 0);
    Err e = b->result == ERR_OK ? ERR_OK : err_set(b->result, "%s", b->why);
    free(b);
    return e;
}
