#include "net/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

enum { SLICE_NS = 100000 };  // of CPU time: the loop wakes up in time beside threads that compute
enum { LOOP_EVENTS = 512, LOOP_TIMERS = 64, LOOP_TRIES = 8 };

// LOOP_SLOW: a turn that makes a descriptor wait for others. LOOP_TURN: length of a turn that
// should end. LOOP_ROUND: time for descriptors, for slow ones and for timers, each, in a round.
// LOOP_READ: age of a reading of CPU time that is renewed; a reading takes about a microsecond.
static const TimeNs LOOP_SLOW = 100000, LOOP_TURN = 500000, LOOP_ROUND = 1000000;
static const TimeNs LOOP_READ = 500000, LOOP_OVERLONG = 1000000;

typedef struct LoopSlot {
    TimeNs     at;
    LoopTimer *timer;
} LoopSlot;

struct Loop {
    int                 epoll_fd, wake_fd;
    bool                coarse;  // epoll_wait has millisecond resolution only
    TimeNs              now;
    LoopSlot           *timers;  // binary heap, earliest first
    uint32_t            n_timers, cap_timers;
    struct epoll_event  events[LOOP_EVENTS];
    int                 n_events, at_event;  // of the current iteration
    LoopFd             *current;             // being handled; NULL: none, or forgotten
    LoopFd             *first, *last;        // slow ones with events
    LoopCounts          counts;
    TimeNs              cpu, cpu_at;  // CPU time of the thread, and when it was read
    _Atomic(LoopPost *) posts;        // newest first
    atomic_bool         asleep;       // about to block: a post must wake it
    atomic_bool         stop;
};

static Err loop_open(Loop *l) {
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll_fd < 0)
        return err_set(ERR_IO, "cannot create an epoll descriptor: %s", strerror(errno));
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->wake_fd < 0) return err_set(ERR_IO, "cannot create an eventfd: %s", strerror(errno));
    // Edge-triggered, so that it need not be read.
    struct epoll_event e = {.events = EPOLLIN | EPOLLET};
    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->wake_fd, &e) != 0)
        return err_set(ERR_IO, "epoll rejected the eventfd: %s", strerror(errno));
    return ERR_OK;
}

Err loop_create(Loop **out) {
    Loop *l = calloc(1, sizeof *l);
    if (!l) return err_set(ERR_LIMIT, "no memory for an event loop");
    l->epoll_fd = l->wake_fd = -1;
    l->now = clock_now(clock_monotonic());
    l->timers = malloc(LOOP_TIMERS * sizeof *l->timers);
    l->cap_timers = LOOP_TIMERS;
    Err e = l->timers ? loop_open(l) : err_set(ERR_LIMIT, "no memory for timers");
    if (e != ERR_OK) {
        loop_destroy(l);
        return e;
    }
    *out = l;
    return ERR_OK;
}

void loop_destroy(Loop *l) {
    if (!l) return;
    if (l->epoll_fd >= 0) close(l->epoll_fd);
    if (l->wake_fd >= 0) close(l->wake_fd);
    free(l->timers);
    free(l);
}

Err loop_watch(Loop *l, LoopFd *f) {
    struct epoll_event e = {.events = f->events, .data.ptr = f};
    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, f->fd, &e) == 0) return ERR_OK;
    return err_set(ERR_IO, "epoll rejected a descriptor: %s", strerror(errno));
}

void loop_events(Loop *l, LoopFd *f, uint32_t events) {
    if (f->events == events) return;
    struct epoll_event e = {.events = events, .data.ptr = f};
    // On failure the old events stay: one of them leads here again, or a timer ends the wait.
    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, f->fd, &e) == 0) f->events = events;
}

static void loop_queue(Loop *l, LoopFd *f, uint32_t events) {
    f->came = events;
    if (f->waits) return;
    f->waits = true;
    f->next = NULL;
    f->prev = l->last;
    if (l->last)
        l->last->next = f;
    else
        l->first = f;
    l->last = f;
}

static void loop_unqueue(Loop *l, LoopFd *f) {
    if (!f->waits) return;
    f->waits = false;
    if (f->prev)
        f->prev->next = f->next;
    else
        l->first = f->next;
    if (f->next)
        f->next->prev = f->prev;
    else
        l->last = f->prev;
}

void loop_forget(Loop *l, LoopFd *f) {
    struct epoll_event none = {0};
    if (l->current == f) l->current = NULL;
    loop_unqueue(l, f);
    epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, f->fd, &none);
    for (int i = l->at_event; i < l->n_events; i++)
        if (l->events[i].data.ptr == f) l->events[i].data.ptr = NULL;
}

static void loop_put(Loop *l, uint32_t place, LoopTimer *t) {
    l->timers[place] = (LoopSlot){t->at, t};
    t->place = place + 1;
}

static void loop_up(Loop *l, uint32_t place, LoopTimer *t) {
    while (place > 0 && l->timers[(place - 1) / 2].at > t->at) {
        loop_put(l, place, l->timers[(place - 1) / 2].timer);
        place = (place - 1) / 2;
    }
    loop_put(l, place, t);
}

static void loop_down(Loop *l, uint32_t place, LoopTimer *t) {
    for (uint32_t child; (child = 2 * place + 1) < l->n_timers; place = child) {
        if (child + 1 < l->n_timers && l->timers[child + 1].at < l->timers[child].at) child++;
        if (l->timers[child].at >= t->at) break;
        loop_put(l, place, l->timers[child].timer);
    }
    loop_put(l, place, t);
}

static void loop_settle(Loop *l, uint32_t place, LoopTimer *t) {
    if (place > 0 && l->timers[(place - 1) / 2].at > t->at)
        loop_up(l, place, t);
    else
        loop_down(l, place, t);
}

static Err loop_more_timers(Loop *l) {
    if (l->n_timers < l->cap_timers) return ERR_OK;
    uint32_t  cap = l->cap_timers * 2;
    LoopSlot *more = realloc(l->timers, cap * sizeof *more);
    if (!more) return err_set(ERR_LIMIT, "no memory for %u timers", cap);
    l->timers = more;
    l->cap_timers = cap;
    return ERR_OK;
}

Err loop_arm(Loop *l, LoopTimer *t, TimeNs at) {
    if (t->place == 0) {
        TRY(loop_more_timers(l));
        t->at = at;
        l->n_timers++;
        loop_up(l, l->n_timers - 1, t);
    } else if (t->at != at) {
        t->at = at;
        loop_settle(l, t->place - 1, t);
    }
    return ERR_OK;
}

void loop_disarm(Loop *l, LoopTimer *t) {
    if (t->place == 0) return;
    uint32_t   place = t->place - 1;
    LoopTimer *last = l->timers[--l->n_timers].timer;
    t->place = 0;
    if (last != t) loop_settle(l, place, last);
}

TimeNs loop_now(const Loop *l) { return l->now; }

bool loop_overtime(const Loop *l) { return clock_now(clock_monotonic()) - l->now > LOOP_TURN; }

LoopCounts loop_counts(const Loop *l) { return l->counts; }

static TimeNs loop_read_cpu(Loop *l) {
    struct timespec t = {0};
    TimeNs          before = l->cpu;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    l->cpu = (TimeNs)t.tv_sec * 1000000000 + t.tv_nsec;
    l->cpu_at = l->now;
    return l->cpu - before;
}

// A long turn may have waited for a core: its CPU time is what the loop answers for.
static void loop_note_long(Loop *l, TimeNs took) {
    TimeNs since = loop_read_cpu(l), worked = since < took ? since : took;
    if (worked > l->counts.worked) l->counts.worked = worked;
    if (worked > LOOP_OVERLONG) l->counts.overlong++;
}

// The end of a turn: the next one begins now. Returns its length.
static TimeNs loop_turned(Loop *l) {
    TimeNs   now = clock_now(clock_monotonic()), took = now - l->now;
    uint32_t i = 0;
    for (TimeNs most = 100000; i + 1 < LOOP_STRETCHES && took > most; most *= 10) i++;
    l->counts.turns[i]++;
    l->counts.total += took;
    if (took > l->counts.longest) l->counts.longest = took;
    l->now = now;
    if (took > LOOP_SLOW) loop_note_long(l, took);
    return took;
}

// A full eventfd wakes the loop too. Other errors are transient.
static bool loop_wake(Loop *l) {
    uint64_t one = 1;
    for (int i = 0; i < LOOP_TRIES; i++)
        if (write(l->wake_fd, &one, sizeof one) > 0 || errno == EAGAIN) return true;
    return false;
}

void loop_stop(Loop *l) {
    int kept = errno;
    atomic_store(&l->stop, true);
    (void)loop_wake(l);
    errno = kept;
}

void loop_post(Loop *l, LoopPost *post) {
    LoopPost *head = atomic_load_explicit(&l->posts, memory_order_relaxed);
    do atomic_store_explicit(&post->next, head, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&l->posts, &head, post));
    if (atomic_load(&l->asleep) && atomic_exchange(&l->asleep, false) && !loop_wake(l))
        atomic_store(&l->asleep, true);  // further posts wake the loop
}

static void loop_take_posts(Loop *l) {
    if (!atomic_load_explicit(&l->posts, memory_order_relaxed)) return;
    LoopPost *p = atomic_exchange(&l->posts, NULL), *ordered = NULL;
    while (p) {
        LoopPost *next = atomic_load_explicit(&p->next, memory_order_relaxed);
        atomic_store_explicit(&p->next, ordered, memory_order_relaxed);
        ordered = p;
        p = next;
    }
    while (ordered) {
        p = ordered;
        ordered = atomic_load_explicit(&p->next, memory_order_relaxed);
        p->run(p->self);  // may reuse the post immediately
        (void)loop_turned(l);
    }
}

static void loop_call(Loop *l, LoopFd *f, uint32_t events) {
    events &= f->events | EPOLLERR | EPOLLHUP;  // as wanted now
    if (events == 0) return;
    l->current = f;
    f->ready(f->self, events);
    bool slow = loop_turned(l) > LOOP_SLOW;
    if (l->current) l->current->slow = slow;
    l->current = NULL;
}

// What is left of the events is taken in the next round.
static void loop_take_events(Loop *l) {
    TimeNs end = l->now + LOOP_ROUND;
    while (l->at_event < l->n_events && l->now < end) {
        struct epoll_event *e = &l->events[l->at_event++];
        LoopFd             *f = e->data.ptr;
        if (f && (f->slow || f->waits))
            loop_queue(l, f, e->events);
        else if (f)
            loop_call(l, f, e->events);
    }
}

static void loop_take_slow(Loop *l) {
    TimeNs end = l->now + LOOP_ROUND;
    while (l->first && l->now < end) {
        LoopFd *f = l->first;
        loop_unqueue(l, f);
        loop_call(l, f, f->came);
    }
}

// A timer that rearms itself for now runs in the next round.
static void loop_take_timers(Loop *l) {
    TimeNs began = l->now;
    for (uint32_t most = l->n_timers; most > 0 && l->n_timers > 0; most--) {
        LoopTimer *t = l->timers[0].timer;
        if (t->at > began || l->now > began + LOOP_ROUND) break;
        loop_disarm(l, t);
        t->fire(t->self);
        (void)loop_turned(l);
    }
}

// Timeout of the wait; -1: none.
static TimeNs loop_patience(const Loop *l) {
    if (atomic_load(&l->posts) || atomic_load(&l->stop) || l->first) return 0;
    if (l->n_timers == 0 || l->timers[0].at == INT64_MAX) return -1;
    TimeNs left = l->timers[0].at - clock_now(clock_monotonic());
    return left > 0 ? left : 0;
}

static int loop_wait_coarse(Loop *l, TimeNs ns) {
    TimeNs ms = ns < 0 ? -1 : ns / 1000000 + (ns % 1000000 != 0);
    return epoll_wait(l->epoll_fd, l->events, LOOP_EVENTS, ms > 60000 ? 60000 : (int)ms);
}

static int loop_wait(Loop *l, TimeNs ns) {
    if (l->coarse || ns <= 0) return loop_wait_coarse(l, ns);
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    int             n = epoll_pwait2(l->epoll_fd, l->events, LOOP_EVENTS, &t, NULL);
    if (n >= 0 || (errno != ENOSYS && errno != EPERM)) return n;
    l->coarse = true;
    return loop_wait_coarse(l, ns);
}

static Err loop_poll(Loop *l) {
    atomic_store(&l->asleep, true);
    int n = loop_wait(l, loop_patience(l));
    atomic_store(&l->asleep, false);
    if (n < 0 && errno != EINTR) return err_set(ERR_IO, "epoll: %s", strerror(errno));
    l->n_events = n > 0 ? n : 0;
    l->at_event = 0;
    return ERR_OK;
}

static Err loop_round(Loop *l) {
    if (l->at_event == l->n_events) TRY(loop_poll(l));
    l->now = clock_now(clock_monotonic());
    if (l->now - l->cpu_at > LOOP_READ) (void)loop_read_cpu(l);
    loop_take_posts(l);
    loop_take_events(l);
    loop_take_slow(l);
    loop_take_timers(l);
    return ERR_OK;
}

Err loop_run(Loop *l) {
    thread_set_slice(0, SLICE_NS);
    l->now = clock_now(clock_monotonic());
    while (!atomic_exchange(&l->stop, false)) TRY(loop_round(l));
    return ERR_OK;
}
