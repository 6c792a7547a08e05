// Planaria: units of cores for all requests at once, by feasibility and score.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { PLANARIA_MAX = 256 };  // requests looked at, the oldest

typedef struct PlanariaTask {
    uint32_t request;
    bool     runs;
    uint32_t least;   // units that answer it in time; 0: there is no such number
    uint32_t useful;  // units, at most
    double score;  // above 0 when feasible: priority / (slack * least); else -priority / time left
    double spare;  // claim to spare units when all fit: priority / time left on least
    uint32_t units;  // the answer
} PlanariaTask;

// Fills in units and orders the tasks by score, highest first; equal ones stay in order.
void planaria_allot(PlanariaTask *tasks, uint32_t n, uint32_t n_units);
