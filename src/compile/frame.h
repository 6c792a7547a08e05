// Frame: the values of one graph while it runs, each freed after its last reader.
#pragma once

#include "compile/interp.h"

typedef struct Buf {
    uint32_t refs;
    size_t   bytes;
    void    *data;
} Buf;

typedef struct Slot {
    Tensor t;
    Buf   *buf;  // NULL: borrowed from a constant, the caller or nothing
} Slot;

typedef struct Machine {  // what all frames of one run share
    InterpLimits          limits;
    size_t                live_bytes;
    uint64_t              rounds;
    int64_t               macs;
    Arena                 scratch, keep;
    const struct Program *program;  // whose rest is run; NULL: the interpreter runs everything
    struct Space         *space;
} Machine;

typedef struct Frame {
    Machine       *machine;
    const Special *special;
    Slot          *slots;  // [n_values]
} Frame;

MUST_USE Err frame_init(Frame *f, Machine *m, const Special *s);
void         frame_finish(Frame *f);  // releases every value

MUST_USE Err slot_alloc(Machine *m, Slot *s);              // numbers for s->t, zeroed
Slot         slot_share(const Slot *s);                    // one more owner
void         slot_drop(Machine *m, Slot *s);               // accepts an empty slot
void         frame_set(Frame *f, uint32_t value, Slot s);  // takes ownership

// Runs the nodes of the frame's graph but for those that are done (NULL: none is); inputs, captures
// and the results of what is done were set before.
MUST_USE Err frame_run(Frame *f, const bool *done);

// Fails when somebody wants the run to end; asked before every node and every round of a loop.
MUST_USE Err frame_go_on(const Machine *m);

// Static inference promised a type and shape; what the numbers give must be the same.
MUST_USE Err frame_promised(const Tensor *promised, const Tensor *found);

// A branch that was compiled. False: it was not, out is untouched.
bool         frame_compiled(const Frame *f, const Graph *body);
MUST_USE Err frame_run_compiled(Frame *f, const Graph *body, Slot *out);

// If, Loop, Scan, SequenceMap: out[n_out] receives owned slots.
MUST_USE Err frame_flow(Frame *f, const Node *n, Slot *out);
