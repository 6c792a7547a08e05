// Planaria: allocation of core units to all requests at once, by feasibility and score.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { PLANARIA_MAX = 256 };  // requests considered, oldest first

typedef struct PlanariaTask {
    uint32_t request;
    bool     runs;
    uint32_t least;   // fewest units that meet its deadline; 0: infeasible
    uint32_t useful;  // units beyond which more do not help
    double   score;   // feasible: priority / (slack * least) > 0; else -priority / time left
    double   spare;   // claim to spare units if all fit: priority / time left on `least` units
    uint32_t units;   // result
} PlanariaTask;

// Sets units, and sorts the tasks by descending score (stable).
void planaria_allocate(PlanariaTask *tasks, uint32_t n, uint32_t n_units);
