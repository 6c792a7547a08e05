// WhatIf: a run again with one thing changed for a job, and how that job then fares.
#pragma once

#include "eval/trace_run.h"

typedef enum WhatKind {
    WHAT_SERVERS,  // more, like the first
    WHAT_GANG,     // half the GPUs, twice the work
    WHAT_CORES,    // half
    WHAT_MEMORY,   // half
    WHAT_TYPE,     // any will do
    WHAT_POLICY,
} WhatKind;

typedef struct WhatIf {
    WhatKind            kind;
    uint32_t            servers;  // SERVERS: how many more
    const PolicyChoice *choice;   // POLICY; NULL: as it was
    const char         *text;     // set by what_if_run
    ClusterEnd          end;      // the same
} WhatIf;

// Jobs that come after `until`, when the job ended, change nothing for it and are left out.
MUST_USE Err what_if_run(const TraceRun *p, uint32_t job, TimeNs until, Arena *a, WhatIf *w);
