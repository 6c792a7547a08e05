// Workload: networks that share a package.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef struct Workload {
    const char  *name;
    const char **networks;   // [n] of the zoo, or paths of ONNX files
    double      *target_ms;  // [n] of MLPerf's server scenario, by task; 0: it has none
    uint32_t     n;
} Workload;

const char *workload_name(uint32_t i);   // light, heavy, mixed, then others; NULL after the last
const char *workload_about(uint32_t i);  // of the same

// One of these, or networks of the zoo and paths of ONNX files, parted by commas or plus signs.
// Names are matched without regard to case and to - and _.
MUST_USE Err workload_find(const char *what, Arena *a, Workload *out);
