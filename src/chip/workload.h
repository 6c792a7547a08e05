// Workload: the networks that share a package.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "chip/request_trace.h"

typedef struct Workload {
    const char  *name;
    const char **networks;   // [n] zoo names or paths of ONNX files
    double      *target_ms;  // [n] latency target of MLPerf's server scenario for the task; 0: none
    uint32_t     n;
} Workload;

// A named workload, or zoo networks and ONNX files separated by commas or plus signs. Names are
// compared as by chip_file_same.
MUST_USE Err workload_find(const char *what, Arena *a, Workload *out);

// The tenants' networks of a trace of requests; one that several tenants use occurs several times.
MUST_USE Err workload_of_trace(const RequestTrace *t, Arena *a, Workload *out);
