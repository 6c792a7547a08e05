// TraceWindow: selects a part of a trace by time, number of jobs, sizes and durations.
#pragma once

#include "cluster/job.h"

typedef struct TraceWindow {  // zeroed: all jobs, times unchanged
    // Submission from (inclusive) to (exclusive): 90, 15m, 12h, 3d of the trace's own time, or
    // 2017-10-02, "2017-10-02 08:30:00" if the trace has dates; NULL: open.
    const char *from, *to;
    int64_t     skip, jobs;          // of the selected jobs: leave out, then take; 0: none, all
    int64_t     min_s, max_s;        // seconds of work; 0: any
    int64_t     min_gpus, max_gpus;  // 0: any
    bool        known;               // only jobs with known work
    bool        rebase;              // the first selected job arrives at 0
} TraceWindow;

MUST_USE Err trace_window_cut(const TraceWindow *w, JobList *l);  // Job.row is unchanged

// "12h" as time since the beginning of the trace; a date needs a list with an origin.
MUST_USE Err trace_window_time(const char *text, const JobList *l, TimeNs *out);

// "2017-10-02 08:30:00" or "2017-10-02", years 1970 to 2095, as seconds since 1970 UTC.
bool date_read(const char *text, int64_t *out);
// "2024-03-01T08:30:00" with an optional fraction and zone (Z, +01:00, +0100; none: UTC), since
// 1970.
bool instant_read(const char *text, TimeNs *out);
