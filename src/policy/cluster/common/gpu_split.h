// GpuSplit: divides GPUs among jobs that can use one of several numbers of them, so that the sum of
// their values is large, and makes a plan of it.
//
// With few jobs and GPUs the sum is the largest, by dynamic programming. Else steps go to the job
// and the number with the most value per further GPU until none gains or fits. In a plan, jobs that
// shrink keep some of their GPUs; then jobs stop, others start, the largest first, and jobs grow,
// on any server. Where a number does not fit, the next smaller one is tried.
#pragma once

#include "policy/cluster/common/plan_builder.h"

enum {
    GPU_SPLIT_OPTIONS = 24,
    GPU_SPLIT_EXACT_JOBS = 48,  // at most, for dynamic programming
    GPU_SPLIT_EXACT_GPUS = 128,
};

typedef struct GpuOption {
    uint32_t gpus;  // 0: waits
    double   value;
} GpuOption;

typedef struct GpuSplitItem {
    uint32_t  slot, n, at, held;               // at: the chosen option; held: GPUs it has
    uint32_t  next;                            // the best step from there
    double    density;                         // its value per GPU; not above 0: none
    GpuOption options[GPU_SPLIT_OPTIONS + 2];  // [n] ascending by GPUs
} GpuSplitItem;

typedef struct GpuSplit {
    GpuSplitItem *items;                          // [n]
    uint32_t     *order;                          // [n]
    uint8_t (*choice)[GPU_SPLIT_EXACT_GPUS + 1];  // [GPU_SPLIT_EXACT_JOBS]
    uint32_t n;
    // Value of so many GPUs, relative to none; for the number it has, without a restart.
    double (*value)(const void *self, const ClusterView *v, uint32_t slot, uint32_t gpus);
    ClusterJob (*demand)(const void *self, const ClusterSetup *s, const ClusterJob *j);  // or NULL
    const void *self;
    bool        stops;  // running jobs may be stopped
} GpuSplit;

void gpu_split_carve(GpuSplit *x, const ClusterSetup *s, Carve *from);

// Adds a waiting task, or a running one that may change, with the numbers that it may have.
// Returns the GPUs it holds.
uint32_t gpu_split_add(GpuSplit *x, const ClusterView *v, uint32_t slot);

void gpu_split_run(GpuSplit *x, uint64_t gpus);
void gpu_split_steps(GpuSplit *x, uint64_t gpus);  // the same for any number of jobs and GPUs
void gpu_split_apply(GpuSplit *x, PlanBuilder *d);
