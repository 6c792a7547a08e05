// Pace: how fast a job goes with what it has and where it is, while nobody is beside it on its
// GPUs. With company it is as fast as that times profile_share on the GPU where that is least.
#pragma once

#include <math.h>

#include "contract/cluster.h"

// What a job asks for by default stands for the share by which its class was measured: with twice
// of that it is as fast as the class with twice the share. So nobody asks for too little.
static inline double rate_demand_scale(uint32_t asked, uint32_t gpus, double share, double unit) {
    double each = asked / unit / (gpus > 0 ? gpus : 1);
    return share > 0 && each > 0 ? each / share : 1;
}

static inline double rate_cores_scale(const ClusterProfiles *s, const ClusterJob *j) {
    return rate_demand_scale(j->cores_milli, j->gpus, s->share_cores, 1000);
}

static inline double rate_memory_scale(const ClusterProfiles *s, const ClusterJob *j) {
    return rate_demand_scale(j->memory_mib, j->gpus, s->share_gb, 1024);
}

// What a profile does not reach down to counts in proportion, so that nothing is had for nothing.
static inline double rate_shortfall(double has, double least) {
    return has < least ? has / least : 1;
}

// With so much for so many of its GPUs, against its default demand.
static inline double rate_resources(const ClusterProfiles *s, const ClusterJob *j, uint32_t gpus,
                                    uint32_t cores_milli, uint32_t memory_mib) {
    const ClusterProfile *p = &s->at[j->class];
    uint32_t              usual_cores = (uint32_t)((uint64_t)j->cores_milli * gpus / j->gpus);
    uint32_t              usual_memory = (uint32_t)((uint64_t)j->memory_mib * gpus / j->gpus);
    if (cores_milli == usual_cores && memory_mib == usual_memory) return 1;
    double cores = cores_milli / 1000.0 / gpus / rate_cores_scale(s, j);
    double gb = memory_mib / 1024.0 / gpus / rate_memory_scale(s, j);
    double usual = profile_speed(p, s->share_cores, s->share_gb), now = profile_speed(p, cores, gb);
    return (usual > 0 ? now / usual : 1) *
           rate_shortfall(cores, fmin(p->speed.row[0], s->share_cores)) *
           rate_shortfall(gb, fmin(p->speed.column[0], s->share_gb));
}

// On so many servers, against the fewest that could hold it.
static inline double rate_spread(const ClusterSetup *s, const ClusterJob *j, uint32_t servers) {
    const ClusterProfile *p = &s->profiles->at[j->class];
    uint32_t              fewest = (j->gpus + s->most_gpus - 1) / s->most_gpus;
    double                usual = profile_spread(p, j->gpus, fewest);
    return servers == fewest || !(usual > 0) ? 1 : profile_spread(p, j->gpus, servers) / usual;
}

// On a server's type of GPU, against the first of the profiles; 1 where that is not known.
static inline double rate_gpu_type(const ClusterSetup *s, const ClusterJob *j, uint32_t server) {
    const ClusterProfile *p = &s->profiles->at[j->class];
    uint32_t              type = s->profile_type[s->servers[server].type];
    if (type == PROFILE_NONE || !(p->iteration_s[0] > 0) || !(p->iteration_s[type] > 0)) return 1;
    return p->iteration_s[0] / p->iteration_s[type];
}

// A gang goes at the pace of its slowest slice. Without a class it is as fast as its part of what
// it asks of GPUs.
static inline double rate_alone(const ClusterSetup *s, const ClusterJob *j, const ClusterSlice *at,
                                uint32_t n) {
    double least = 0;
    if (j->gpus == 0) return 1;
    if (s->profiles == NULL || j->class == CLUSTER_NONE) {
        uint64_t has = 0, asked = cluster_gpu_milli(j);
        for (uint32_t i = 0; i < n; i++) has += (uint64_t)at[i].gpus * at[i].gpu_milli;
        return has == asked ? 1 : (double)has / (double)asked;
    }
    for (uint32_t i = 0; i < n; i++) {
        double x = rate_gpu_type(s, j, at[i].server);
        if (!s->gpus_only)
            x *= rate_resources(s->profiles, j, at[i].gpus, at[i].cores_milli, at[i].memory_mib);
        if (i == 0 || x < least) least = x;
    }
    return least * rate_spread(s, j, n);
}
