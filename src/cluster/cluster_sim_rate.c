// How fast a job goes with what it has, where it is and beside whom, by the profile of its class.
#include "base/check.h"
#include "cluster/cluster_sim_int.h"
#include "contract/demand.h"
#include "contract/pace.h"

enum { COMPANY = 32 };  // on one GPU that is looked at, at most

// Classes of those that have a part of the same GPU; who has none does no harm.
static uint32_t company(const World *w, uint32_t slot, uint32_t server, uint64_t gpu,
                        uint32_t *classes) {
    const ServerState *v = &w->servers[server];
    uint32_t           n = 0;
    for (uint32_t i = 0; i < v->n_residents && n < COMPANY; i++) {
        const ClusterTask *t = &w->tasks[v->residents[i]];
        bool               there = false;
        if (v->residents[i] == slot || t->job.class == CLUSTER_NONE) continue;
        for (uint32_t k = 0; k < t->n_slices; k++)
            there = there || (t->slices[k].server == server && (t->slices[k].mask & gpu) != 0);
        if (there) classes[n++] = t->job.class;
    }
    return n;
}

// By the GPU where that is least. Jobs that ask for parts of GPUs were seen to fit into them.
static double beside(const World *w, uint32_t slot) {
    const ClusterTask *t = &w->tasks[slot];
    uint32_t           classes[COMPANY];
    double             least = 1;
    for (uint32_t i = 0; i < t->n_slices; i++) {
        if (t->slices[i].gpu_milli == CLUSTER_WHOLE) continue;
        for (uint64_t m = t->slices[i].mask; m != 0; m &= m - 1) {
            uint32_t n = company(w, slot, t->slices[i].server, m & -m, classes);
            double   x = profile_share(w->setup.profiles, t->job.class, classes, n);
            CHECK(x > 0 || t->job.gpu_milli < CLUSTER_WHOLE);
            if (!(x > 0)) x = 1.0 / (1.0 + n);
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
