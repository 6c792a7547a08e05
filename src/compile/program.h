// Program: a graph with known shapes compiled into steps over fast kernels, with packed weights.
//
// A run does not modify the program. Concurrent runs each have their own RunMemory. Nodes with
// data-dependent shapes, and control flow, form the interpreted tail: the interpreter runs them
// after the last step.
#pragma once

#include "base/team.h"
#include "compile/step.h"
#include "compile/packed_weights.h"
#include "compile/profile_store.h"
#include "compile/tune/tune.h"
#include "compile/weight_width.h"

typedef struct Program Program;

typedef struct ProgramOptions {
    const Isa         *isa;      // NULL: the best of this CPU
    CacheSizes         caches;   // 0: those of this CPU
    ProfileStore      *store;    // tuned versions are looked up here; NULL: default versions only
    const TuneOptions *tune;     // tunes while compiling; NULL: no tuning
    PackedWeights     *packed;   // weights shared with other programs of the model; NULL: its own
    const Program     *like;     // of the same model for other shapes: versions are taken from it
    Arena             *scratch;  // reused by one compilation after another; NULL: a new one
    WeightWidth        weights;  // of products that the file has as floats; 0: as in the file
    WeightReport      *report;   // rows of all layers with weights, unless those are as in the file
    bool               pack_all_versions;  // packs weights for all versions the kernels offer
    bool         release_weights;  // returns pages of the model's weights to the system once packed
    bool         shape_only;       // no weights: for cost models; cannot run
    bool         at_least_one_step;  // adds an idle step if all of the graph is interpreted
    InterpLimits limits;  // of the interpreted tail; max_bytes also of the planned buffers
    uint64_t    *needed;  // set to the bytes of the planned buffers; may be NULL
} ProgramOptions;

struct Program {
    Arena              keep;  // owns all of it
    const ShapedGraph *shaped;
    const Isa         *isa;
    CacheSizes         caches;
    InterpLimits       limits;
    WeightWidth        weights;
    Step              *steps;
    uint32_t           n_steps;
    bool               shape_only;      // no weights: cannot run
    size_t             arena_bytes;     // planned buffers of a RunMemory
    size_t             weight_bytes;    // packed weights, other constants, steps
    bool               shares_weights;  // with programs of other shapes
    bool               short_run;       // too short to use more than one thread
    uint32_t           untuned;  // heavy steps with versions to choose from, not in the store
    Operand           *outputs;  // [graph outputs] OPERAND_NONE: computed by the interpreted tail
    Operand           *tail_inputs;  // [graph values] what the tail reads
    bool              *done;         // [nodes] computed by steps; NULL: there is no tail
    Program           *branches;     // compiled branches of If nodes in the tail
    uint32_t           n_branches;
};

// The shaped graph must outlive the program. Constants are copied, or with `packed` shared: then
// the model and `packed` must outlive it too, and release_weights is not set.
MUST_USE Err program_make(Program *p, const ShapedGraph *s, const ProgramOptions *o);
void         program_finish(Program *p);  // accepts a zeroed Program

// Whether the programs, of one model for different shapes, have the same layers.
bool program_same_layers(const Program *p, const Program *other);
// Whether p has the layers and the numbers of versions of another program of the same model, and
// runs in its RunMemory.
bool program_fits(const Program *p, const Program *other);

MUST_USE Err run_memory_init(RunMemory *s, const Program *p, uint32_t parts);
void         run_memory_finish(RunMemory *s);      // accepts a zeroed RunMemory
void         run_memory_check_stop(RunMemory *s);  // sets `failed` if the run was told to stop
// Frees the outputs and all other memory of the last run beyond the planned buffers. program_begin
// does the same; a context that becomes idle calls it once its outputs are copied.
void run_memory_release(RunMemory *s);

// Sets zeroed inputs, to measure single steps.
MUST_USE Err run_memory_zero_inputs(RunMemory *s, const Program *p, Arena *a);

size_t program_scratch(const Program *p);                     // bytes per thread
size_t program_peak_bytes(const Program *p, uint32_t parts);  // weights and one run

// Computes the outputs on the team's threads (NULL: on the calling thread). Output data lives in
// `a`, or without it in `s` until its next run or run_memory_release; it may be that of an input.
MUST_USE Err program_run(const Program *p, RunMemory *s, Team *team, const Tensor *inputs, Arena *a,
                         Tensor *outputs);

// A run layer by layer, for engines with threads of their own. Layers are the steps, plus one for
// the interpreted tail. All parts of a layer end before the next layer begins.
uint32_t program_layer_count(const Program *p);
bool     program_is_serial(const Program *p, uint32_t layer);  // one task: part 0 does it
bool     program_checks_inputs(const Program *p, uint32_t layer);
void     program_begin(const Program *p, RunMemory *s, const Tensor *inputs);
// Runs part `index` of `count` <= s->parts. Errors are set in s->failed; the tail writes its
// outputs.
void program_run_layer(const Program *p, RunMemory *s, uint32_t layer, uint32_t version,
                       uint32_t index, uint32_t count, Tensor *outputs);
// The same for one slice of a layer, in any order; serial layers have one slice. If the layer
// checks its inputs, slice 0 ends before others begin, and none does if the run has failed.
void program_run_slice(const Program *p, RunMemory *s, uint32_t layer, uint32_t version,
                       StepSlice slice, uint32_t index, uint32_t count, Tensor *outputs);
// Most slices of a layer in which each of `count` threads has a task; at least 1.
uint32_t program_slices(const Program *p, uint32_t layer, uint32_t version, uint32_t count);
// Output data lives as program_run says; the budget pays for it until run_memory_release.
MUST_USE Err program_outputs(const Program *p, RunMemory *s, Arena *a, Tensor *outputs);

// Compiles, runs once on the calling thread, frees the program; output data lives in `a`.
MUST_USE Err program_run_once(const ShapedGraph *s, const Tensor *inputs, const ProgramOptions *o,
                              Arena *a, Tensor *outputs);
