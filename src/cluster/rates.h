// Rates: how long one iteration of a model takes on so many GPUs, for traces that count iterations.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/time.h"

typedef struct Rate {
    const char *model;
    uint32_t    gpus;
    double      iteration_s;
    int64_t     iterations;  // of a whole job, where the trace does not tell; 0: not known
} Rate;

typedef struct Rates {
    Rate    *at;
    uint32_t n;
} Rates;

// model,gpus,iteration_s[,iterations]; or Gavel's gpu_type,model,scale_factor,steps_per_s, of which
// the rows of gpu_type (NULL: v100) count; or Synergy's set,model,gpus,...,iter_time_s (set
// models).
MUST_USE Err rates_read(const char *path, const char *gpu_type, Arena *a, Rates *out);
MUST_USE Err rates_parse(const char *name, const char *text, size_t len, const char *gpu_type,
                         Arena *a, Rates *out);

// Of so many GPUs; else of the largest number below, else of the smallest above; NULL: unknown
// model.
const Rate *rates_find(const Rates *r, const char *model, uint32_t gpus);
