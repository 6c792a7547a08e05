// WhatIf: repeats a cluster run with one thing changed, to see how long a job would wait then.
#pragma once

#include "eval/trace_run.h"

typedef enum WhatKind {
    WHAT_SERVERS,  // more servers like the first
    WHAT_GANG,     // half the GPUs, for twice as long
    WHAT_CORES,    // half the cores
    WHAT_MEMORY,   // half the memory
    WHAT_TYPE,     // any type of GPU
    WHAT_POLICY,
} WhatKind;

typedef struct WhatIf {
    WhatKind            kind;
    uint32_t            servers;  // WHAT_SERVERS: how many more
    const PolicyChoice *choice;   // WHAT_POLICY; NULL otherwise
    const char         *text;     // describes the change; set by what_if_run
    ClusterEnd          end;      // of the job; set by what_if_run
} WhatIf;

// Jobs submitted after `until`, the end of the job in the original run, are left out: they cannot
// delay it.
MUST_USE Err what_if_run(const TraceRun *p, uint32_t job, TimeNs until, Arena *a, WhatIf *w);
