// Rate: progress of a job by its allocation and placement, without co-runners on its GPUs. With
// co-runners it is multiplied by the smallest profile_share of its GPUs.
#pragma once

#include <math.h>

#include "contract/cluster.h"

// Ratio of a job's default demand per GPU to the default share of its class profile. Allocations
// are divided by it, so that a job at its default demand has the speed of the profiled default.
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

// Below the profiled range the rate falls in proportion.
static inline double rate_shortfall(double has, double least) {
    return has < least ? has / least : 1;
}

// Rate with the given cores and memory for `gpus` of its GPUs, relative to its default demand.
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

static inline uint32_t rate_fewest_servers(const ClusterSetup *s, uint32_t gpus) {
    return (gpus + s->most_gpus - 1) / s->most_gpus;
}

// Rate on `servers` servers, relative to the fewest that can hold it.
static inline double rate_spread(const ClusterSetup *s, const ClusterJob *j, uint32_t servers) {
    const ClusterProfile *p = &s->profiles->at[j->class];
    uint32_t              fewest = rate_fewest_servers(s, j->gpus);
    double                usual = profile_spread(p, j->gpus, fewest);
    return servers == fewest || !(usual > 0) ? 1 : profile_spread(p, j->gpus, servers) / usual;
}

// Rate of an elastic job on so many GPUs, relative to its submitted number, each on the fewest
// servers that can hold them.
static inline double rate_scaling(const ClusterSetup *s, const ClusterJob *j, uint32_t gpus) {
    if (gpus == j->gpus || j->gpus == 0) return 1;
    if (s->profiles == NULL || j->class == CLUSTER_NONE)
        return profile_scaling_law(gpus) / profile_scaling_law(j->gpus);
    const ClusterProfile *p = &s->profiles->at[j->class];
    double now = profile_scaling(p, gpus) * profile_spread(p, gpus, rate_fewest_servers(s, gpus));
    double usual =
        profile_scaling(p, j->gpus) * profile_spread(p, j->gpus, rate_fewest_servers(s, j->gpus));
    return usual > 0 ? now / usual : 1;
}

// Rate on a server's GPU type, relative to type 0 of the profiles; 1 if unknown.
static inline double rate_gpu_type(const ClusterSetup *s, const ClusterJob *j, uint32_t server) {
    const ClusterProfile *p = &s->profiles->at[j->class];
    uint32_t              type = s->profile_type[s->servers[server].type];
    if (type == PROFILE_NONE || !(p->iteration_s[0] > 0) || !(p->iteration_s[type] > 0)) return 1;
    return p->iteration_s[0] / p->iteration_s[type];
}

// A gang runs at the rate of its slowest slice. Without a class its rate is the share of the
// requested GPU capacity that it has.
static inline double rate_alone(const ClusterSetup *s, const ClusterJob *j, const ClusterSlice *at,
                                uint32_t n) {
    double least = 0;
    if (j->gpus == 0) return 1;
    ClusterJob as = cluster_job_as(j, at, n);
    double     scaling = rate_scaling(s, j, as.gpus);
    if (s->profiles == NULL || j->class == CLUSTER_NONE) {
        uint64_t has = 0, asked = cluster_gpu_milli(&as);
        for (uint32_t i = 0; i < n; i++) has += (uint64_t)at[i].gpus * at[i].gpu_milli;
        return has == asked ? scaling : scaling * (double)has / (double)asked;
    }
    for (uint32_t i = 0; i < n; i++) {
        double x = rate_gpu_type(s, j, at[i].server);
        if (!s->gpus_only)
            x *= rate_resources(s->profiles, j, at[i].gpus, at[i].cores_milli, at[i].memory_mib);
        if (i == 0 || x < least) least = x;
    }
    return least * scaling * rate_spread(s, &as, n);
}
