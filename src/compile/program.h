// Program: a specialised graph compiled into steps over fast kernels, with all its weights packed.
//
// A program is never changed by a run. Each run has a Space of its own; several can go on at once.
#pragma once

#include "base/team.h"
#include "compile/step.h"
#include "compile/store.h"
#include "compile/tune.h"

typedef struct ProgramOptions {
    const Isa         *isa;     // NULL: the best one
    CacheSizes         caches;  // 0: what the machine says
    Store             *store;   // where measured versions are looked up; NULL: guesses only
    const TuneOptions *tune;    // measures versions before the program is ready; NULL: does not
    bool         pack_all;  // every version that the kernels offer can be run, not just the chosen
    bool         consume;   // the model's weights go back to the system once they are packed
    bool         hollow;    // without weights, for studies of its steps: it cannot be run
    bool         never_empty;  // one step that does nothing where all is interpreted
    InterpLimits limits;       // of the part left to the interpreter; max_bytes of all of it
} ProgramOptions;

typedef struct Program Program;

struct Program {
    Arena          keep;  // everything below lives in it
    const Special *special;
    const Isa     *isa;
    CacheSizes     caches;
    InterpLimits   limits;
    Step          *steps;
    uint32_t       n_steps;
    bool           hollow;        // has no weights
    size_t         arena_bytes;   // of a Space: planned buffers
    size_t         weight_bytes;  // packed weights and other constants
    bool           brief;         // not worth waking other threads for
    Operand       *outputs;       // [graph outputs] NONE: computed by the interpreted rest
    Operand       *handed;        // [graph values] what that rest reads
    bool          *done;          // [nodes] computed here; NULL: there is no rest
    Program       *bodies;        // branches of Ifs in that rest, compiled as well
    uint32_t       n_bodies;
};

// The special must outlive the program; constants are copied.
MUST_USE Err program_make(Program *p, const Special *s, const ProgramOptions *o);
void         program_finish(Program *p);  // accepts a zeroed Program

MUST_USE Err space_init(Space *s, const Program *p, uint32_t parts);
void         space_finish(Space *s);  // accepts a zeroed Space
void         space_halt(Space *s);    // between layers: a run that was stopped fails

// Zeros of the inputs' types, for measuring steps one by one.
MUST_USE Err space_blank_inputs(Space *s, const Program *p, Arena *a);

size_t program_scratch(const Program *p);                     // bytes per part
size_t program_peak_bytes(const Program *p, uint32_t parts);  // weights, buffers, scratch

// Computes the outputs on the team's members (NULL: on the calling thread). Their numbers stay in
// the space until its next run, or with an arena, in the arena.
MUST_USE Err program_run(const Program *p, Space *s, Team *team, const Tensor *inputs, Arena *a,
                         Tensor *outputs);

// A run in pieces, for whoever brings threads of their own. Layers are the steps, and behind them
// the interpreted rest where there is one. Every part of a layer is done before the next begins.
uint32_t program_layers(const Program *p);
bool     program_solo(const Program *p, uint32_t layer);  // part 0 does all of it
void     program_begin(const Program *p, Space *s, const Tensor *inputs);
// Share index of count, below s->parts. A failure is in s->failed; outputs receive the rest's.
void program_layer(const Program *p, Space *s, uint32_t layer, uint32_t version, uint32_t index,
                   uint32_t count, Tensor *outputs);
MUST_USE Err program_collect(const Program *p, const Space *s, Arena *a, Tensor *outputs);

// Compiles, runs once on the calling thread and forgets; the outputs live in a.
MUST_USE Err program_once(const Special *s, const Tensor *inputs, const ProgramOptions *o, Arena *a,
                          Tensor *outputs);
