// NodeLive internals: data and its ownership.
//
// Fields marked `sched` belong to the thread that holds the scheduler lock (`busy`). A block and
// the context it runs in belong to its members from block_start until its bit in `ended` is set.
#pragma once

#include <pthread.h>

#include "node/admission.h"
#include "node/job_program.h"
#include "node/live/block.h"
#include "node/live/block_bounds.h"
#include "node/live/block_width.h"
#include "node/live/core_use.h"
#include "node/live/counters.h"
#include "node/live/inbox.h"
#include "node/live/journal.h"
#include "node/live/node_live.h"
#include "node/live/request_table.h"
#include "node/live/stolen_time.h"
#include "node/live/interference.h"

enum {
    LIVE_ACTIONS = 256,
    LIVE_WEIGHTS = 1024,
    LIVE_ROUNDS = 8,      // re-plans after truncated plans, before the scheduler yields
    LIVE_TICKS = 8,       // watchdog ticks until a block is stopped
    LIVE_RELIEF = 16,     // starved requests get 1/16 of a core
    LIVE_USUAL_RANK = 2,  // rank of requests without a priority; 1 is higher
    LIVE_DEMOTED = 32,    // blocks without cores at the same time, and 4 per core
    LIVE_DEMOTED_PER_CORE = 4,
    LIVE_SLOTS = CORES_MAX * (1 + LIVE_DEMOTED_PER_CORE) + LIVE_DEMOTED,
    LIVE_SLOT_WORDS = (LIVE_SLOTS + 63) / 64,
};

#define LIVE_LATE_NS     INT64_C(10000000000)    // a missed deadline is moved by this much
#define LIVE_DEGRADED_NS INT64_C(3600000000000)  // the same for a degraded request
#define LIVE_LATE_PARTS  4                    // at most 1/4 of a tenant's queue holds late requests
#define LIVE_SOON_NS     INT64_C(5000000000)  // requests with a longer deadline bypass admission
#define LIVE_RETRY_NS    INT64_C(1000000)

// Execution context of a started request: its run memory and the result under construction.
typedef struct ExecContext {
    RunMemory           mem;
    const Program      *program;  // of its request
    Tensor             *outputs;
    struct ExecContext *next;  // in the free list
    EngineRequest       ask;
    bool                finishes;                      // the running block is its last
    BlockPoint          point;                         // where its last block stopped
    double              alone_ns, core_ns, stolen_ns;  // of blocks not told to admission yet
    _Atomic uint32_t    stopped_as;  // LiveEnd of a run that was told to stop; LIVE_DONE: none
    _Atomic uint32_t    guard;       // AnswerGuard
    LiveTiming          timing;
    EngineResult        answer;
} ExecContext;

// The owner of a request may free it once it has the answer: the scheduler looks at its `cancelled`
// in state READ only, and the answer waits for that.
typedef enum AnswerGuard { ANSWER_OPEN, ANSWER_READ, ANSWER_GIVEN } AnswerGuard;

typedef struct LiveModel {  // a tenant, in its own arena; zeroed: an empty slot
    Arena          arena;
    const Program *program;
    const Tensor  *inputs;
    NodeTenant     tenant;
    ExecContext   *contexts, *free;
    uint32_t       n_contexts, n_layers;
    uint8_t       *n_versions;  // [n_layers] compact copy of the model's
    uint32_t       room;        // queue limit for requests not started; 0: none
    uint32_t       min_cores, max_cores;
    uint64_t       memory_bytes;
    const uint8_t *solo;  // [n_layers] version 0 of each
    BlockBounds    bounds;
    bool           served;                   // known to the current policy instance
    uint32_t       waiting, running, cores;  // sched, as all below
    uint32_t       queued;                   // waiting and not started
    uint32_t       begun;                    // contexts in use
    uint32_t       late;                     // missed their target and are still computed
    uint64_t       blocks, pauses, conflicts, yields, demotions;
    double         core_ns;
    CoreUse        use;
} LiveModel;

// A policy's state for a set of tenants. The version tables it handed out stay in use as long as
// requests reference it.
typedef struct PolicyInstance {
    Arena                  arena;
    const NodePolicy      *policy;
    void                  *state;
    NodeSetup              setup;
    uint64_t               number;
    TimeNs                 quantum_ns;  // a block yields after it if other tenants wait
    uint32_t               held;        // sched: references by requests
    struct PolicyInstance *next;        // in the list of retired instances
} PolicyInstance;

typedef struct LiveRequest {  // engine's part of a NodeRequest
    EngineRequest   ask;
    ExecContext    *ctx;              // NULL: not started
    PolicyInstance *rule;             // owns the versions of its last block; NULL: not started
    uint32_t        slot;             // its block while running
    uint32_t        behind, waiting;  // at its arrival
    TimeNs          least_wait_ns;    // its wait had other processes taken no time
    uint32_t        ticks;            // watchdog ticks in this block
    bool            gone;             // ended by the current plan
    bool            promised;         // admitted: counted as a promise
    bool            behind_all;       // scheduled after all requests that can meet their deadline
    bool            degraded;         // and after those: see ON_MISS_DEGRADE
    bool            relieved;         // its block was started by apply_starved
    bool            halted;           // between blocks
    bool            pressed;          // its block was told to yield
    bool            demoted;          // its block goes on without cores
    TimeNs          pressed_at;       // when it was told to yield
    TimeNs cpu_ns, delay_ns;  // CPU time of its threads, and time they waited for a CPU, then
    // Of a demoted block, see turns.c.
    Worker  *threads;
    uint32_t turn_core;  // where they compute
    TimeNs   turn_at;    // when its turn began or it was told to pause
    bool     on_turn;
    bool     shares;       // its turn does not depend on idle cores
    bool     heeded;       // it pauses
    bool     lowered;      // it did not, and has a low priority
    TimeNs   look_at;      // when to look again whether it pauses
    TimeNs   used_ns;      // CPU time of its threads until the last look
    TimeNs   unheeded_ns;  // CPU time in pauses before this one that it did not heed
} LiveRequest;

// Cached demand of a block on shared cache and bandwidth; the same blocks recur.
typedef struct LiveWeight {
    uint64_t         versions;  // hash of the versions
    uint64_t         rule;      // number of the policy instance
    uint32_t         tenant, first, n_layers, cores;
    InterferenceLoad load;
    double           slope;
} LiveWeight;

typedef struct LiveCounts {  // sched
    uint64_t blocks, conflicts, grown, decisions, refused, preempted;
    double   busy_core_ns, decide_ns, engine_ns;
} LiveCounts;

struct NodeLive {
    Arena           arena;
    NodeLiveOptions o;
    Cpu             cpu;
    Workers        *workers;
    JobProgram      jobs;      // program of tenants that run jobs
    Block          *blocks;    // [n_slots]
    uint32_t        n_slots;   // one per core and per demoted block
    uint32_t       *of_block;  // sched: the request running there
    uint32_t       *slots;     // sched: [n_free_slots] free ones
    uint32_t        n_free_slots;
    Inbox           inbox;
    Journal         journal;
    _Alignas(128) _Atomic uint32_t busy,
        again;                   // the scheduler lock; a run was requested meanwhile
    _Atomic uint32_t n_idle;     // cores without a block, when the lock was last released
    _Atomic int64_t  waking_ns;  // spent waking workers, outside the lock
    _Alignas(128) _Atomic uint64_t ended[LIVE_SLOT_WORDS];
    _Alignas(128) _Atomic uint32_t budget;   // cores available to new blocks
    _Atomic bool              flush;         // reject all waiting requests
    _Atomic bool              cancelled;     // some request's `cancelled` was set
    _Atomic bool              tick;          // watchdog tick
    _Atomic bool              call;          // the timer thread runs the scheduler
    _Atomic uint32_t          spares;        // spare workers that the timer thread starts
    _Atomic TimeNs            throttled_at;  // when the cgroup quota last throttled the process
    _Atomic(PolicyInstance *) retired;       // unreferenced policy instances
    _Atomic TimeNs   alarm, armed;  // wake-up wanted; wake-up the timer thread is armed for
    _Atomic uint32_t timer_word;
    bool             quota;         // timer thread's, as the next two: a cgroup quota exists
    int64_t          throttled_ns;  // -1: not read yet
    Counters         counters;      // timer thread's
    _Atomic double   measured;      // by the counters
    _Atomic bool     stop, recording;
    _Atomic bool     freed;  // a demoted block has ended: its heap may hold much free memory
    pthread_t        timer;
    bool             timer_started;
    bool             trims;     // timer thread's: memory is to be returned
    RequestTable     queue;     // sched, as all below
    LiveRequest     *beside;    // [room] by index in the queue
    Cores            idle;      // cores without a block
    Cores            asleep;    // sleeping workers to wake after unlock
    LiveModel       *models;    // [most tenants]
    uint32_t         n_models;  // highest used slot plus one
    PolicyInstance  *rule;      // current; NULL: none
    uint64_t         rules;     // number of instances created
    NodeAction      *actions;   // [LIVE_ACTIONS]
    uint32_t        *shown;     // [room] waiting requests that could be started
    uint32_t         n_gone, n_halted,
        n_ranked;                  // requests gone, halted (see LiveRequest), with a priority
    uint32_t            n_full;    // tenants with all contexts in use
    bool                limited;   // some tenant has min_cores or max_cores
    bool                short_of;  // a plan was truncated: decide again
    TimeNs              expiry;    // earliest expiry of a waiting request
    TimeNs              relief;    // earliest time of the next starvation check
    uint32_t            n_late;    // requests that are not ON_MISS_REJECT
    uint32_t            n_behind;  // requests with behind_all
    Admission           admission;
    InterferenceMonitor watch;
    BlockWidth          width;
    StolenTime          stolen;
    TimeNs              turns_from, turns_ns;  // begin of a window; turns in it: see turns.c
    LiveWeight         *weights;               // [LIVE_WEIGHTS] by hash; n_layers 0: empty
    LiveCounts          counts;
    uint64_t            next_id;
};

// Runs the scheduler: sense, decide, act; on this thread, or on the one that holds the lock. Never
// blocks.
void sched_run(NodeLive *l);
// Holds the scheduler lock until sched_unlock; for changes of tenants or policy, not for the hot
// path.
void sched_lock(NodeLive *l);
void sched_unlock(NodeLive *l);

// With the scheduler lock held.
void   live_admit(NodeLive *l, const EngineRequest *ask, TimeNs t);
TimeNs live_over_at(const NodeLive *l, const EngineRequest *ask);  // time after which it is dropped
// Time at which a waiting request is dropped or degraded.
TimeNs live_check_at(const NodeLive *l, uint32_t i);
// Moves a request behind all others until it ends; its deadline no longer counts.
void live_degrade(NodeLive *l, uint32_t i, TimeNs t);
void live_show(NodeLive *l, NodeView *v);
// Hides all but the waiting requests of tenants that use few cores. False: there is nothing to
// hide.
bool     live_show_modest(NodeLive *l, NodeView *v);
void     apply_plan(NodeLive *l, const NodeView *v, uint32_t n);
bool     apply_starved(NodeLive *l, const NodeView *v);  // whether a starved request was started
double   live_block_ns(const NodeModel *m, uint32_t first, uint32_t end,
                       uint32_t cores);  // by the table, without interference
Cores    live_free(const NodeLive *l);   // cores available to new blocks
uint32_t live_kept(const NodeLive *l);   // cores reserved for tenants
uint32_t live_allowance(const NodeLive *l, uint32_t tenant,
                        uint32_t kept);  // free cores the tenant may take
// Sets the part of queue_ns that other processes caused.
void     live_blame_wait(const NodeLive *l, uint32_t i, LiveTiming *t, TimeNs now);
uint32_t live_busiest(const NodeLive *l, uint32_t but);  // tenant with most cores, or UINT32_MAX
bool     live_is_late(const LiveRequest *x);        // moved behind others after a missed target
void     live_put_behind(NodeLive *l, uint32_t i);  // behind all others, until it ends
void     live_wake(NodeLive *l, TimeNs at);         // runs the scheduler at that time at the latest
void     live_call_timer(NodeLive *l);  // the timer thread does what flags tell; from any thread
// Ends running requests that expired or were cancelled, and takes cores from blocks that run long
// while other tenants wait. In preempt.c.
void preempt_running(NodeLive *l, bool cancelled);
// In turns.c: gives demoted blocks idle cores or a share; tells one that was demoted to pause.
void turns_give(NodeLive *l);
void turns_pause(NodeLive *l, LiveRequest *x, TimeNs now);
// Tells a running request to stop and end so.
void live_stop(ExecContext *p, LiveEnd end);
void live_record(NodeLive *l, Record r);
void live_record_end(NodeLive *l, const NodeRequest *r, TimeNs at);  // of its block
// The request is removed after the whole plan was applied, because indices would change.
void        live_end(NodeLive *l, uint32_t i, TimeNs t, LiveEnd end, const char *why);
void        live_reject(NodeLive *l, const EngineRequest *ask, uint64_t id, TimeNs t, LiveEnd end,
                        const char *why);
void        live_forget_gone(NodeLive *l);  // removes requests that live_end marked
const char *live_reason(NodeReason r);
// An admitted request has ended or was moved behind others.
void live_promise_over(NodeLive *l, uint32_t i, bool late, const LiveTiming *t);
void policy_instance_release(NodeLive *l, PolicyInstance *r);  // drops one reference; accepts NULL

void live_guard_close(ExecContext *p);  // before the answer is given
// Called by the last member of a block: delivers the result after the last block, and runs the
// scheduler.
void live_over(void *live, Block *b);

void live_free_retired(NodeLive *l);  // from any thread
void live_forget_model(LiveModel *m);
