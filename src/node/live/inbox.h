// Inbox: requests on their way to the engine. Any thread puts, one at a time takes, nobody waits.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/tensor.h"
#include "base/clock.h"
#include "sim/record.h"

typedef enum LiveEnd {
    LIVE_DONE,       // computed, in time or late
    LIVE_REFUSED,    // by the policy, unstarted: it would have been late
    LIVE_FULL,       // too many of its tenant wait
    LIVE_EXPIRED,    // its time was over before it was computed
    LIVE_CANCELLED,  // as its owner wished
    LIVE_FAILED,     // a layer failed
    LIVE_STUCK,      // a block took too long and was stopped
} LiveEnd;

enum { LIVE_VERSIONS = 5 };

// Where a request's time went. Waiting and computing add up to what passed since it came.
typedef struct LiveTiming {
    TimeNs   queue_ns;          // from its arrival to its first block
    TimeNs   compute_ns;        // in blocks
    TimeNs   paused_ns;         // between blocks: others had the cores
    TimeNs   stolen_ns;         // in blocks, while the system ran something else on our cores
    TimeNs   interference_ns;   // in blocks, beyond what they take alone
    TimeNs   core_shortage_ns;  // in blocks, for want of the cores that were wished for
    TimeNs   core_ns;           // cores times time
    uint32_t blocks, pauses, conflicts;
    uint32_t cores_most, cores_least;
    uint32_t level;                    // of interference, the highest met
    uint32_t behind, paused_by;        // tenants that had most cores meanwhile; UINT32_MAX: none
    uint32_t waiting;                  // requests that waited when it came
    uint32_t versions[LIVE_VERSIONS];  // layers computed by each
    uint32_t late_cause;               // LiveCause
} LiveTiming;

typedef enum LiveCause {
    LIVE_NO_CAUSE,
    LIVE_QUEUEING,
    LIVE_OVERLOAD,
    LIVE_CONTENTION,
    LIVE_CONFLICT,
    LIVE_PREEMPTED,
    LIVE_THROTTLED
} LiveCause;

typedef struct EngineResult {
    uint32_t      tenant;
    LiveEnd       end;
    LiveTiming    timing;
    Outcome       outcome;
    TimeNs        arrival, finish;
    const char   *why;      // of a miss; NULL otherwise
    const Tensor *outputs;  // valid while the callback runs; NULL: there are none
    const char   *failed;   // what went wrong in a layer; NULL: nothing
    Err           error;    // and its kind: ERR_INVALID, ERR_LIMIT are the inputs' fault
} EngineResult;

typedef struct EngineRequest {
    uint32_t tenant;
    TimeNs   arrival, deadline;  // by the steady clock
    TimeNs   expire;             // not computed any further after that; 0: never
    bool     late_ok;   // computed even when it is late already: refusals put it behind others
    double   priority;  // 0: the tenant's
    const _Atomic bool *cancelled;  // looked at between blocks; NULL: never
    const Tensor       *inputs;     // valid until the answer; NULL: the tenant's own
    void (*done)(void *self, const EngineResult *a);  // on a worker: be quick, do not wait
    void *self;
} EngineRequest;

typedef struct InboxSlot {
    _Atomic uint64_t turn;  // whose it is: position to be put, position + 1 to be taken
    EngineRequest    ask;
} InboxSlot;

typedef struct Inbox {
    InboxSlot *slots;  // [mask + 1]
    uint64_t   mask;
    _Alignas(64) _Atomic uint64_t tail;  // next to be put
    _Alignas(64) uint64_t head;          // next to be taken
} Inbox;

MUST_USE Err inbox_init(Inbox *b, uint32_t room, Arena *a);  // room is rounded up to 2^n
bool         inbox_put(Inbox *b, const EngineRequest *ask);  // false: full
bool         inbox_take(Inbox *b, EngineRequest *out);       // false: empty
