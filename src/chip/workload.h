// Workload: networks that share a package.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef struct Workload {
    const char  *name;
    const char **networks;   // [n]
    double      *share;      // [n] of the requests
    double      *target_ms;  // [n] MLPerf's, or by its rule
    uint32_t     n;
} Workload;

const char  *workload_name(uint32_t i);  // light, heavy, mixed; NULL after the last
MUST_USE Err workload_find(const char *what, Arena *a, Workload *out);
