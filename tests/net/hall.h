// Hall: a server of HTTP/2 on a thread of its own, and what its handler saw. For tests.
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "net/listener.h"

enum { HALL_HELD = 64 };

typedef struct Hall {  // a server, and what its handler saw
    Loop            *loop;
    Listener        *listener;
    pthread_t        thread;
    LoopPost         post;
    _Atomic bool     posted;
    Exchange        *held[HALL_HELD];
    uint32_t         n_held;
    ExchangeBody    *lent;
    size_t           aligned;
    _Atomic uint32_t heads, requests, ended, sent;
    ListenerCounts   counts;
    bool             drained;
} Hall;

// Answers /echo with the body, /big?N with N bytes, /early before the body, and /hold when told to.
Hall *hall_open(const ListenerLimits *limits);
// Everything that began has ended, and nothing is held.
void hall_close(Hall *h);
// Calls one of the following on the loop's thread and waits for it.
void hall_do(Hall *h, void (*f)(void *));
void hall_read_counts(void *self);
void hall_answer_held(void *self);
void hall_drain(void *self);
void hall_eventually(const _Atomic uint32_t *n, uint32_t want);
void hall_until_closed(Hall *h);
