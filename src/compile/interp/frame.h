// Frame: the values of one graph in the interpreter, each freed after its last use.
#pragma once

#include "base/budget.h"
#include "compile/interp/interp.h"
#include "compile/interp/value_pool.h"

typedef struct ValueBuf {
    uint32_t   refs;
    size_t     bytes, room;
    void      *data;    // after the record, or in memory of its own
    ValueSlab *slab;    // its block is in; NULL: of the heap
    bool       mapped;  // large: has memory of its own
} ValueBuf;

typedef struct ValueSlot {
    Tensor    t;
    ValueBuf *buf;  // NULL: data is borrowed from a constant or the caller, or absent
} ValueSlot;

typedef struct InterpState {  // shared by all frames of one run
    InterpLimits          limits;
    Budget               *budget;      // pays for the values; NULL: none
    size_t                live_bytes;  // of values, slabs, frames and lists of slices
    size_t                paid_bytes;  // taken from the budget, at least live_bytes
    uint64_t              iterations;
    int64_t               macs;
    Arena                *scratch, *keep;
    ValuePool            *pool;     // of many and of large values
    const struct Program *program;  // the program with this tail; NULL: all is interpreted
    struct RunMemory     *mem;
} InterpState;

typedef struct Frame {
    InterpState       *state;
    const ShapedGraph *shaped;
    ValueSlot         *slots;  // [n_values]
} Frame;

MUST_USE Err frame_init(Frame *f, InterpState *m, const ShapedGraph *s);
void         frame_finish(Frame *f);  // releases all values

// Memory of the interpreter outside its arenas: taken before it is allocated, given when it is
// freed.
MUST_USE Err interp_take(InterpState *m, size_t bytes);
void         interp_give(InterpState *m, size_t bytes);

MUST_USE Err slot_alloc(InterpState *m, ValueSlot *s);  // zeroed data for s->t
ValueSlot    slot_share(const ValueSlot *s);            // adds a reference
void         slot_drop(InterpState *m, ValueSlot *s);   // drops a reference; accepts an empty slot
void         slot_release(ValueSlot *s);  // the same for a slot that outlived its state
void         frame_set(Frame *f, uint32_t value, ValueSlot s);  // takes ownership

// Runs the nodes of the graph except those in `done` (NULL: none). Inputs, captures and results of
// `done` nodes were set before.
MUST_USE Err frame_run(Frame *f, const bool *done);

// Output i of the graph: a deep copy in `a`, or with a reference to its memory. That outlives the
// frame; strings and elements of sequences live in the state's `keep` arena.
MUST_USE Err frame_copy_output(const Frame *f, uint32_t i, Arena *a, Tensor *out);
MUST_USE Err frame_share_output(const Frame *f, uint32_t i, ValueSlot *out);

// Fails if `found` differs from the inferred type or shape.
MUST_USE Err frame_check_type(const Tensor *inferred, const Tensor *found);

// True if the branch was compiled for the shapes of its captures; frame_run_compiled then runs it.
bool         frame_is_compiled(const Frame *f, const Graph *body);
MUST_USE Err frame_run_compiled(Frame *f, const Graph *body, ValueSlot *out);

// If, Loop, Scan, SequenceMap (frame_flow.c): out[n_out] receives owned slots.
MUST_USE Err frame_flow(Frame *f, const Node *n, ValueSlot *out);

// ScanOutput: the slices that the iterations of a Loop or Scan add to one output (frame_flow.c).

typedef struct ScanOutput {
    ValueSlot *slots;
    uint32_t   n, cap;
} ScanOutput;

// Takes ownership on success.
MUST_USE Err scan_output_push(InterpState *m, ScanOutput *s, ValueSlot one);
void         scan_output_finish(InterpState *m, ScanOutput *s);

// Concatenates the slices along a new axis, in reverse order if `reverse`. Shapes must be equal.
// `length` may exceed their number: the remainder is zero. `like` gives type and shape if there are
// none.
MUST_USE Err scan_output_concat(InterpState *m, const ScanOutput *s, int32_t axis, bool reverse,
                                int64_t length, const Tensor *like, ValueSlot *out);

MUST_USE Err slot_slice(InterpState *m, const Tensor *whole, int32_t axis, int64_t at,
                        ValueSlot *out);
