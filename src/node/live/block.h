// Block: consecutive layers of one request on a set of cores, which may grow between two layers.
//
// The members meet after each layer. The last to come looks after what follows: it takes in new
// members, and at the block's end it hands the block back. Nobody touches a block after that, so
// the next one may use the same memory while a slow member still leaves.
#pragma once

#include <stdatomic.h>

#include "base/sync.h"
#include "base/cores.h"
#include "compile/program.h"
#include "contract/node.h"
#include "node/live/interference.h"
#include "node/live/workers.h"

enum { BLOCK_GROWTHS = 8 };

typedef struct BlockGrowth {
    TimeNs   at;
    uint32_t layer;
    Cores    cores;
} BlockGrowth;

typedef enum BlockOffer { BLOCK_OPEN, BLOCK_OFFERED, BLOCK_CLOSED } BlockOffer;

// A core's clocks when it was last looked at: what the wall has beyond the thread was lost.
typedef struct BlockClock {
    _Alignas(64) TimeNs wall;
    TimeNs cpu;
} BlockClock;

typedef struct Block {
    Barrier          barrier;
    const Program   *program;
    const NodeModel *model;
    RunMemory       *mem;
    Tensor          *outputs;
    const uint8_t   *versions;
    uint32_t         first, end, wanted;
    uint32_t         from, to;           // layers until the next meeting
    uint32_t         count, began_with;  // of members
    bool             skip;               // a layer failed: the rest is not computed
    TimeNs           began, ended, area_from;
    double           area_ns;        // core nanoseconds
    double           expected_ns;    // on the cores it had, alone
    double           unhindered_ns;  // on the cores it wanted, alone
    _Atomic TimeNs   stolen_ns;      // by members that others were run in ctx of
    _Atomic uint32_t at;             // the layer it is at, for those who look
    _Atomic uint32_t offer;          // BlockOffer
    Cores            more;           // what is offered
    BlockGrowth      growths[BLOCK_GROWTHS];
    uint32_t         n_growths;
    InterferenceLoad load;
    double           slope;  // of ln(time) by level of interference
    Workers         *workers;
    BlockClock      *clocks;                    // [cores]
    void (*over)(void *self, struct Block *b);  // by the last member, when all are done
    void *self, *ctx;                           // the owner's
} Block;

// All fields but those of the run are set; gives the block to its members at time t. Those that
// sleep are added to asleep, for the caller to wake.
void block_start(Block *b, TimeNs t, const Cores *cores, Cores *asleep);
// One member's share of it.
void block_run(Block *b, uint32_t core, uint32_t index);
// Cores that join at the next layer. False: it ends before that, or an offer is still open.
bool block_offer(Block *b, const Cores *more);
