// Rounds: contenders take turns, trial by trial, so that whatever the machine goes through hits all
// alike; each searches its own highest rate.
#pragma once

#include "base/term.h"
#include "bench/tenants/booth.h"
#include "report/comparison_report.h"

enum { ROUNDS_CONTENDERS = 8 };

typedef struct Rules {
    double   target, calm, tolerance, seconds, slack;
    double   equal_share[COMPARISON_EQUALS];
    uint32_t seeds;
} Rules;

typedef struct Rounds {
    const Rules     *rules;
    const Contender *contenders[ROUNDS_CONTENDERS];
    Booth            booths[ROUNDS_CONTENDERS];
    uint32_t         n;
    Terms            terms;
    TimeNs           alone[ROUNDS_CONTENDERS][MIX_TENANTS];
    TimeNs           qos_ns[MIX_TENANTS];
} Rounds;

// Starts the contenders and sets the targets: slack times what a network takes alone, with ours or
// with ONNX Runtime's best, whichever is longer.
MUST_USE Err rounds_open(Rounds *r);
void         rounds_close(Rounds *r);
// baseline: the contender whose highest rate sets the equal loads; without it the first
MUST_USE Err rounds_run(Rounds *r, const char *mix, const char *baseline, Progress *p, Arena *a,
                        ComparisonCell *out);
