// FgdMix: the shapes of the jobs that came so far, how often each, and how much of what a server
// has free is of no use to them: its fragmentation.
#pragma once

#include "contract/cluster.h"
#include "base/carve.h"

enum { FGD_SHAPES = 256 };  // that are told apart, at most

typedef struct FgdShape {  // of the largest slice that a job can have of one server
    uint32_t gpus, gpu_milli, gpu_types, cores_milli, memory_mib;
    uint64_t count;
} FgdShape;

typedef struct FgdMix {
    FgdShape shapes[FGD_SHAPES];
    FgdShape used[FGD_SHAPES];    // those that count, as of the last fgd_mix_update
    double   weight[FGD_SHAPES];  // of them; they sum to 1
    uint32_t n, n_used;
    uint64_t seen, settled_at;
} FgdMix;

typedef struct FgdFree {  // what is free of a server
    uint32_t cores_milli, memory_mib, type, n;
    uint16_t parts[CLUSTER_GPUS];  // [n] of its GPUs
} FgdFree;

void fgd_mix_see(FgdMix *m, const ClusterSetup *s, const ClusterJob *j);

// Weights follow what was seen, of the `most` shapes seen most often. Returns whether they changed:
// they do whenever a twentieth more was seen.
bool fgd_mix_update(FgdMix *m, uint32_t most);

// Thousandths of GPUs that are free and that a job drawn from the mix could not use, on average.
double fgd_mix_fragmentation(const FgdMix *m, const FgdFree *r);
