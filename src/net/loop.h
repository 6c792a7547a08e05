// Loop: an event loop on one thread: sockets (epoll), timers, and calls posted by other threads.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/clock.h"

typedef struct Loop Loop;

// A watched descriptor. Its owner must not move it while it is watched.
typedef struct LoopFd {
    int      fd;
    uint32_t events;  // EPOLLIN, EPOLLOUT
    void (*ready)(void    *self,
                  uint32_t events);  // may call loop_forget for this and other descriptors
    void *self;
    // Owned by the loop. After a long turn it waits until the others were handled.
    struct LoopFd *next, *prev;
    uint32_t       came;  // events that wait
    bool           slow, waits;
} LoopFd;

typedef struct LoopTimer {  // zeroed but for fire and self: not armed
    TimeNs at;
    void (*fire)(void *self);
    void    *self;
    uint32_t place;  // in the loop's heap, plus 1; 0: not armed
} LoopTimer;

enum { LOOP_STRETCHES = 5 };

typedef struct LoopCounts {          // turns: calls of ready, fire and run
    uint64_t turns[LOOP_STRETCHES];  // by length: up to 0.1, 1, 10, 100 ms, more
    TimeNs   total, longest;
    TimeNs   worked;    // CPU time of the turn that had most of it, at most 0.5 ms too high
    uint64_t overlong;  // turns with more than 1 ms of CPU time
} LoopCounts;

typedef struct LoopPost {  // a call from another thread; in the poster's memory until it runs
    _Atomic(struct LoopPost *) next;
    void (*run)(void *self);
    void *self;
} LoopPost;

MUST_USE Err loop_create(Loop **out);
void         loop_destroy(Loop *l);  // accepts NULL

// On the loop's thread, like all but loop_post and loop_stop.
MUST_USE Err loop_watch(Loop *l, LoopFd *f);
void         loop_events(Loop *l, LoopFd *f, uint32_t events);  // events to wait for from now on
void         loop_forget(Loop *l, LoopFd *f);                   // before the descriptor is closed
MUST_USE Err loop_arm(Loop *l, LoopTimer *t, TimeNs at);  // monotonic clock; rearming moves it
void         loop_disarm(Loop *l, LoopTimer *t);
TimeNs       loop_now(const Loop *l);       // start of the current turn
bool         loop_overtime(const Loop *l);  // the current turn has taken half a millisecond
LoopCounts   loop_counts(const Loop *l);

MUST_USE Err loop_run(Loop *l);                   // until loop_stop
void         loop_stop(Loop *l);                  // from any thread, and from signal handlers
void         loop_post(Loop *l, LoopPost *post);  // from any thread; never waits, never fails
