// Frame: the values of one graph while it runs, each freed after its last reader.
#pragma once

#include "compile/interp/interp.h"

typedef struct ValueBuf {
    uint32_t refs;
    size_t   bytes;
    void    *data;
} ValueBuf;

typedef struct ValueSlot {
    Tensor    t;
    ValueBuf *buf;  // NULL: borrowed from a constant, the caller or nothing
} ValueSlot;

typedef struct InterpState {  // what all frames of one run share
    InterpLimits          limits;
    size_t                live_bytes;
    uint64_t              rounds;
    int64_t               macs;
    Arena                 scratch, keep;
    const struct Program *program;  // whose rest is run; NULL: the interpreter runs everything
    struct RunMemory     *mem;
} InterpState;

typedef struct Frame {
    InterpState       *state;
    const ShapedGraph *shaped;
    ValueSlot         *slots;  // [n_values]
} Frame;

MUST_USE Err frame_init(Frame *f, InterpState *m, const ShapedGraph *s);
void         frame_finish(Frame *f);  // releases every value

MUST_USE Err slot_alloc(InterpState *m, ValueSlot *s);          // numbers for s->t, zeroed
ValueSlot    slot_share(const ValueSlot *s);                    // one more owner
void         slot_drop(InterpState *m, ValueSlot *s);           // accepts an empty slot
void         frame_set(Frame *f, uint32_t value, ValueSlot s);  // takes ownership

// Runs the nodes of the frame's graph but for those that are done (NULL: none is); inputs, captures
// and the results of what is done were set before.
MUST_USE Err frame_run(Frame *f, const bool *done);

// Fails when somebody wants the run to end; asked before every node and every round of a loop.
MUST_USE Err frame_check_stop(const InterpState *m);

// Static inference promised a type and shape; what the numbers give must be the same.
MUST_USE Err frame_check_type(const Tensor *promised, const Tensor *found);

// A branch that was compiled. False: it was not, out is untouched.
bool         frame_is_compiled(const Frame *f, const Graph *body);
MUST_USE Err frame_run_compiled(Frame *f, const Graph *body, ValueSlot *out);

// If, Loop, Scan, SequenceMap: out[n_out] receives owned slots.
MUST_USE Err frame_flow(Frame *f, const Node *n, ValueSlot *out);

// ScanOutput: cutting a value into slices along an axis and putting slices together again.

typedef struct ScanOutput {
    ValueSlot *slots;
    uint32_t   n, cap;
} ScanOutput;

MUST_USE Err scan_output_push(ScanOutput *s, ValueSlot one);  // takes ownership, also when it fails
void         scan_output_finish(InterpState *m, ScanOutput *s);

// Joins the slices along a new axis, last slice first when reversed. Their shapes must be equal;
// length may exceed their number (the rest is zero). like gives type and shape when there are none.
MUST_USE Err scan_output_concat(InterpState *m, const ScanOutput *s, int32_t axis, bool reverse,
                                int64_t length, const Tensor *like, ValueSlot *out);

MUST_USE Err slot_slice(InterpState *m, const Tensor *whole, int32_t axis, int64_t at,
                        ValueSlot *out);
