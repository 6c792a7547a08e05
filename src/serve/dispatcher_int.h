// The dispatcher inside: an InferCall with what only the dispatcher and the engine's threads touch.
#pragma once

#include <stdatomic.h>

#include "net/exchange.h"
#include "serve/dispatcher.h"

typedef enum InferCallPhase {
    CALL_FREE,
    CALL_OPEN,       // the front decodes, or sends the answer
    CALL_COMPILING,  // waits until its shapes are compiled
    CALL_ENGINE,     // the engine has it: memory is the workers' until its post arrives
} InferCallPhase;

typedef struct InferCallState {
    InferCall              call;  // first
    Dispatcher            *dispatcher;
    struct InferCallState *next;  // free
    InferCallPhase         state;
    bool                   gone;  // the front has given it up
    LoopPost               compiled, computed;
    LoopTimer              expiry;  // while it waits for its shapes
    TimeNs                 arrival, deadline, expire;
    TimeNs                 limit;  // that the client allows; 0: none
    uint32_t               tenant;
    Tensor                *inputs;
    uint32_t              *chosen;  // [n] outputs that are sent
    Tensor                *outputs;
    _Atomic bool           cancelled;
    // By the worker that has the answer.
    LiveEnd       end;
    Outcome       outcome;
    TimeNs        finish;
    LiveTiming    timing;
    bool          no_room;  // for the outputs
    char          failed[256];
    Err           error;  // of what failed
    ExchangeBody *body;   // given back when the engine is done with it
} InferCallState;

struct Dispatcher {
    DispatcherOptions o;
    InferCallState   *calls;  // [n]
    InferCallState   *free;
    uint32_t          n, busy;
    uint64_t          kept_bytes;  // of arenas of free calls
    uint64_t          next_id;
    bool              rejecting;
    const char       *names[LIVE_TENANTS];  // of the engine's tenants; NULL: never seen
};

// Copies the chosen outputs out of the engine's memory, on a worker. False: no room.
bool dispatcher_copy_outputs(InferCallState *e, const Tensor *outputs);
// The words for a request that got no answer; sets error and retry_s.
void dispatcher_set_error(InferCallState *e);
// How it went, into the answer's parameters.
void dispatcher_add_timing(InferCall *a);
