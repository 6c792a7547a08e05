// Block: consecutive layers of one request on a set of cores, which may grow between two layers.
//
// Members (one thread per core) meet at a barrier after each layer; within a layer that takes long,
// after a slice if one of them sees a reason. The last to arrive admits new members, and ends the
// block after its last layer,
// when the run has failed, or when the block was told to yield. No member touches a block after
// that, so the next block may use the same memory while a slow member still leaves the barrier.
#pragma once

#include <stdatomic.h>

#include "base/sync.h"
#include "base/cores.h"
#include "compile/program.h"
#include "contract/node.h"
#include "node/live/interference.h"
#include "node/live/workers.h"

enum { BLOCK_GROWTHS = 8 };

#define BLOCK_FROZEN (UINT32_C(1) << 31)

typedef struct BlockGrowth {
    TimeNs   at;
    uint32_t layer;
    Cores    cores;
} BlockGrowth;

// Members join in two steps: TAKEN from when they are counted until all have their job.
typedef enum BlockOffer { BLOCK_OPEN, BLOCK_OFFERED, BLOCK_TAKEN, BLOCK_CLOSED } BlockOffer;

// BLOCK_DEMOTED: its cores were given away and its threads go on by turns.
typedef enum BlockHold { BLOCK_HOLDS, BLOCK_DEMOTED, BLOCK_LEFT } BlockHold;

// Position of a run between two blocks.
typedef struct BlockPoint {
    uint32_t  layer;    // of the program, the interpreted tail included
    StepSlice slice;    // at > 0: the slices of the layer before it are computed
    uint32_t  version;  // with this version
} BlockPoint;

typedef struct Block {
    Barrier          barrier;
    const Program   *program;
    const NodeModel *model;
    RunMemory       *mem;
    Tensor          *outputs;
    const uint8_t   *versions;
    BlockPoint       first;
    uint32_t         end, wanted;
    bool             solo;               // stays on one core
    uint32_t         from, to;           // layers until the next barrier
    StepSlice        slice;              // of layer `from`: the first one until the next barrier
    uint32_t         version;            // of layer `from`
    uint32_t         count, began_with;  // of members
    TimeNs           began, ended, area_from;
    double           area_ns;                // core nanoseconds
    double           expected_ns;            // predicted on its cores without interference
    double           unhindered_ns;          // predicted on the wanted cores without interference
    _Atomic TimeNs   stolen_ns;              // time in which other processes ran on its cores
    _Atomic TimeNs   start_ns;               // from block_start until its last member began
    TimeNs           first_wall, first_cpu;  // clocks of its first member when that began,
    _Atomic int32_t  first_clock;            // CPU clock of its first thread; 0: it has not begun
    TimeNs           after_ns;  // from its end until its cores were free: by other processes
    _Atomic uint32_t at;        // current layer, for observers
    _Atomic uint32_t offer;     // BlockOffer
    _Atomic uint32_t hold;      // BlockHold
    _Atomic bool     yield;     // ends after the current layer or slice
    _Atomic uint32_t front;     // slices begun by some member; BLOCK_FROZEN: no more begin
    Cores            more;      // cores offered
    BlockGrowth      growths[BLOCK_GROWTHS];
    uint32_t         n_growths;
    InterferenceLoad load;
    double           slope;  // of ln(time) by level of interference
    Workers         *workers;
    void (*over)(void *self, struct Block *b);  // called by the last member at the end
    void *self, *ctx;                           // owner's data
} Block;

// Posts the block to its members at time t; the caller has set the input fields. Sleeping workers
// are added to asleep, for the caller to wake.
void block_start(Block *b, TimeNs t, const Cores *cores, Cores *asleep);
// Runs one member's part.
void block_run(Block *b, uint32_t index);
// Time of an ended block in which other processes held it up: they ran on its cores, or its workers
// waited for them.
TimeNs block_held_up(const Block *b);
// Of a running block until now, on its first core; 0 if it began just now.
TimeNs block_held_so_far(const Block *b, TimeNs now);
// Called by the last member, after the end: time since then in which other processes held it up.
TimeNs block_held_after(const Block *b);
// Offers cores that join at the next layer or slice. False: the block ends before, has one core
// only, or an offer is pending.
bool block_offer(Block *b, const Cores *more);
// Ends growth; *back are offered cores that do not join. False: members are joining just now.
bool block_seal(Block *b, Cores *back);
// Takes the cores of a sealed block, as seen by its members. False: it has ended.
bool block_demote(Block *b);
// Called by the last member when it needs the block no more. False: the block was demoted.
bool block_leave(Block *b);

// Where an ended block stopped.
BlockPoint block_point(const Block *b);
double     block_point_share(const BlockPoint *p);  // of its layer that is computed, below 1
