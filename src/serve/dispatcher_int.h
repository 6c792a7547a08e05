// Internals of the dispatcher: an InferCall with the fields that only it and the engine's workers
// use.
#pragma once

#include <stdatomic.h>

#include "base/coroutine.h"
#include "base/run_delay.h"
#include "net/exchange.h"
#include "node/job_program.h"
#include "serve/dispatcher.h"

enum { DISPATCHER_COROUTINES = 16 };

typedef enum InferCallPhase {
    CALL_FREE,
    CALL_OPEN,       // the front end fills it or sends the response
    CALL_JOB,        // decoded or encoded by a job; workers own its memory
    CALL_COMPILING,  // waits until its input shapes are compiled
    CALL_ENGINE,     // in the engine; workers own its memory until `computed` is posted
} InferCallPhase;

typedef struct InferCallState {
    InferCall              call;  // first
    Dispatcher            *dispatcher;
    struct InferCallState *next;  // free
    InferCallPhase         state;
    bool       detached;   // the front end has cancelled: release it instead of calling done
    Budget     budget;     // memory of this request; the arena is charged to it
    Coroutine *coroutine;  // of its job; NULL: none
    EngineJob  job;
    Tensor     job_input;
    Err (*work)(InferCall *call);            // what the job does,
    void (*then)(struct InferCallState *e);  // what follows on the loop's thread,
    TimeNs       work_ns;                    // and its estimated time
    TimeNs       job_core_ns;                // spent by its jobs
    TimeNs       timeout_ns;                 // from a header; 0: none
    Err          work_error;                 // result of work; text in work_why
    char         work_why[512];
    LoopPost     compiled, computed;
    LoopTimer    expiry;  // runs while it waits for its shapes
    TimeNs       arrival, deadline, expire;
    TimeNs       delay_before;  // of the loop's thread, when it arrived
    TimeNs       limit;         // the client's timeout; 0: none
    ServedShape  shape;
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
    uint64_t          kept_bytes;                         // of the arenas of free calls
    Coroutine        *coroutines[DISPATCHER_COROUTINES];  // [n_coroutines] unused
    uint32_t          n_coroutines;
    InferCallState   *reclaimed;  // released calls; their memory is returned piece by piece
    LoopTimer         reclaim;
    RunDelay          delay;  // of the loop's thread; zeroed until the first request
    uint64_t          next_id;
    bool              rejecting;
    const char       *names[LIVE_TENANTS];  // model of each engine tenant; NULL: none yet
};

// In dispatcher_job.c.
// Runs work(call): on this thread if it takes little time, else as a job of the model. Then calls
// then(e) on the loop's thread, unless the job was rejected or cancelled.
void dispatcher_run(InferCallState *e, Err (*work)(InferCall *call), TimeNs about_ns,
                    void (*then)(InferCallState *e));
// In dispatcher.c: ends a request and calls its front end, unless that has detached.
void       dispatcher_complete(InferCallState *e);
void       dispatcher_end_with(InferCallState *e, ReceiptEnd end, const char *why);
ReceiptEnd dispatcher_end_of(const InferCallState *e);  // the engine's result
void       dispatcher_post(void *call);  // on a worker: the engine has finished with it
void       dispatcher_name_tenant(InferCallState *e, uint32_t tenant);

// In dispatcher_pool.c.
void dispatcher_release(InferCallState *e);  // back into the pool
void dispatcher_reclaim(void *dispatcher);   // returns memory of released calls, a piece at a time
bool dispatcher_join_budget(InferCallState *e);  // false: its memory is not to be had

static inline InferCallState *dispatcher_state_of(InferCall *call) {
    return (InferCallState *)(void *)call;
}

// In dispatcher_result.c.
// Copies the requested outputs out of the engine's memory, on a worker. False: too large.
bool dispatcher_copy_outputs(InferCallState *e, const Tensor *outputs);
// Sets error and retry_s of a request without a response.
void dispatcher_set_error(InferCallState *e);
// Sets answered to now, and the cause of a miss.
void dispatcher_explain(InferCallState *e);
// Adds timing to the response's parameters.
void dispatcher_add_timing(InferCall *call);
