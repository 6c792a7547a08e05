// Inbox: requests on their way to the engine. Any thread puts, one at a time takes, nobody waits.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/tensor.h"
#include "base/time.h"
#include "sim/record.h"

typedef struct LiveAnswer {
    uint32_t      tenant;
    Outcome       outcome;
    TimeNs        arrival, finish;
    const char   *why;      // of a miss; NULL otherwise
    const Tensor *outputs;  // valid while the callback runs; NULL: there are none
    const char   *failed;   // what went wrong in a layer; NULL: nothing
} LiveAnswer;

typedef struct LiveAsk {
    uint32_t      tenant;
    TimeNs        arrival, deadline;  // by the steady clock
    const Tensor *inputs;             // valid until the answer; NULL: the tenant's own
    void (*done)(void *self, const LiveAnswer *a);  // on a worker: be quick, do not wait
    void *self;
} LiveAsk;

typedef struct InboxSlot {
    _Atomic uint64_t turn;  // whose it is: position to be put, position + 1 to be taken
    LiveAsk          ask;
} InboxSlot;

typedef struct Inbox {
    InboxSlot *slots;  // [mask + 1]
    uint64_t   mask;
    _Alignas(64) _Atomic uint64_t tail;  // next to be put
    _Alignas(64) uint64_t head;          // next to be taken
} Inbox;

MUST_USE Err inbox_init(Inbox *b, uint32_t room, Arena *a);  // room is rounded up to 2^n
bool         inbox_put(Inbox *b, const LiveAsk *ask);        // false: full
bool         inbox_take(Inbox *b, LiveAsk *out);             // false: empty
