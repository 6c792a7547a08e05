// Booth: a contender in a process of its own that is stopped while others are tried, its spinning
// threads included.
#pragma once

#include "bench/ort/child.h"
#include "bench/tenants/contender.h"

typedef struct Booth {
    const char *name;
    Child       child;
} Booth;

// Loads the networks and runs each until warm. On failure nothing runs.
MUST_USE Err booth_start(Booth *b, const Contender *c, const Terms *t);
// The median of some runs of each network, alone on the machine.
MUST_USE Err booth_alone(Booth *b, uint32_t n_tenants, TimeNs *median);
// latencies_ms: [trial->n] of the answered ones, n_latencies of them; NULL: nobody wants them.
MUST_USE Err booth_try(Booth *b, const Trial *trial, Tally *out, double *latencies_ms,
                       uint32_t *n_latencies);
void         booth_end(Booth *b);  // accepts one that never started
