// How fast a job goes with what it has.
#include "cluster/cluster_sim_int.h"

// A job that is nowhere described goes by the part that it has of the GPUs it asked for.
double world_rate(const World *w, uint32_t slot) {
    const ClusterTask *t = &w->tasks[slot];
    uint64_t           asked = cluster_gpu_milli(&t->job), has = 0;
    for (uint32_t i = 0; i < t->n_slices; i++)
        has += (uint64_t)t->slices[i].gpus * t->slices[i].gpu_milli;
    return has == asked || asked == 0 ? 1.0 : (double)has / (double)asked;
}
