// Profile: how fast a class of training jobs runs with what it is given, where, and beside whom.
//
// Speeds are relative: 1 is a job alone on its GPUs, on one server, with the default share of that
// server's cores and memory. A job's speed is the product of profile_speed, profile_spread and
// profile_share. A job whose default demand is another is fast by the quotient of two
// profile_speed; so is one that never fits on one server, of two profile_spread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROFILE_ROWS = 12,    // of a grid, at most: cores; GPUs
    PROFILE_COLUMNS = 8,  // memory; servers
    PROFILE_ALLOC_LEVELS = 6,
    PROFILE_TYPES = 16,  // of GPUs
    PROFILE_CLASSES = 64,
};
#define PROFILE_NONE UINT32_MAX

typedef enum ProfileStage {  // what an iteration uses in turn; they may overlap
    PROFILE_CPU,
    PROFILE_STORAGE,
    PROFILE_GPU,
    PROFILE_NETWORK,
    PROFILE_STAGES
} ProfileStage;

// Values over two ascending axes; between points bilinear, outside as at the edge.
typedef struct ProfileGrid {
    uint32_t rows, columns;  // at least 1
    double   row[PROFILE_ROWS], column[PROFILE_COLUMNS];
    double   at[PROFILE_ROWS][PROFILE_COLUMNS];
} ProfileGrid;

// A point at which a job may run. Of two rungs the upper has no less of anything.
typedef struct AllocLevel {
    double cores, gb;  // for each GPU
    double share;      // of the GPU: 1, or less where it has company
    double speed;      // against the default; with company: what it has on average
} AllocLevel;

typedef struct AllocLevels {
    AllocLevel at[PROFILE_ALLOC_LEVELS];
    uint32_t   n, usual;  // at[usual] is the default share
} AllocLevels;

typedef struct ClusterProfile {
    const char  *name;
    const char **aliases;  // ends with NULL; or NULL
    ProfileGrid  speed;    // cores for each GPU x GB for each GPU: never falls along either
    ProfileGrid  spread;   // GPUs x servers: 1 on one server, never rises with servers
    AllocLevels  levels;
    double       restart_s;                   // to begin again where it was, after it was stopped
    double       gpu_gb;                      // memory that it needs of a GPU; 0: not known
    double       gpu_util, gpu_memory_util;   // part of the time, alone and well fed
    double       iteration_s[PROFILE_TYPES];  // by type of GPU, on one; 0: not known
    double       stage_s[PROFILE_STAGES];     // of an iteration on GPUs of type 0; 0: not known
    double       weight;  // how often a job is of it, where a trace does not tell; 0: never
} ClusterProfile;

typedef struct ClusterProfiles {
    ClusterProfile *at;
    uint32_t        n, n_types;
    const char     *type[PROFILE_TYPES];
    double          share_cores, share_gb;  // the default, for each GPU
    double         *pair;                   // [PROFILE_CLASSES][PROFILE_CLASSES], see profile_pair
} ClusterProfiles;

// The last point of an axis at or below x, or the first; and how far x is on the way to the next.
static inline uint32_t profile_axis(const double *axis, uint32_t n, double x, double *part) {
    uint32_t i = 0;
    while (i + 1 < n && x >= axis[i + 1]) i++;
    *part = i + 1 < n && x > axis[i] ? (x - axis[i]) / (axis[i + 1] - axis[i]) : 0;
    return i;
}

// Exact at points, and where neighbours are equal.
static inline double profile_grid(const ProfileGrid *g, double row, double column) {
    double   down = 0, along = 0;
    uint32_t r = profile_axis(g->row, g->rows, row, &down);
    uint32_t c = profile_axis(g->column, g->columns, column, &along);
    uint32_t r1 = r + (down > 0), c1 = c + (along > 0);
    double   upper = g->at[r][c] + (g->at[r][c1] - g->at[r][c]) * along;
    double   lower = g->at[r1][c] + (g->at[r1][c1] - g->at[r1][c]) * along;
    return upper + (lower - upper) * down;
}

// With so many cores and GB for each of its GPUs.
static inline double profile_speed(const ClusterProfile *p, double cores, double gb) {
    return profile_grid(&p->speed, cores, gb);
}

static inline double profile_spread(const ClusterProfile *p, uint32_t gpus, uint32_t servers) {
    return servers < 2 ? 1 : profile_grid(&p->spread, gpus, servers);
}

// Of class a when it shares a GPU with one of class b; 0: both do not fit.
static inline double profile_pair(const ClusterProfiles *s, uint32_t a, uint32_t b) {
    return s->pair[(size_t)a * PROFILE_CLASSES + b];
}

// Of class a when it shares a GPU with others: the product of its pairs, but never less than its
// equal part of the GPU; 0: somebody does not fit.
static inline double profile_share(const ClusterProfiles *s, uint32_t a, const uint32_t *others,
                                   uint32_t n) {
    double speed = 1, least = 1.0 / (1.0 + n);
    for (uint32_t i = 0; i < n; i++) speed *= profile_pair(s, a, others[i]);
    if (n < 2 || !(speed > 0)) return speed;
    return speed > least ? speed : least;
}
