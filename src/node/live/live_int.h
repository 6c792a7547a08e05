// The live engine inside: who owns what while tenants run.
//
// Everything marked `turn` belongs to whoever holds the turn, one thread at a time. A block and the
// ctx it runs in belong to its members from block_start until its bit in `ended` is set.
#pragma once

#include <pthread.h>

#include "node/admission.h"
#include "node/live/block.h"
#include "node/live/counters.h"
#include "node/live/inbox.h"
#include "node/live/journal.h"
#include "node/live/node_live.h"
#include "node/live/request_table.h"
#include "node/live/interference.h"

enum {
    LIVE_ACTIONS = 256,
    LIVE_WEIGHTS = 1024,
    LIVE_ROUNDS = 8,      // of plans that were cut short, before others have to come first
    LIVE_TICKS = 8,       // of the watchdog until a block is stopped
    LIVE_RELIEF = 16,     // one part in so many of a core is for those who starve
    LIVE_USUAL_RANK = 2,  // of requests that have no priority: 1 comes before them
};

#define LIVE_LATE_NS    INT64_C(10000000000)  // by so much a deadline that is missed is put off
#define LIVE_LATE_PARTS 4  // one of so many contexts in a tenant's queue is for those who are late
#define LIVE_SOON_NS    INT64_C(5000000000)  // nothing is promised to who has more time than that
#define LIVE_RETRY_NS   INT64_C(1000000)

// Where a started request is computed, with what is to be said about it in the end.
typedef struct ExecContext {
    RunMemory           mem;
    Tensor             *outputs;
    struct ExecContext *next;  // free
    EngineRequest       ask;
    bool                finishes;  // with the block that runs
    LiveTiming          timing;
    EngineResult        answer;
} ExecContext;

typedef struct LiveModel {  // of a tenant, in memory of its own; a zeroed one is a hole
    Arena          arena;
    const Program *program;
    const Tensor  *inputs;
    NodeTenant     tenant;
    ExecContext   *contexts, *free;
    uint32_t       n_contexts, n_layers;
    uint8_t       *n_versions;  // [n_layers] close together, unlike in the model
    uint32_t       room;        // for those that were not begun; 0: no limit
    uint32_t       min_cores, max_cores;
    uint64_t       memory_bytes;
    const uint8_t *solo;                     // [n_layers] version 0 of each
    bool           served;                   // the rule at work knows it
    uint32_t       waiting, running, cores;  // turn, as all below
    uint32_t       queued;                   // of those that wait: not begun
    uint32_t       begun;                    // contexts taken
    uint32_t       late;                     // missed their target, and are computed all the same
    uint64_t       blocks, pauses, conflicts;
    double         core_ns;
} LiveModel;

// A policy at work, for the tenants there were then. Versions that it named are in use as long as
// requests hold it.
typedef struct PolicyInstance {
    Arena                  arena;
    const NodePolicy      *policy;
    void                  *state;
    NodeSetup              setup;
    uint64_t               number;
    uint32_t               held;  // turn: by so many requests
    struct PolicyInstance *next;  // of those that are done with
} PolicyInstance;

typedef struct LiveRequest {  // beside NodeRequest
    EngineRequest   ask;
    ExecContext    *ctx;              // NULL: not started
    PolicyInstance *rule;             // named the versions of its last block; NULL: not started
    uint32_t        slot;             // its block, while it runs
    uint32_t        behind, waiting;  // when it came
    uint32_t        ticks;            // of the watchdog, in this block
    bool            gone;             // ended by the plan at hand
    bool            promised;         // to be in time, by admission
    bool            behind_all;       // goes after everybody who can still be in time
    bool            relieved;         // its block was started by us, for it starved
    bool            halted;           // its block has ended and no other began
} LiveRequest;

// What a block asks of what cores share; blocks come again and again, so it is kept.
typedef struct LiveWeight {
    uint64_t         versions;  // their hash
    uint64_t         rule;      // its number
    uint32_t         tenant, first, n_layers, cores;
    InterferenceLoad load;
    double           slope;
} LiveWeight;

typedef struct LiveCounts {  // turn
    uint64_t blocks, conflicts, grown, decisions, refused, preempted;
    double   busy_core_ns, decide_ns, engine_ns;
} LiveCounts;

struct NodeLive {
    Arena           arena;
    NodeLiveOptions o;
    Cpu             cpu;
    Workers        *workers;
    Block          *blocks;    // [n_cores] by the first core it started on
    uint32_t       *of_block;  // turn: the request that runs there
    BlockClock     *clocks;
    Inbox           inbox;
    Journal         journal;
    _Alignas(128) _Atomic uint32_t busy, again;  // the turn is taken; there is more to do
    _Atomic int64_t waking_ns;                   // spent on waking workers, outside the turn
    _Alignas(128) _Atomic uint64_t ended[CORES_WORDS];
    _Alignas(128) _Atomic uint32_t budget;   // cores that new blocks may use
    _Atomic bool              flush;         // refuse everything that waits
    _Atomic bool              cancelled;     // some request's owner wishes it gone
    _Atomic bool              tick;          // of the watchdog
    _Atomic TimeNs            throttled_at;  // when the system last gave us less than it promised
    _Atomic(PolicyInstance *) retired;       // nobody holds them any more
    _Atomic TimeNs            alarm, armed;  // asked for by the policy; what the timer waits for
    _Atomic uint32_t          timer_word;
    bool                      quota;  // the timer's, as the next two: the system limits our time
    int64_t                   throttled_ns;  // -1: not looked at yet
    Counters                  counters;      // the timer's
    _Atomic double            measured;      // by them
    _Atomic bool              stop, recording;
    pthread_t                 timer;
    bool                      timer_started;
    RequestTable              queue;     // turn, as all below
    LiveRequest              *beside;    // [room] by index in the queue
    Cores                     idle;      // cores without a block
    Cores                     asleep;    // to be woken when the turn is left
    LiveModel                *models;    // [most tenants]
    uint32_t                  n_models;  // the last that is no hole, plus one
    PolicyInstance           *rule;      // at work; NULL: nobody decides
    uint64_t                  rules;     // so many there were
    NodeAction               *actions;   // [LIVE_ACTIONS]
    uint32_t                 *shown;     // [room] those of the waiting that could be started
    uint32_t            n_gone, n_halted, n_ranked;  // requests: see LiveRequest; with a priority
    uint32_t            n_full;                      // tenants whose contexts are all taken
    bool                limited;                     // some tenant has cores of its own
    bool                short_of;  // a plan was cut short: there may be more to do
    TimeNs              expiry;    // none that waits is over before that
    TimeNs              relief;    // nobody who starves is looked for before that
    uint32_t            n_late;    // requests that may be late
    uint32_t            n_behind;  // requests behind all others
    Admission           admission;
    InterferenceMonitor watch;
    LiveWeight         *weights;  // [LIVE_WEIGHTS] by hash; n_layers 0: none yet
    LiveCounts          counts;
    uint64_t            next_id;
};

// Senses, decides and acts, here or on the thread that is at it already. Never waits.
void sched_run(NodeLive *l);
// Has the turn to itself until sched_unlock; for changes of tenants or policy, not for the path.
void sched_lock(NodeLive *l);
void sched_unlock(NodeLive *l);

// With the turn.
void   live_admit(NodeLive *l, const EngineRequest *ask, TimeNs t);
TimeNs live_over_at(const NodeLive *l, const EngineRequest *ask);  // it is not computed after that
void   live_show(NodeLive *l, NodeView *v);
void   apply_plan(NodeLive *l, const NodeView *v, uint32_t n);
bool   apply_starved(NodeLive *l, const NodeView *v);  // whether somebody starved and was started
Cores  live_free(const NodeLive *l);                   // cores for new blocks
uint32_t live_kept(const NodeLive *l);                 // cores that are kept for tenants
uint32_t live_allowance(const NodeLive *l, uint32_t tenant, uint32_t kept);  // of free cores
uint32_t live_busiest(const NodeLive *l, uint32_t but);  // tenant with most cores; UINT32_MAX
bool     live_is_late(const LiveRequest *x);             // behind others for a target it missed
void     live_put_behind(NodeLive *l, uint32_t i);       // all others, until it ends
void     live_wake(NodeLive *l, TimeNs at);              // a step then, at the latest
void     live_record(NodeLive *l, Record r);
// It leaves when the whole plan was carried out, because indices would move otherwise.
void        live_end(NodeLive *l, uint32_t i, TimeNs t, LiveEnd end, const char *why);
void        live_reject(NodeLive *l, const EngineRequest *ask, uint64_t id, TimeNs t, LiveEnd end,
                        const char *why);
void        live_forget_gone(NodeLive *l);  // those that live_end named
const char *live_reason(NodeReason r);
// A request that was promised to be in time has ended, or been put off.
void live_promise_over(NodeLive *l, uint32_t i, bool late, const LiveTiming *t);
void policy_instance_release(NodeLive *l, PolicyInstance *r);  // by one request; accepts NULL

// By the last member of a block: says the answer when it was the last one, and takes the turn.
void live_over(void *live, Block *b);

void live_free_retired(NodeLive *l);  // from any thread
void live_forget_model(LiveModel *m);
