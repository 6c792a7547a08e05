// How fast a job goes with what it has, where it is and beside whom, by the profile of its class.
#include "base/check.h"
#include "cluster/cluster_sim_int.h"
#include "contract/demand.h"
#include "contract/pace.h"

static bool has_gpu(const ClusterTask *t, uint32_t server, uint64_t gpu) {
    for (uint32_t k = 0; k < t->n_slices; k++)
        if (t->slices[k].server == server) return (t->slices[k].mask & gpu) != 0;
    return false;
}

// As profile_share has it, for however many; who has no class does no harm. Jobs that ask for parts
// of GPUs were seen to fit into them.
static double company(const World *w, uint32_t slot, uint32_t server, uint64_t gpu) {
    const ServerState *v = &w->servers[server];
    const ClusterTask *me = &w->tasks[slot];
    double             speed = 1, n = 0;
    for (uint32_t i = 0; i < v->n_residents; i++) {
        const ClusterTask *t = &w->tasks[v->residents[i]];
        if (t == me || t->job.class == CLUSTER_NONE || !has_gpu(t, server, gpu)) continue;
        speed *= profile_pair(w->setup.profiles, me->job.class, t->job.class);
        n++;
    }
    CHECK(speed > 0 || me->job.gpu_milli < CLUSTER_WHOLE);
    return (n < 2 && speed > 0) || speed > 1 / (1 + n) ? speed : 1 / (1 + n);
}

static double beside(const World *w, uint32_t slot) {
    const ClusterTask *t = &w->tasks[slot];
    double             least = 1;
    for (uint32_t i = 0; i < t->n_slices; i++) {
        if (t->slices[i].gpu_milli == CLUSTER_WHOLE) continue;
        for (uint64_t m = t->slices[i].mask; m != 0; m &= m - 1) {
            double x = company(w, slot, t->slices[i].server, m & -m);
            if (x < least) least = x;
        }
    }
    return least;
}

// Synergy knows two points only: the best and the share.
static double best_or_share(const World *w, const ClusterTask *t) {
    Demand best;
    double speed = demand_best(&w->setup, &t->job, &best);
    for (uint32_t i = 0; i < t->n_slices; i++) {
        const ClusterSlice *s = &t->slices[i];
        Demand              d = demand_part(&best, s->gpus);
        if (s->cores_milli != d.cores_milli || s->memory_mib != d.memory_mib) return 1;
    }
    return speed;
}

double world_rate(const World *w, uint32_t slot) {
    const ClusterTask *t = &w->tasks[slot];
    bool classed = w->setup.profiles != NULL && t->job.class != CLUSTER_NONE && t->job.gpus > 0;
    if (classed && w->setup.in_rounds) return best_or_share(w, t);
    double alone = pace_alone(&w->setup, &t->job, t->slices, t->n_slices);
    return classed ? alone * beside(w, slot) : alone;
}
