// Trace: which jobs came to a cluster when, read from the formats that are in use and our own.
#pragma once

#include <stdio.h>

#include "cluster/job.h"
#include "cluster/trace/iteration_times.h"
#include "cluster/trace/trace_window.h"

typedef struct JobTraceOptions {  // zeroed: everything as the format says
    TimeNs unit;                  // of times that are bare numbers; 0: the format's own
    const IterationTimes
               *rates;  // for formats that count iterations; NULL: their work stays unknown
    TraceWindow window;
} JobTraceOptions;

typedef struct TraceFile {  // data/traces, as built in
    const char          *name;
    const unsigned char *bytes;
    size_t               len;
} TraceFile;

extern const TraceFile trace_files[];  // ends with an entry of zeros

// path: a file, or the name of a trace that is part of the program. format: a name, or "auto".
MUST_USE Err trace_read(const char *path, const char *format, const JobTraceOptions *o, Arena *a,
                        JobList *out);
MUST_USE Err trace_parse(const char *name, const char *text, size_t len, const char *format,
                         const JobTraceOptions *o, Arena *a, JobList *out);

const char *trace_format_name(uint32_t i);  // NULL after the last
const char *trace_format_about(uint32_t i);
const char *trace_formats(Arena *a);  // all names, parted by commas

// Our own format, with the columns that any of the jobs needs; it reads back as the same list.
void trace_write(FILE *f, const JobList *l);
