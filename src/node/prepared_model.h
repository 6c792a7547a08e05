// PreparedModel: a network made ready to be served: compiled, measured, with a table of its times.
#pragma once

#include "compile/program.h"
#include "contract/node.h"
#include "node/host.h"
#include "node/live/node_live.h"
#include "node/source.h"

typedef struct PrepareOptions {
    uint32_t      runs;          // measured, of each version on each number of cores; 0: 16
    double        tune_seconds;  // spent on looking for versions that the store does not know
    uint64_t      seed;          // of the inputs; 0: 1
    bool          background;    // others run: one core's own time is measured, more are reckoned
    bool          interpret;     // also what cannot be compiled, or not be measured
    bool          remember;    // the store timer_started the times of all steps, for the next start
    const Tensor *shapes;      // of the inputs; NULL: as declared, open dimensions are 1
    uint64_t      max_bytes;   // of weights and one run; 0: no limit
    uint64_t      max_output;  // bytes of the smallest output; 0: no limit
    TimeNs        most_ns;     // that one step may take on all cores; 0: no limit
    const _Atomic bool *stop;  // set by another thread: not wanted any more; may be NULL
    const char         *name;  // of the table, and in errors; NULL: the model's own
} PrepareOptions;

typedef struct PreparedModel {
    Arena         arena;   // of the table and the inputs
    Source        own;     // of prepared_model_load
    const Source *source;  // what it was made from
    ShapedGraph  *shaped;
    Program       program;
    NodeModel     table;
    Tensor       *inputs;                   // at random
    double        solo_ns[PROFILE_COUNTS];  // the whole network on the host's numbers of cores
    uint64_t      memory_bytes;             // weights and tables, without contexts to run
    bool          measured;                 // the times are, and not guessed from bytes
} PreparedModel;

// what: as source_read has it. The host's team is used unless in the background.
MUST_USE Err prepared_model_load(PreparedModel *s, const char *what, Host *h,
                                 const PrepareOptions *o);
// One of several of the same source, which outlives them all. The weights of a source without open
// dimensions go to the first stage that is made of it, and there is no second.
MUST_USE Err prepared_model_make(PreparedModel *s, const Source *source, Host *h,
                                 const PrepareOptions *o);
void         prepared_model_finish(PreparedModel *s);  // accepts a zeroed PreparedModel

// As a tenant of an engine; the stage must outlive it.
LiveTenant prepared_model_tenant(const PreparedModel *s, const char *name, TimeNs qos_ns,
                                 double priority);
