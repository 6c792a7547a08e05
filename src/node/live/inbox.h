// Inbox: a bounded lock-free queue of requests to the engine: many producers, one consumer at a
// time.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/budget.h"
#include "base/err.h"
#include "base/tensor.h"
#include "base/clock.h"
#include "sim/record.h"

typedef enum LiveEnd {
    LIVE_DONE,       // computed, in time or late
    LIVE_REFUSED,    // rejected by the policy or admission before it started
    LIVE_FULL,       // its tenant's queue is full
    LIVE_EXPIRED,    // its expiry passed before it was computed; a run is stopped
    LIVE_CANCELLED,  // by its owner
    LIVE_FAILED,     // a layer failed
    LIVE_STUCK,      // a block took too long and was stopped
} LiveEnd;

// What happens to a request that has missed its deadline or cannot meet it any more.
typedef enum OnMiss {
    ON_MISS_REJECT,      // rejected
    ON_MISS_SERVE_LATE,  // computed behind requests that can meet theirs, unless too many are late
    ON_MISS_DEGRADE,     // always computed, behind all others; its deadline no longer counts
} OnMiss;

enum { LIVE_VERSIONS = 5 };

// Breakdown of a request's latency: queue_ns + compute_ns + paused_ns is the time since its
// arrival.
typedef struct LiveTiming {
    TimeNs queue_ns;               // from its arrival to its first block
    TimeNs compute_ns;             // in blocks
    TimeNs paused_ns;              // between blocks: other requests had the cores
    TimeNs stolen_ns;              // in blocks, while other processes ran on its cores
    TimeNs queue_stolen_ns;        // of queue_ns, for blocks that other processes held up
    TimeNs taken_ns, taken_of_ns;  // core time that other processes took while requests queued,
                                   // and all of it: see StolenTime
    TimeNs   interference_ns;      // in blocks, beyond their time without interference
    TimeNs   core_shortage_ns;     // in blocks, for running on fewer cores than wanted
    TimeNs   core_ns;              // cores x time
    uint32_t blocks, pauses, conflicts;
    uint32_t yields, demotions;  // blocks that ended early or lost their cores for other tenants
    uint32_t cores_most, cores_least;
    uint32_t level;                    // highest interference level seen
    uint32_t behind, paused_by;        // tenants with most cores meanwhile; UINT32_MAX: none
    uint32_t waiting;                  // queue length at its arrival
    uint32_t versions[LIVE_VERSIONS];  // layers computed with each version
    uint32_t late_cause;               // LiveCause
    bool     degraded;                 // moved behind all others by ON_MISS_DEGRADE
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
    const char   *why;      // reason of a miss; NULL otherwise
    const Tensor *outputs;  // valid while the callback runs; NULL: there are none
    const char   *failed;   // error text of a layer; NULL: none
    Err           error;    // its code: ERR_INVALID and ERR_LIMIT are caused by the inputs
} EngineResult;

typedef struct EngineRequest {
    uint32_t            tenant;
    uint32_t            first;              // first layer to run; usually 0
    bool                job;                // part of a request: admitted without a share
    TimeNs              arrival, deadline;  // monotonic clock
    TimeNs              expire;             // dropped after that; 0: never
    OnMiss              on_miss;
    double              priority;   // 0: the tenant's
    uint32_t            cores;      // for measuring: as many of these as are free; 0: by the policy
    const _Atomic bool *cancelled;  // see node_live_cancel; may be NULL
    const Tensor       *inputs;     // valid until done; NULL: the tenant's
    // For other input shapes than the tenant's; it fits the tenant's program (program_fits) and is
    // valid until released. NULL: the tenant's.
    const struct Program *program;
    Budget               *budget;  // pays for memory beyond the compiled plan; NULL: no limit
    void (*done)(void               *self,
                 const EngineResult *a);  // called on a worker: must be short and must not block
    void (*released)(void *self);  // after done, when its budget is not used any more; may be NULL
    void *self;
} EngineRequest;

typedef struct InboxSlot {
    _Atomic uint64_t turn;  // sequence: position when empty, position + 1 when filled
    EngineRequest    ask;
} InboxSlot;

typedef struct Inbox {
    InboxSlot *slots;  // [mask + 1]
    uint64_t   mask;
    _Alignas(64) _Atomic uint64_t tail;  // next to write
    _Alignas(64) uint64_t head;          // next to read
} Inbox;

MUST_USE Err inbox_init(Inbox *b, uint32_t room, Arena *a);  // room is rounded up to 2^n
bool         inbox_put(Inbox *b, const EngineRequest *ask);  // false: full
bool         inbox_take(Inbox *b, EngineRequest *out);       // false: empty
