// Duel: one network on one number of threads, both engines taking turns in short bursts.
#pragma once

#include "bench/ort/worker.h"

typedef struct Side {
    double   min_ms, median_ms;
    uint32_t runs;
} Side;

typedef struct Duel {
    const char *name;  // of the network
    int         threads;
    Side        ours, ort;
    double      off;     // largest difference, as a share of the largest number of that output
    double      cosine;  // between the outputs, the least over them
    bool        quantised, agrees;
    const char *failure;  // why there are no numbers; NULL otherwise
} Duel;

typedef struct Rules {
    double seconds;    // for each side, at least
    double tolerance;  // for off
} Rules;

enum { DUEL_LEAST_RUNS = 8 };
#define DUEL_COSINE 0.97  // quantised networks: the order of rounding alone moves single numbers

// What goes wrong is told in failure. The arena's memory is used, not kept.
void duel_run(Duel *d, const char *path, const Terms *terms, const Rules *rules, Arena *a);
