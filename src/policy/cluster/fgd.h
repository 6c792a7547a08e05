// FgdMix: the shapes of the jobs seen so far with their frequencies, and a server's fragmentation:
// the free GPU capacity that such jobs cannot use.
#pragma once

#include "contract/cluster.h"

enum { FGD_SHAPES = 256 };  // distinct shapes, at most

typedef struct FgdShape {  // a job's largest slice on one server
    uint32_t        gpus, gpu_milli, gpu_types, cores_milli, memory_mib;
    const uint64_t *servers;
    uint64_t        count;
} FgdShape;

typedef struct FgdMix {
    FgdShape shapes[FGD_SHAPES];
    FgdShape used[FGD_SHAPES];    // [n_used] most frequent, as of the last fgd_mix_update
    double   weight[FGD_SHAPES];  // of used; sums to 1
    uint32_t n, n_used;
    uint64_t seen, weighted_at;
} FgdMix;

typedef struct FgdFree {  // free resources of a server
    uint32_t cores_milli, memory_mib, server, type, n;
    uint16_t parts[CLUSTER_GPUS];  // [n] free thousandths of each GPU
} FgdFree;

void fgd_mix_count(FgdMix *m, const ClusterSetup *s, const ClusterJob *j);

// Recomputes the weights of the `most` most frequent shapes once 5 % more jobs were counted.
// Returns whether it did.
bool fgd_mix_update(FgdMix *m, uint32_t most);

// Expected free thousandths of GPUs that a job drawn from the mix cannot use.
double fgd_mix_fragmentation(const FgdMix *m, const FgdFree *r);
