// ContenderProcess: a contender in its own process, which is stopped during trials of others,
// spinning threads included.
#pragma once

#include "bench/ort/child.h"
#include "bench/tenants/contender.h"

typedef struct ContenderProcess {
    const char *name;
    Child       child;
} ContenderProcess;

// Loads and warms up the networks. On failure no process is left.
MUST_USE Err contender_process_start(ContenderProcess *b, const Contender *c,
                                     const ContenderOptions *t);
// Median latency of each network alone on the machine.
MUST_USE Err contender_process_alone(ContenderProcess *b, uint32_t n_tenants, TimeNs *median);
// latencies_ms: [trial->n], the n_latencies answered requests; NULL: not needed.
MUST_USE Err contender_process_try(ContenderProcess *b, const Trial *trial, Tally *out,
                                   double *latencies_ms, uint32_t *n_latencies);
void         contender_process_end(ContenderProcess *b);  // accepts a process that never started
