// H2Server: an HTTP/2 server for tests on its own thread, which counts the calls of its handler.
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "net/listener.h"

enum { H2_SERVER_HELD = 64 };

typedef struct H2Server {
    Loop            *loop;
    Listener        *listener;
    pthread_t        thread;
    LoopPost         post;
    _Atomic bool     posted;
    Exchange        *held[H2_SERVER_HELD];
    uint32_t         n_held;
    ExchangeBody    *lent;
    size_t           aligned;
    Budget           budget;  // of the listener; a response is charged to it
    _Atomic uint32_t heads, requests, ended, sent;
    ListenerCounts   counts;
    bool             drained;
} H2Server;

// /echo returns the body, /big?N N bytes, /early a response before the body arrived; /hold waits
// for h2_server_answer_held.
H2Server *h2_server_open(const ListenerLimits *limits);
H2Server *h2_server_open_within(const ListenerLimits *limits, size_t budget);  // bytes; 0: any
// Asserts that every exchange has ended and no body is held.
void h2_server_close(H2Server *h);
// Calls one of the following on the loop's thread and waits for it.
void h2_server_do(H2Server *h, void (*f)(void *));
void h2_server_read_counts(void *self);
void h2_server_answer_held(void *self);
void h2_server_drain(void *self);
void h2_server_eventually(const _Atomic uint32_t *n, uint32_t want);
void h2_server_until_closed(H2Server *h);
