// How fast a job goes with what it has, where it is and beside whom, by the profile of its class.
#include "cluster/cluster_sim_int.h"
#include "contract/demand.h"

enum { COMPANY = 32 };  // on one GPU that is looked at, at most

static double part(const ClusterTask *t) {
    uint64_t asked = cluster_gpu_milli(&t->job), has = 0;
    for (uint32_t i = 0; i < t->n_slices; i++)
        has += (uint64_t)t->slices[i].gpus * t->slices[i].gpu_milli;
    return has == asked || asked == 0 ? 1.0 : (double)has / (double)asked;
}

static double speed_with(const ClusterProfile *p, double gpus, double cores_milli, double mib) {
    return profile_speed(p, cores_milli / 1000 / gpus, mib / 1024 / gpus);
}

// A gang goes at the pace of the slice that has the least.
static double speed(const ClusterProfile *p, const ClusterTask *t) {
    double least = 0;
    for (uint32_t i = 0; i < t->n_slices; i++) {
        const ClusterSlice *s = &t->slices[i];
        double              x = speed_with(p, s->gpus, s->cores_milli, s->memory_mib);
        if (i == 0 || x < least) least = x;
    }
    double usual = speed_with(p, t->job.gpus, t->job.cores_milli, t->job.memory_mib);
    return usual > 0 ? least / usual : 1;
}

static double spread(const World *w, const ClusterProfile *p, const ClusterTask *t) {
    uint32_t fewest = (t->job.gpus + w->setup.most_gpus - 1) / w->setup.most_gpus;
    double   usual = profile_spread(p, t->job.gpus, fewest);
    return usual > 0 ? profile_spread(p, t->job.gpus, t->n_slices) / usual : 1;
}

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

static double beside(const World *w, uint32_t slot) {
    const ClusterTask *t = &w->tasks[slot];
    uint32_t           classes[COMPANY];
    double             least = 1;
    for (uint32_t i = 0; i < t->n_slices; i++) {
        if (t->slices[i].gpu_milli == CLUSTER_WHOLE) continue;
        for (uint64_t m = t->slices[i].mask; m != 0; m &= m - 1) {
            uint32_t n = company(w, slot, t->slices[i].server, m & -m, classes);
            double   x = profile_share(w->setup.profiles, t->job.class, classes, n);
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
    if (w->setup.profiles == NULL || t->job.class == CLUSTER_NONE || t->job.gpus == 0)
        return part(t);
    if (w->setup.in_rounds) return best_or_share(w, t);
    const ClusterProfile *p = &w->setup.profiles->at[t->job.class];
    double                with = w->run->rules.gpus_only ? 1 : speed(p, t);
    return with * spread(w, p, t) * beside(w, slot);
}
