// Block: consecutive layers of one request on a set of cores, which may grow between two layers.
//
// Members (one thread per core) meet at a barrier after each layer. The last to arrive admits new
// members, and at the end of the block returns it. No member touches a block after that, so
// the next block may use the same memory while a slow member still leaves the barrier.
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

// A core's clocks at the last sample: wall time beyond the thread's CPU time was stolen.
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
    uint32_t         from, to;           // layers until the next barrier
    uint32_t         count, began_with;  // of members
    bool             skip;               // a layer failed: the rest is skipped
    TimeNs           began, ended, area_from;
    double           area_ns;        // core nanoseconds
    double           expected_ns;    // predicted on its cores without interference
    double           unhindered_ns;  // predicted on the wanted cores without interference
    _Atomic TimeNs   stolen_ns;      // time in which other processes ran on its cores
    _Atomic uint32_t at;             // current layer, for observers
    _Atomic uint32_t offer;          // BlockOffer
    Cores            more;           // cores offered
    BlockGrowth      growths[BLOCK_GROWTHS];
    uint32_t         n_growths;
    InterferenceLoad load;
    double           slope;  // of ln(time) by level of interference
    Workers         *workers;
    BlockClock      *clocks;                    // [cores]
    void (*over)(void *self, struct Block *b);  // called by the last member at the end
    void *self, *ctx;                           // owner's data
} Block;

// Posts the block to its members at time t; the caller has set the input fields. Sleeping workers
// are added to asleep, for the caller to wake.
void block_start(Block *b, TimeNs t, const Cores *cores, Cores *asleep);
// Runs one member's part.
void block_run(Block *b, uint32_t core, uint32_t index);
// Offers cores that join at the next layer. False: the block ends before, or an offer is pending.
bool block_offer(Block *b, const Cores *more);
