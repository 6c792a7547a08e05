// Stage: a network made ready to be served: compiled, measured, with a table of its times.
#pragma once

#include "compile/program.h"
#include "contract/node.h"
#include "node/host.h"
#include "node/node_live.h"
#include "node/source.h"

typedef struct StageOptions {
    uint32_t      runs;          // measured, of each version on each number of cores; 0: 16
    double        tune_seconds;  // spent on looking for versions that the store does not know
    uint64_t      seed;          // of the inputs; 0: 1
    bool          background;    // others run: one core's own time is measured, more are reckoned
    bool          interpret;     // also what cannot be compiled, or not be measured
    bool          remember;      // the store keeps the times of all steps, for the next start
    const Tensor *shapes;        // of the inputs; NULL: as declared, open dimensions are 1
    uint64_t      max_bytes;     // of weights and one run; 0: no limit
    uint64_t      max_output;    // bytes of the smallest output; 0: no limit
    TimeNs        most_ns;       // that one step may take on all cores; 0: no limit
    const _Atomic bool *stop;    // set by another thread: not wanted any more; may be NULL
    const char         *name;    // of the table, and in errors; NULL: the model's own
} StageOptions;

typedef struct Stage {
    Arena         arena;   // of the table and the inputs
    Source        own;     // of stage_load
    const Source *source;  // what it was made from
    Special      *special;
    Program       program;
    NodeModel     table;
    Tensor       *inputs;                   // at random
    double        solo_ns[PROFILE_COUNTS];  // the whole network on the host's numbers of cores
    uint64_t      memory_bytes;             // weights and tables, without places to run
    bool          measured;                 // the times are, and not guessed from bytes
} Stage;

// what: as source_read has it. The host's team is used unless in the background.
MUST_USE Err stage_load(Stage *s, const char *what, Host *h, const StageOptions *o);
// One of several of the same source, which outlives them all. The weights of a source without open
// dimensions go to the first stage that is made of it, and there is no second.
MUST_USE Err stage_make(Stage *s, const Source *source, Host *h, const StageOptions *o);
void         stage_finish(Stage *s);  // accepts a zeroed Stage

// As a tenant of an engine; the stage must outlive it.
LiveTenant stage_tenant(const Stage *s, const char *name, TimeNs qos_ns, double priority);
