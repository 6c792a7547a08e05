// EngineTrace: a recording of the engine for some seconds, written as a Perfetto document of
// limited size.
//
// All functions are called on the loop's thread, which collects records in small steps; a separate
// thread writes the document. One trace at a time.
#pragma once

#include "net/loop.h"
#include "node/live/node_live.h"

typedef struct EngineTrace EngineTrace;

typedef struct EngineTraceOptions {
    Loop     *loop;
    NodeLive *engine;
    TimeNs    span;  // length of the recording
    size_t    most;  // largest document [bytes]; records need half as much in addition
    // Model name of each engine tenant, or NULL; read when the recording ends. The names must
    // outlive the trace.
    const char *const *names;
    uint32_t           n_names;
    void (*done)(void *self, EngineTrace *t);  // called once, when the document is ready
    void *self;
} EngineTraceOptions;

// ERR_LIMIT: out of memory.
MUST_USE Err engine_trace_start(EngineTrace **out, const EngineTraceOptions *o);
void         engine_trace_stop(EngineTrace *t);  // ends the recording early; done follows
// The document, valid as long as t, after done. Its otherData.truncated and lost_records say what
// is missing.
MUST_USE Err engine_trace_text(const EngineTrace *t, Str *out);
// Accepts NULL. Before done: waits for the writer thread; done is not called any more.
void engine_trace_destroy(EngineTrace *t);
