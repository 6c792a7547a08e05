// Step: one layer of a program, bound to a kernel: where its numbers lie and how it may be
// computed.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "compile/interp/interp.h"
#include "compile/layer_profile.h"
#include "kernel/elementwise.h"
#include "kernel/isa.h"

typedef enum OperandKind { OPERAND_NONE, OPERAND_ARENA, OPERAND_CONST, OPERAND_INPUT } OperandKind;

// Where a value lies: in the run's arena, in the program, or in a tensor of the caller's.
typedef struct Operand {
    OperandKind kind;
    uint32_t    input;   // which one
    size_t      offset;  // bytes into the arena
    void       *at;      // constant
    size_t      bytes;   // of its layout
    Tensor      type;    // without data; what the reference kernels see
} Operand;

// One run's memory. A program is never changed by a run, so that several can go on at once.
typedef struct RunMemory {
    char                   *base;     // the planned buffers
    char                   *scratch;  // of part i: scratch + i * scratch_stride
    size_t                  scratch_stride;
    const Tensor           *inputs;
    Arena                   memory, ref_scratch, ref_keep;
    uint32_t                parts;     // most that may run together
    struct RunMemory       *branches;  // of the branches that were compiled
    uint32_t                n_branches;
    size_t                  kept;   // of ref_keep, by what is not forgotten between runs
    _Atomic bool            stop;   // set by whoever has waited too long for it
    const struct RunMemory *outer;  // of a branch: where it is run
    Err                     failed;
    char                    why[512];
} RunMemory;

// Whether somebody wants this run to end.
static inline bool run_memory_stopped(const RunMemory *s) {
    while (s != NULL && !atomic_load_explicit(&s->stop, memory_order_relaxed)) s = s->outer;
    return s != NULL;
}

typedef struct Step Step;
struct Binder;

typedef struct StepCall {
    const Step    *step;
    const Version *version;
    RunMemory     *mem;
    Part           part;
} StepCall;

// The functions of a kind of step. From versions on they belong to heavy kinds, and may be NULL.
typedef struct StepKind {
    const char *name;
    void (*run)(const StepCall *c);
    uint32_t (*tasks)(const Step *s, const Version *v);
    size_t (*scratch)(const Step *s, const Version *v);  // bytes per part; NULL: none
    uint32_t (*versions)(const Step *s, const CacheSizes *c, Version *out, uint32_t max);
    Traffic (*traffic)(const Step *s, const Version *v, const CacheSizes *c, uint32_t parts);
    // What arithmetic alone takes, of the part that has most to do; see compile/bind/bind.h.
    double (*cycles)(const Step *s, const Version *v, uint32_t parts);
    size_t (*pack_bytes)(const Step *s, const Version *v);  // NULL: all versions share one packing
    // Makes the packed weights the version reads, once; until then it may not run.
    Err (*pack)(const Step *s, const Version *v, struct Binder *b);
    void (*unpack)(const Step *s);  // forgets what was packed
    bool uses_arenas;               // takes memory of the mem's arenas while it runs
} StepKind;

// What a heavy step does with its sums; see Epilogue.
typedef struct StepEpilogue {
    const float              *bias;
    Operand                   add;
    float                     lo, hi;
    const ElementwiseProgram *chain;
    Operand                   args[EWISE_MAX_ARGS];
    ElementwiseMode           modes[EWISE_MAX_ARGS];
} StepEpilogue;

struct Step {
    const StepKind *kind;
    const Isa      *isa;
    const Node     *node;  // the first of those it computes; NULL for a change of layout
    const char     *name;
    char           *key;  // names the shape for the profile store; NULL: not heavy
    double          macs;
    uint32_t     weight;  // the constant that is packed, while a program is made; IR_NONE: nothing
    size_t       read_bytes;   // of the values it reads
    size_t       io_bytes;     // the same, and of those it writes
    size_t       const_bytes;  // of the constants it reads
    uint32_t     n_in, n_out;
    Operand     *in, *out;
    StepEpilogue epilogue;
    void        *spec;                    // the kind's own
    Version      versions[PROFILE_KEPT];  // [0] is the one to run when nothing else is known
    uint32_t     n_versions;
    LayerProfile
        *profile;  // of a heavy step: version i is its candidate kept[i]; NULL: not measured
    bool serial;   // has one task: the other parts skip it
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

// The version that is fastest on so many cores, as far as that was measured.
const Version *step_version(const Step *s, uint32_t cores);

Epilogue step_epilogue(const Step *s, const RunMemory *mem);  // its numbers, for this run
