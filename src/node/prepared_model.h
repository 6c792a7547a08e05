// PreparedModel: a model compiled and measured, with its table of layer times: ready to serve.
#pragma once

#include "compile/program.h"
#include "contract/node.h"
#include "node/host.h"
#include "node/live/node_live.h"
#include "node/source.h"

typedef struct PrepareOptions {
    uint32_t runs;          // measurements of each version on each core count; 0: 16
    double   tune_seconds;  // time to tune layers that the store does not know
    uint64_t seed;          // of the inputs; 0: 1
    bool background;  // tenants are running: measures CPU time on one core and extrapolates to more
    bool interpret;   // accepts models that cannot be compiled or measured
    bool remember;    // the store keeps the times of all steps for the next start
    // Of the same source for other shapes: times are scaled from its own instead of measured, and
    // the inputs have no values. NULL: measured.
    const struct PreparedModel *like;
    WeightWidth                 weights;  // of products; 0: as in the file
    Arena                      *scratch;  // of compilation; NULL: a new one
    const Tensor               *shapes;   // of the inputs; NULL: as declared, open dimensions are 1
    uint64_t                    max_bytes;  // of weights and one run; 0: no limit
    const char                 *setting;    // that max_bytes comes from; NULL: none
    Budget     *budget;      // pays for inputs, tables and measuring runs; NULL: no limit
    uint64_t   *needed;      // set to the bytes of one run, where known; may be NULL
    uint64_t    run_bytes;   // of interpreted values in a measuring run; 0: no limit
    uint64_t    max_output;  // bytes of the smallest output; 0: no limit
    TimeNs      most_ns;     // limit for one step on all cores; 0: no limit
    WorkFlag   *stop;        // set by another thread: abort; may be NULL
    const char *name;        // name of the table and in errors; NULL: the model's
} PrepareOptions;

typedef struct PreparedModel {
    Arena         arena;   // holds the table and the inputs
    Source        own;     // set by prepared_model_load
    const Source *source;  // what it was made from
    ShapedGraph  *shaped;
    Program       program;
    NodeModel     table;
    Tensor       *inputs;  // random values, if it has_values; else types alone
    bool          has_values;
    double   solo_ns[PROFILE_COUNTS];  // latency of the whole network on the host's core counts
    uint64_t memory_bytes;             // weights and tables, without execution contexts
    bool     measured;                 // times are measured, not estimated from bytes
} PreparedModel;

// what: see source_read. Uses the host's team unless o->background.
MUST_USE Err prepared_model_load(PreparedModel *s, const char *what, Host *h,
                                 const PrepareOptions *o);
// Several may be made of one source, which must outlive them. The weights of a source without open
// dimensions move to the first one made, and there is no second.
MUST_USE Err prepared_model_make(PreparedModel *s, const Source *source, Host *h,
                                 const PrepareOptions *o);
void         prepared_model_finish(PreparedModel *s);  // accepts a zeroed PreparedModel

// Corrects the table by whole runs on the host's core counts: ns [counts], 0: not measured. The
// differences to one core count, so that constant costs cancel. More cores that win less than a
// twentieth are taken to win nothing.
void prepared_model_correct(PreparedModel *s, const double *ns);
// The core count with the least time of the whole network, by the table.
uint32_t prepared_model_cores(const PreparedModel *s);

// A tenant for the engine; the prepared model must outlive it.
LiveTenant prepared_model_tenant(const PreparedModel *s, const char *name, TimeNs qos_ns,
                                 double priority);
