// ClusterProfile: speed of a class of training jobs by allocation, placement and co-runners.
//
// Speeds are relative: 1 is a job alone on its GPUs, on one server, with the default share of cores
// and memory. The speed is the product of profile_speed, profile_spread and profile_share, each
// divided by its value at the job's own default (its demand, and the fewest servers that hold it).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROFILE_ROWS = 12,    // of a grid, at most: cores, or GPUs
    PROFILE_COLUMNS = 8,  // memory, or servers
    PROFILE_ALLOC_LEVELS = 6,
    PROFILE_TYPES = 16,  // GPU types
    PROFILE_CLASSES = 64,
};
#define PROFILE_NONE UINT32_MAX

typedef enum ProfileStage {  // resources that an iteration uses in turn; stages may overlap
    PROFILE_CPU,
    PROFILE_STORAGE,
    PROFILE_GPU,
    PROFILE_NETWORK,
    PROFILE_STAGES
} ProfileStage;

// Values over two ascending axes; bilinear interpolation, constant beyond the edges.
typedef struct ProfileGrid {
    uint32_t rows, columns;  // at least 1
    double   row[PROFILE_ROWS], column[PROFILE_COLUMNS];
    double   at[PROFILE_ROWS][PROFILE_COLUMNS];
} ProfileGrid;

// An allocation at which a job may run. A higher level has at least as much of everything.
typedef struct AllocLevel {
    double cores, gb;  // per GPU
    double share;      // of the GPU: 1, or less if shared
    double speed;      // relative to the default; if shared, the mean
} AllocLevel;

typedef struct AllocLevels {
    AllocLevel at[PROFILE_ALLOC_LEVELS];
    uint32_t   n, usual;  // at[usual] is the default allocation
} AllocLevels;

typedef struct ClusterProfile {
    const char  *name;
    const char **aliases;  // ends with NULL; or NULL
    ProfileGrid  speed;    // cores per GPU x GB per GPU: monotonically increasing
    ProfileGrid  spread;   // GPUs x servers: 1 on one server, decreasing with servers
    ProfileGrid  scaling;  // GPUs x 1: speed relative to one GPU; no rows: profile_scaling_law
    AllocLevels  levels;
    double       restart_s;                   // cost of a restart after a preemption
    double       gpu_gb;                      // memory per GPU; 0: unknown
    double       gpu_util, gpu_memory_util;   // shares of time, alone and without shortage
    double       iteration_s[PROFILE_TYPES];  // by GPU type, on one GPU; 0: unknown
    double       stage_s[PROFILE_STAGES];     // of an iteration, GPU type 0; 0: unknown
    double       weight;  // relative frequency for traces without classes; 0: never
} ClusterProfile;

typedef struct ClusterProfiles {
    ClusterProfile *at;
    uint32_t        n, n_types;
    const char     *type[PROFILE_TYPES];
    double          share_cores, share_gb;  // default allocation per GPU
    double         *pair;                   // [PROFILE_CLASSES][PROFILE_CLASSES], see profile_pair
} ClusterProfiles;

// Index of the last axis point <= x (or 0), and the fraction of the way to the next.
static inline uint32_t profile_axis(const double *axis, uint32_t n, double x, double *part) {
    uint32_t i = 0;
    while (i + 1 < n && x >= axis[i + 1]) i++;
    *part = i + 1 < n && x > axis[i] ? (x - axis[i]) / (axis[i + 1] - axis[i]) : 0;
    return i;
}

// Exact at grid points and between equal neighbours.
static inline double profile_grid(const ProfileGrid *g, double row, double column) {
    double   down = 0, along = 0;
    uint32_t r = profile_axis(g->row, g->rows, row, &down);
    uint32_t c = profile_axis(g->column, g->columns, column, &along);
    uint32_t r1 = r + (down > 0), c1 = c + (along > 0);
    double   upper = g->at[r][c] + (g->at[r][c1] - g->at[r][c]) * along;
    double   lower = g->at[r1][c] + (g->at[r1][c1] - g->at[r1][c]) * along;
    return upper + (lower - upper) * down;
}

// By cores and GB per GPU.
static inline double profile_speed(const ClusterProfile *p, double cores, double gb) {
    return profile_grid(&p->speed, cores, gb);
}

static inline double profile_spread(const ClusterProfile *p, uint32_t gpus, uint32_t servers) {
    return servers < 2 ? 1 : profile_grid(&p->spread, gpus, servers);
}

// Time that each further GPU adds to a step, as a part of the step's time on one: eight GPUs run
// 5.9 times as fast as one.
#define PROFILE_SCALING_LOSS 0.05
static inline double profile_scaling_law(double gpus) {
    return gpus / (1 + PROFILE_SCALING_LOSS * (gpus - 1));
}

// Speed of a job on so many GPUs, relative to one; beyond the table it stays as it is.
static inline double profile_scaling(const ClusterProfile *p, uint32_t gpus) {
    return p->scaling.rows == 0 ? profile_scaling_law(gpus) : profile_grid(&p->scaling, gpus, 1);
}

// Speed of class a beside class b on a GPU; 0 if they do not fit together.
static inline double profile_pair(const ClusterProfiles *s, uint32_t a, uint32_t b) {
    return s->pair[(size_t)a * PROFILE_CLASSES + b];
}

// Speed of class a beside n others on a GPU: the product of its pairs, at least 1 / (n + 1); 0 if
// GPU memory does not fit.
static inline double profile_share(const ClusterProfiles *s, uint32_t a, const uint32_t *others,
                                   uint32_t n) {
    double speed = 1, least = 1.0 / (1.0 + n);
    for (uint32_t i = 0; i < n; i++) speed *= profile_pair(s, a, others[i]);
    if (n < 2 || !(speed > 0)) return speed;
    return speed > least ? speed : least;
}
