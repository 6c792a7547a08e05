// Internals of the dispatcher: an InferCall with the fields that only it and the engine's workers
// use.
#pragma once

#include <stdatomic.h>

#include "net/exchange.h"
#include "serve/dispatcher.h"

typedef enum InferCallPhase {
    CALL_FREE,
    CALL_OPEN,       // the front end decodes the request or sends the response
    CALL_COMPILING,  // waits until its input shapes are compiled
    CALL_ENGINE,     // in the engine; workers own its memory until `computed` is posted
} InferCallPhase;

typedef struct InferCallState {
    InferCall              call;  // first
    Dispatcher            *dispatcher;
    struct InferCallState *next;  // free
    InferCallPhase         state;
    bool         detached;  // the front end has cancelled: release it instead of calling done
    LoopPost     compiled, computed;
    LoopTimer    expiry;  // runs while it waits for its shapes
    TimeNs       arrival, deadline, expire;
    TimeNs       limit;  // the client's timeout; 0: none
    uint32_t     tenant;
    Tensor      *inputs;
    uint32_t    *chosen;  // [response.n] index of each output sent
    Tensor      *outputs;
    _Atomic bool cancelled;
    // Written by the worker that finishes it.
    LiveEnd       end;
    Outcome       outcome;
    TimeNs        finish;
    LiveTiming    timing;
    bool          no_room;  // the outputs exceed `response_mb` or memory
    char          failed[256];
    Err           error;  // kind of failure
    ExchangeBody *body;   // given back once the engine no longer reads it
} InferCallState;

struct Dispatcher {
    DispatcherOptions o;
    InferCallState   *calls;  // [n]
    InferCallState   *free;
    uint32_t          n, busy;
    uint64_t          kept_bytes;  // of the arenas of free calls
    uint64_t          next_id;
    bool              rejecting;
    const char       *names[LIVE_TENANTS];  // model of each engine tenant; NULL: none yet
};

// In dispatcher_result.c.
// Copies the requested outputs out of the engine's memory, on a worker. False: too large.
bool dispatcher_copy_outputs(InferCallState *e, const Tensor *outputs);
// Sets error and retry_s of a request without a response.
void dispatcher_set_error(InferCallState *e);
// Adds timing to the response's parameters.
void dispatcher_add_timing(InferCall *call);
