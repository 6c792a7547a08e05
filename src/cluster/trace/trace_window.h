// TraceWindow: the part of a trace that a run is about: a time, a number of jobs, sizes, durations.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cluster/job.h"

typedef struct TraceWindow {  // zeroed: everything, times as they are
    const char *from,
        *to;             // submitted at or after, before: 90, 15m, 12h, 3d of the trace's own time,
                         // or 2017-10-02, "2017-10-02 08:30:00" where it has dates; NULL: open
    int64_t skip, jobs;  // of those left, leave out so many, then take so many; 0: none, all
    int64_t min_s, max_s;        // seconds of work; 0: any
    int64_t min_gpus, max_gpus;  // of its gang; 0: any
    bool    known;               // only jobs whose work is known
    bool    rebase;              // the first job that is left comes at 0
} TraceWindow;

MUST_USE Err trace_window_cut(const TraceWindow *w, JobList *l);  // keeps rows as they were

// "12h" as a time since the beginning of the trace; a date needs a list with an origin.
MUST_USE Err trace_window_time(const char *text, const JobList *l, TimeNs *out);

// Date: "2017-10-02 08:30:00" as seconds since 1970, as if every clock showed UTC.

bool date_read(const char *text,
               int64_t    *out);  // years 1970 to 2095; the time of day may be missing
