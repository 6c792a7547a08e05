// Trials: the search for each contender's highest rate. Contenders alternate trial by trial, so
// that disturbances of the machine affect all alike.
#pragma once

#include "base/term.h"
#include "bench/tenants/contender_process.h"
#include "report/comparison_report.h"

enum { TRIALS_CONTENDERS = 8 };

typedef struct TrialParams {
    double   target, calm, tolerance, seconds, slack, least_qos_ms;
    double   range;                   // of a search: rates up to this factor from the first one
    uint32_t least_requests, trials;  // of a trial; trials of a search
    bool     by_tenant;               // prints each trial with the share in time of each tenant
    double   equal_share[COMPARISON_EQUALS];
    uint32_t seeds;
} TrialParams;

typedef struct Trials {
    const TrialParams *params;
    const Contender   *contenders[TRIALS_CONTENDERS];
    ContenderProcess   processes[TRIALS_CONTENDERS];
    uint32_t           n;
    ContenderOptions   cfg;
    TimeNs             alone[TRIALS_CONTENDERS][MIX_TENANTS];
    TimeNs             qos_ns[MIX_TENANTS];
} Trials;

// Starts the contenders and sets the targets: slack times the latency of a network alone, with
// cotenant or with ONNX Runtime's best, whichever is longer.
MUST_USE Err trials_open(Trials *r);
void         trials_close(Trials *r);
// baseline: the contender whose highest rate sets the equal loads; without it the first
MUST_USE Err trials_run(Trials *r, const char *mix, const char *baseline, Progress *p, Arena *a,
                        ComparisonCell *out);
