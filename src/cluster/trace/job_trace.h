// Job traces: lists of submitted jobs, read from public formats and from our own.
#pragma once

#include <stdio.h>

#include "cluster/job.h"
#include "cluster/trace/iteration_times.h"
#include "cluster/trace/trace_window.h"

typedef struct JobTraceOptions {  // zeroed: the format's defaults
    TimeNs                unit;   // of times without a unit; 0: the format's
    const IterationTimes *rates;  // for work in iterations; NULL: such work stays unknown
    TraceWindow           window;
    bool                  any_type;  // drops the GPU types that jobs ask for
    ElasticRange          elastic;   // makes jobs elastic
} JobTraceOptions;

typedef struct TraceFile {  // a file of data/traces, embedded
    const char          *name;
    const unsigned char *bytes;
    size_t               len;
} TraceFile;

extern const TraceFile trace_files[];  // ends with an entry of zeros

// path: a file, or the name of a shipped trace. format: a name, or "auto".
MUST_USE Err trace_read(const char *path, const char *format, const JobTraceOptions *o, Arena *a,
                        JobList *out);
MUST_USE Err trace_parse(const char *name, const char *text, size_t len, const char *format,
                         const JobTraceOptions *o, Arena *a, JobList *out);

const char *trace_format_name(uint32_t i);  // NULL after the last
const char *trace_formats(Arena *a);        // all names, comma-separated

// Writes our own format with the columns that any job needs; it reads back as the same list.
void trace_write(FILE *f, const JobList *l);
