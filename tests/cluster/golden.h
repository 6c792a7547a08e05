// Golden: what other people's simulators said, where their files are at hand, as rows of numbers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum { GOLDEN_COLUMNS = 16 };

typedef struct GoldenRow {
    double at[GOLDEN_COLUMNS];  // 0 where a column holds no number
    char   word[16];            // the second column, as it is written
} GoldenRow;

typedef struct Golden {
    GoldenRow *rows;
    uint32_t   n;
} Golden;

// The file below COTENANT_CLUSTER_DATA, or else where the project keeps its data. False: not there.
bool golden_read(const char *name, bool has_header, Arena *a, Golden *out);
