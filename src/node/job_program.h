// JobProgram: lets the engine run any function as a tenant's program, in slices.
//
// A job is a coroutine. Its program has JOB_LAYERS layers on one core; each resumes the coroutine
// for JOB_SLICE_NS, and the rest is skipped when the job has ended. A job of n slices starts at
// layer JOB_LAYERS - n, so that policies know how long it takes; what is left after the last layer
// is submitted again.
#pragma once

#include "base/coroutine.h"
#include "compile/program.h"
#include "contract/node.h"

enum { JOB_LAYERS = 64, JOB_SLICE_NS = 1000000 };

typedef struct JobProgram {
    Arena       arena;
    Program     program;
    ShapedGraph shaped;
    Graph       graph;
    NodeModel   model;
} JobProgram;

MUST_USE Err job_program_make(JobProgram *p);
void         job_program_finish(JobProgram *p);  // accepts a zeroed JobProgram

// The input of a request that runs c; done: set when the job has ended.
typedef struct EngineJob {
    Coroutine *coroutine;
    bool       done;
} EngineJob;

Tensor job_input(EngineJob *j);
// First layer of a job that takes about ns.
uint32_t job_first_layer(TimeNs ns);
