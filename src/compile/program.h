// Program: a specialised graph compiled into steps over fast kernels, with all its weights packed.
//
// A program is never changed by a run. Each run has a RunMemory of its own; several can go on at
// once.
#pragma once

#include "base/team.h"
#include "compile/step.h"
#include "compile/profile_store.h"
#include "compile/tune/tune.h"

typedef struct ProgramOptions {
    const Isa         *isa;     // NULL: the best one
    CacheSizes         caches;  // 0: what the machine says
    ProfileStore      *store;   // where measured versions are looked up; NULL: guesses only
    const TuneOptions *tune;    // measures versions before the program is ready; NULL: does not
    bool pack_all_versions;  // every version that the kernels offer can be run, not just the chosen
    bool release_weights;    // the model's weights go back to the system once they are packed
    bool shape_only;         // without weights, for studies of its steps: it cannot be run
    bool at_least_one_step;  // one step that does nothing where all is interpreted
    InterpLimits limits;     // of the part left to the interpreter; max_bytes of all of it
} ProgramOptions;

typedef struct Program Program;

struct Program {
    Arena              keep;  // everything below lives in it
    const ShapedGraph *shaped;
    const Isa         *isa;
    CacheSizes         caches;
    InterpLimits       limits;
    Step              *steps;
    uint32_t           n_steps;
    bool               shape_only;    // has no weights
    size_t             arena_bytes;   // of a RunMemory: planned buffers
    size_t             weight_bytes;  // packed weights and other constants
    bool               short_run;     // not worth waking other threads for
    Operand           *outputs;       // [graph outputs] NONE: computed by the interpreted rest
    Operand           *rest_inputs;   // [graph values] what that rest reads
    bool              *done;          // [nodes] computed here; NULL: there is no rest
    Program           *branches;      // branches of Ifs in that rest, compiled as well
    uint32_t           n_branches;
};

// The shaped graph must outlive the program; constants are copied.
MUST_USE Err program_make(Program *p, const ShapedGraph *s, const ProgramOptions *o);
void         program_finish(Program *p);  // accepts a zeroed Program

MUST_USE Err run_memory_init(RunMemory *s, const Program *p, uint32_t parts);
void         run_memory_finish(RunMemory *s);      // accepts a zeroed RunMemory
void         run_memory_check_stop(RunMemory *s);  // between layers: a run that was stopped fails

// Zeros of the inputs' types, for measuring steps one by one.
MUST_USE Err run_memory_zero_inputs(RunMemory *s, const Program *p, Arena *a);

size_t program_scratch(const Program *p);                     // bytes per part
size_t program_peak_bytes(const Program *p, uint32_t parts);  // weights, buffers, scratch

// Computes the outputs on the team's members (NULL: on the calling thread). Their numbers stay in
// the mem until its next run, or with an arena, in the arena.
MUST_USE Err program_run(const Program *p, RunMemory *s, Team *team, const Tensor *inputs, Arena *a,
                         Tensor *outputs);

// A run in pieces, for whoever brings threads of their own. Layers are the steps, and behind them
// the interpreted rest where there is one. Every part of a layer is done before the next begins.
uint32_t program_layer_count(const Program *p);
bool     program_is_serial(const Program *p, uint32_t layer);  // part 0 does all of it
void     program_begin(const Program *p, RunMemory *s, const Tensor *inputs);
// Share index of count, below s->parts. A failure is in s->failed; outputs receive the rest's.
void         program_run_layer(const Program *p, RunMemory *s, uint32_t layer, uint32_t version,
                               uint32_t index, uint32_t count, Tensor *outputs);
MUST_USE Err program_outputs(const Program *p, const RunMemory *s, Arena *a, Tensor *outputs);

// Compiles, runs once on the calling thread and forgets; the outputs live in a.
MUST_USE Err program_run_once(const ShapedGraph *s, const Tensor *inputs, const ProgramOptions *o,
                              Arena *a, Tensor *outputs);
