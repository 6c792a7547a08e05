// TraceArgs: options that describe a job trace and select a part of it.
#pragma once

#include "cli/args.h"
#include "cluster/trace/job_trace.h"

enum { TRACE_ARG_ROWS = 14, TRACE_ARG_SOME = 9 };

typedef struct TraceArgs {
    const char *format, *unit, *rates, *gpu_type;
    TraceWindow window;
} TraceArgs;

void trace_args_rows(TraceArgs *t, ArgRow *rows);  // TRACE_ARG_ROWS of them
void trace_args_some(TraceArgs *t, ArgRow *rows);  // TRACE_ARG_SOME: without those of windows

MUST_USE Err trace_args_options(const TraceArgs *t, Arena *a, JobTraceOptions *out);
MUST_USE Err trace_args_read(const TraceArgs *t, const char *path, Arena *a, JobList *out);
