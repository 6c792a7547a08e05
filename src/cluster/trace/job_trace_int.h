// TraceReader: reads a trace row by row; a format is a table of columns. job_trace.c drives it,
// trace_fields.c parses fields; trace_formats.c, trace_plain.c, trace_sacct.c and
// trace_kubernetes.c hold the formats.
#pragma once

#include "base/csv.h"
#include "base/string_map.h"
#include "cluster/trace/job_trace.h"

typedef struct TraceReader TraceReader;
typedef Err (*TraceTake)(TraceReader *r, const char *text, Job *j);  // parses one field into a job

typedef struct TraceColumn {
    const char *name;
    bool        needed;
    TraceTake   take;
} TraceColumn;

typedef struct TraceFormat {
    const char        *name;
    char               sep;
    bool               header;              // false: columns by position, exactly these
    bool               strict;              // unknown columns are errors
    bool               dated;               // submissions are Unix time, rebased to the first job
    TimeNs             unit;                // of times without a unit
    const TraceColumn *columns;             // ends with a NULL name
    Err (*begin)(TraceReader *r);           // checks the header; may be NULL
    Err (*finish)(TraceReader *r, Job *j);  // computes what depends on several columns; may be NULL
    // For JSON instead of rows: reads all jobs of text[len].
    Err (*read)(TraceReader *r, const char *text, size_t len);
} TraceFormat;

enum { TRACE_COLUMNS = 32, TRACE_REASONS = 16 };

struct TraceReader {
    const TraceFormat     *format;
    const JobTraceOptions *options;
    Arena                 *arena;
    Csv                    csv;
    Interner               ids, models, tenants, gpu_types;
    Interner               rows;  // keys of rows read, where rows may be repeated
    TimeNs                 unit;
    const char            *column;                   // current one, for errors
    uint32_t               place[CSV_FIELDS];        // column of each field; JOB_NONE: ignored
    uint32_t               fields;                   // per row
    uint32_t               field_of[TRACE_COLUMNS];  // field of each column; JOB_NONE: absent
    JobList               *list;                     // jobs read so far
    const char            *skip;                     // reason to leave this row out; NULL: none
    RowsLeftOut            left_out[TRACE_REASONS];
    uint32_t               n_left_out;
    TimeNs                 began, ended;  // of this row; JOB_UNKNOWN if absent
    double                 factor;        // deadline as a multiple of the work; 0: none
};

#define X(id, about) extern const TraceFormat trace_##id;
#include "cluster/trace/trace_format.def"
#undef X

// An error "file:line: column: 'text' reason".
MUST_USE Err trace_bad(const TraceReader *r, const char *text, const char *reason);
MUST_USE Err trace_number(const TraceReader *r, const char *text, int64_t unit, int64_t most,
                          int64_t *out);
// Text of a column in this row, which errors name from now on; NULL: the file lacks the column.
const char *trace_text(TraceReader *r, uint32_t column);
// Counts rows that are not jobs; reason: a plural noun phrase, as "job steps".
void trace_leave_out(TraceReader *r, const char *reason, uint32_t rows);
// Names a job; a name that is taken gets a number: x#2.
MUST_USE Err trace_name_job(TraceReader *r, const char *name, Job *j);
MUST_USE Err trace_work_by_rate(TraceReader *r,
                                Job         *j);  // work = iterations x iteration time, if known

// Field parsers shared by formats.
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
