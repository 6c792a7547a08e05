// Step: one layer of a program bound to a kernel: operands, packed weights and kernel versions.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/budget.h"
#include "base/work_stop.h"
#include "compile/interp/interp.h"
#include "compile/interp/value_pool.h"
#include "compile/layer_profile.h"
#include "kernel/elementwise.h"
#include "kernel/isa.h"

typedef enum OperandKind { OPERAND_NONE, OPERAND_ARENA, OPERAND_CONST, OPERAND_INPUT } OperandKind;

// Location of a value: in the run's arena, in the program, or in a tensor of the caller.
typedef struct Operand {
    OperandKind kind;
    uint32_t    input;   // index of the graph input
    size_t      offset;  // bytes into the run's arena
    void       *at;      // data of a constant
    size_t      bytes;   // size in its layout
    Tensor      type;    // without data; as the reference kernels see it
} Operand;

// Memory and state of one run. Concurrent runs of a program have one each.
typedef struct RunMemory {
    char             *base;     // planned buffers
    char             *scratch;  // of thread i: scratch + i * scratch_stride
    size_t            scratch_stride;
    const Tensor     *inputs;
    Arena             memory, ref_scratch, ref_keep;
    Budget           *budget;    // pays for memory beyond the planned buffers; NULL: none
    Budget            limit;     // the program's own limit on it, part of the budget
    size_t            paid;      // bytes of held outputs, taken from `limit`
    uint32_t          parts;     // maximum number of threads
    struct RunMemory *branches;  // of the compiled branches
    uint32_t          n_branches;
    size_t            kept;      // bytes of ref_keep that stay between runs
    ValuePool         pool;      // of values of the tail
    struct ValueSlot *held;      // [n_held] outputs of the tail; strings are in ref_keep
    uint32_t          n_held;    // until the next run
    WorkFlag          stop;      // set by another thread to pause or end the run
    struct RunMemory *outer;     // of a branch: the run it is part of
    bool              complete;  // the remaining steps are not needed
    Err               failed;
    char              why[512];
} RunMemory;

// The flag that pauses or stops this run: its own, or that of the run it is a branch of.
static inline WorkFlag *run_memory_stop_flag(RunMemory *s) {
    while (s->outer != NULL) s = s->outer;
    return &s->stop;
}

// True if this run, or the one it is a branch of, was told to stop.
static inline bool run_memory_stopped(const RunMemory *s) {
    while (s != NULL && atomic_load_explicit(&s->stop, memory_order_relaxed) != WORK_STOP)
        s = s->outer;
    return s != NULL;
}

// Around a step or a tail that allocates: its arenas are charged to the run's budget, then no more
// (program_run.c).
MUST_USE Err run_memory_charge(RunMemory *s, const InterpLimits *limits);
void         run_memory_settle(RunMemory *s);

typedef struct Step Step;
struct Binder;

// Slice `at` of `of` of a step's tasks. Parts are contiguous ranges in order, so the first s of S
// slices cover the same tasks on any number of threads: a step may pause after each slice and go on
// with other threads, but with the same version.
typedef struct StepSlice {
    uint32_t at, of;
} StepSlice;

typedef struct StepCall {
    const Step    *step;
    const Version *version;
    RunMemory     *mem;
    Part           part;
    uint32_t       slice;  // see StepSlice; the checks of slice 0 hold for those after it
} StepCall;

// Functions of a kind of step. Those from `versions` on exist for heavy kinds (several kernel
// versions: convolutions, products, attention, RNNs) and may be NULL.
typedef struct StepKind {
    const char *name;
    void (*run)(const StepCall *c);
    uint32_t (*tasks)(const Step *s, const Version *v);
    size_t (*scratch)(const Step *s, const Version *v);  // bytes per thread; NULL: none
    uint32_t (*versions)(const Step *s, const CacheSizes *c, Version *out, uint32_t max);
    Traffic (*traffic)(const Step *s, const Version *v, const CacheSizes *c, uint32_t parts);
    // Estimated compute cycles of the busiest part, memory stalls excluded: see
    // compile/bind/cycles.c.
    double (*cycles)(const Step *s, const Version *v, uint32_t parts);
    size_t (*pack_bytes)(const Step *s, const Version *v);  // NULL: versions share one form
    // Packs the weights that the version reads, once; must precede its first run.
    Err (*pack)(const Step *s, const Version *v, struct Binder *b);
    void (*unpack)(const Step *s);  // drops the packed weights
    // Divides the step into more tasks that need no other weights or scratch, if it is computed in
    // slices. NULL: its tasks are small.
    void (*refine)(const Step *s, Version *v);
    bool checks_inputs;  // in slice 0, which ends before the others begin
} StepKind;

// Epilogue of a heavy step, with operands instead of pointers.
typedef struct StepEpilogue {
    const float              *bias;
    Operand                   add;
    float                     lo, hi;
    const ElementwiseProgram *program;
    Operand                   args[EWISE_MAX_ARGS];
    ElementwiseMode           modes[EWISE_MAX_ARGS];
} StepEpilogue;

struct Step {
    const StepKind *kind;
    const Isa      *isa;
    const Node     *node;  // first node it computes; NULL: a layout conversion
    const char     *name;
    char           *key;  // shape, as key of the profile store; NULL: not heavy
    double          macs;
    uint32_t        weight;       // IR value of the packed constant, while compiling; IR_NONE: none
    size_t          read_bytes;   // of computed values it reads
    size_t          io_bytes;     // of computed values it reads and writes
    size_t          const_bytes;  // of the constants it reads
    uint32_t        n_in, n_out;
    Operand        *in, *out;
    StepEpilogue    epilogue;
    void           *spec;                    // parameters of its kind
    Version         versions[PROFILE_KEPT];  // [0] is the default
    uint32_t        n_versions;
    LayerProfile   *profile;  // of a heavy step: version i is candidate kept[i]; NULL: not measured
    bool            serial;   // has one task: part 0 runs it, the others skip it
};

static inline void *operand_at(const Operand *o, const RunMemory *s) {
    switch (o->kind) {
    case OPERAND_ARENA: return s->base + o->offset;
    case OPERAND_INPUT: return s->inputs[o->input].data;
    case OPERAND_CONST: return o->at;
    case OPERAND_NONE:
    default: return NULL;
    }
}

// The fastest measured version on `cores` cores, else version 0.
const Version *step_version(const Step *s, uint32_t cores);

Epilogue step_epilogue(const Step *s, const RunMemory *mem);  // with the pointers of this run
