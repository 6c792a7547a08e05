// The live engine inside: who owns what while tenants run.
//
// Everything marked `turn` belongs to whoever holds the turn, one thread at a time. A block and the
// place it runs in belong to its members from block_start until its bit in `ended` is set.
#pragma once

#include <pthread.h>

#include "node/block.h"
#include "node/counters.h"
#include "node/inbox.h"
#include "node/journal.h"
#include "node/node_live.h"
#include "node/queue.h"
#include "node/watch.h"

enum { LIVE_ACTIONS = 256, LIVE_WEIGHTS = 1024 };

// Where a started request is computed, with what is to be said about it in the end.
typedef struct LivePlace {
    Space             space;
    Tensor           *outputs;
    struct LivePlace *next;  // free
    LiveAsk           ask;
    bool              finishes;  // with the block that runs
    TimeNs            waited_ns, lost_ns;
    double            slowed_ns, cramped_ns;  // by neighbours; by too few cores
    LiveAnswer        answer;
} LivePlace;

typedef struct LiveModel {  // of a tenant
    const Program *program;
    const Tensor  *inputs;
    LivePlace     *places, *free;
    uint32_t       n_places;
    uint8_t       *n_versions;  // [layers] close together, unlike in the model
} LiveModel;

typedef struct LiveRequest {  // beside NodeRequest
    LiveAsk    ask;
    LivePlace *place;  // NULL: not started
    uint32_t   slot;   // its block, while it runs
    bool       gone;   // refused by the plan at hand
} LiveRequest;

// What a block asks of what cores share; blocks come again and again, so it is kept.
typedef struct LiveWeight {
    uint64_t  versions;  // their hash
    uint32_t  tenant, first, n_layers, cores;
    WatchLoad load;
    double    slope;
} LiveWeight;

typedef struct LiveCounts {  // turn
    uint64_t blocks, conflicts, grown, decisions, refused, preempted;
    double   busy_core_ns, decide_ns, engine_ns;
} LiveCounts;

typedef struct LivePolicy {  // what decides, and for whom
    const NodePolicy *policy;
    void             *state;
    NodeSetup         setup;
} LivePolicy;

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
    _Alignas(128) _Atomic uint32_t budget;  // cores that new blocks may use
    _Atomic bool     flush;                 // refuse everything that waits
    _Atomic TimeNs   alarm, armed;          // asked for by the policy; what the keeper waits for
    _Atomic uint32_t keeper_word;
    Counters         counters;  // the keeper's
    _Atomic double   measured;  // by them
    _Atomic bool     stop, recording;
    pthread_t        keeper;
    bool             keeps;
    Queue            queue;   // turn, as all below
    LiveRequest     *beside;  // [room] by index in the queue
    Cores            idle;    // cores without a block
    Cores            asleep;  // to be woken when the turn is left
    LiveModel       *models;  // [most tenants]
    uint32_t         n_models;
    LivePolicy       now;
    Arena            states[2];  // of policies: the one at work, and the next
    uint32_t         state;      // at work
    NodeAction      *actions;    // [LIVE_ACTIONS]
    uint32_t         n_gone;
    Watch            watch;
    LiveWeight      *weights;  // [LIVE_WEIGHTS] by hash; n_layers 0: none yet
    LiveCounts       counts;
    uint64_t         next_id;
};

// Senses, decides and acts, here or on the thread that is at it already. Never waits.
void turn_take(NodeLive *l);
// Has the turn to itself until turn_leave; for changes of tenants or policy, not for the path.
void turn_hold(NodeLive *l);
void turn_leave(NodeLive *l);

// With the turn.
void  act_plan(NodeLive *l, const NodeView *v, uint32_t n);
Cores live_free(const NodeLive *l);  // cores for new blocks
void  live_record(NodeLive *l, Record r);
void  live_reject(NodeLive *l, uint32_t i, TimeNs t, const char *why);

// By the last member of a block: says the answer when it was the last one, and takes the turn.
void live_over(void *live, Block *b);
