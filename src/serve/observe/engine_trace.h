// EngineTrace: what the engine does for some seconds, as a document for Perfetto, bounded in every
// way.
//
// Begun, taken and destroyed on the loop's thread: records are collected there in small steps and
// written by a thread of its own. One at a time.
#pragma once

#include "net/loop.h"
#include "node/live/node_live.h"

typedef struct EngineTrace EngineTrace;

typedef struct EngineTraceOptions {
    Loop     *loop;
    NodeLive *engine;
    TimeNs    span;  // to be recorded
    size_t    most;  // bytes of text; records take half as much besides while it is made
    // Names of the engine's tenants by number, NULL where there is none; looked at when the
    // recording ends. The names live as long as the trace.
    const char *const *names;
    uint32_t           n_names;
    void (*done)(void *self, EngineTrace *t);  // on the loop's thread, once: it can be taken
    void *self;
} EngineTraceOptions;

// ERR_LIMIT: no memory for it now.
MUST_USE Err engine_trace_start(EngineTrace **out, const EngineTraceOptions *o);
void         engine_trace_stop(EngineTrace *t);  // what was recorded so far is enough; done follows
// After done: the text, t's; otherData.truncated and lost_records in it say what it lacks.
MUST_USE Err engine_trace_text(const EngineTrace *t, Str *out);
// Accepts NULL. Before done: waits for its thread, and done is not called any more.
void engine_trace_destroy(EngineTrace *t);
