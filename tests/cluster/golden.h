// Golden: output of published simulators as rows of numbers, if the files are available.
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

// A file below COTENANT_CLUSTER_DATA, or in the project's data folder. False: absent.
bool golden_read(const char *name, bool has_header, Arena *a, Golden *out);
