// TraceReader: one trace being read, row by row, column by column; formats are tables of columns.
#pragma once

#include "base/csv.h"
#include "base/string_map.h"
#include "cluster/trace/job_trace.h"

typedef struct TraceReader TraceReader;
typedef Err (*TraceTake)(TraceReader *r, const char *text, Job *j);  // one field into a job

typedef struct TraceColumn {
    const char *name;
    bool        needed;
    TraceTake   take;
} TraceColumn;

typedef struct TraceFormat {
    const char        *name;
    char               sep;
    bool               header;              // false: columns by place, all of them, and no others
    bool               strict;              // columns that we do not know are refused
    bool               dated;               // submissions are Unix time; ours begins with the first
    TimeNs             unit;                // of times that are bare numbers
    const TraceColumn *columns;             // ends with a name of NULL
    Err (*finish)(TraceReader *r, Job *j);  // what takes several columns to know; may be NULL
} TraceFormat;

struct TraceReader {
    const TraceFormat     *format;
    const JobTraceOptions *options;
    Arena                 *arena;
    Csv                    csv;
    Interner               ids, models, tenants, gpu_types;
    TimeNs                 unit;
    const char            *column;             // being read, for errors
    uint32_t               place[CSV_FIELDS];  // field -> column of the format; JOB_NONE: skipped
    uint32_t               fields;             // a row has
    TimeNs                 began, ended;       // of this row; JOB_UNKNOWN where it does not tell
    double                 factor;             // a deadline in multiples of the work; 0: none
};

#define X(id, about) extern const TraceFormat trace_##id;
#include "cluster/trace/trace_format.def"
#undef X

// "file:line: column: 'text' reason", as an error.
MUST_USE Err trace_bad(const TraceReader *r, const char *text, const char *reason);
MUST_USE Err trace_number(const TraceReader *r, const char *text, int64_t unit, int64_t most,
                          int64_t *out);
MUST_USE Err trace_work_by_rate(TraceReader *r, Job *j);  // iterations times the rate, where known

// Takers that formats share.
Err trace_take_id(TraceReader *r, const char *text, Job *j);
Err trace_take_submit(TraceReader *r, const char *text, Job *j);
Err trace_take_date(TraceReader *r, const char *text, Job *j);
Err trace_take_work(TraceReader *r, const char *text, Job *j);
Err trace_take_gpus(TraceReader *r, const char *text, Job *j);
Err trace_take_gpus_or_none(TraceReader *r, const char *text, Job *j);
Err trace_take_gpu_milli(TraceReader *r, const char *text, Job *j);
Err trace_take_gpu_types(TraceReader *r, const char *text, Job *j);
Err trace_take_cores(TraceReader *r, const char *text, Job *j);
Err trace_take_model(TraceReader *r, const char *text, Job *j);
Err trace_take_tenant(TraceReader *r, const char *text, Job *j);
Err trace_take_priority(TraceReader *r, const char *text, Job *j);
Err trace_take_iterations(TraceReader *r, const char *text, Job *j);
Err trace_take_iteration(TraceReader *r, const char *text, Job *j);
