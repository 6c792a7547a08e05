// GangDemand: the best-case resource demand of a gang by the profile of its class, as in Synergy.
#pragma once

#include "contract/cluster.h"
#include "contract/cluster_profile.h"

typedef struct GangDemand {  // of the whole gang
    uint32_t gpus, cores_milli, memory_mib;
} GangDemand;

// The proportional share of the first server that goes with the GPUs.
static inline GangDemand gang_demand_share(const ClusterSetup *s, uint32_t gpus) {
    const ClusterServer *x = &s->servers[0];
    uint64_t             all = x->gpus > 0 ? x->gpus : 1;
    return (GangDemand){gpus, (uint32_t)((uint64_t)x->cores_milli * gpus / all),
                        (uint32_t)((uint64_t)x->memory_mib * gpus / all)};
}

// Fewest cores, then least memory, at which one GPU reaches its top speed; returns that speed.
static inline double gang_demand_peak(const ClusterProfile *p, double *cores, double *gb) {
    const ProfileGrid *g = &p->speed;
    double             best = 0;
    for (uint32_t r = 0; r < g->rows; r++)
        for (uint32_t c = 0; c < g->columns; c++)
            if (g->at[r][c] > best) {
                best = g->at[r][c];
                *cores = g->row[r];
                *gb = g->column[c];
            }
    return best;
}

// The gang's peak demand, limited to one server (a gang that spans servers gets its proportional
// share instead). Returns its speed; a limited demand is interpolated by cores from share to peak.
static inline double gang_demand_best(const ClusterSetup *s, const ClusterJob *j, GangDemand *out) {
    const ClusterServer *x = &s->servers[0];
    GangDemand           share = gang_demand_share(s, j->gpus);
    bool                 wide = j->gpus > x->gpus;
    double               cores = 0, gb = 0, speed = 1, ideal, fair = share.cores_milli;
    *out = share;
    if (s->profiles == NULL || j->class == CLUSTER_NONE) return 1;
    speed = gang_demand_peak(&s->profiles->at[j->class], &cores, &gb);
    ideal = j->gpus * cores * 1000;
    double mib = j->gpus * gb * 1024;
    bool   few = ideal > x->cores_milli, little = mib > x->memory_mib;
    out->cores_milli = few ? (wide ? share.cores_milli : x->cores_milli) : (uint32_t)ideal;
    out->memory_mib = little ? (wide ? share.memory_mib : x->memory_mib) : (uint32_t)mib;
    if (!few && !little) return speed;
    if (wide || ideal == fair) return 1;
    return 1 + (speed - 1) / ((ideal - fair) / 1000) * ((out->cores_milli - fair) / 1000);
}

// The part of a demand for some of its GPUs.
static inline GangDemand gang_demand_part(const GangDemand *d, uint32_t gpus) {
    uint64_t all = d->gpus > 0 ? d->gpus : 1;
    return (GangDemand){gpus, (uint32_t)((uint64_t)d->cores_milli * gpus / all),
                        (uint32_t)((uint64_t)d->memory_mib * gpus / all)};
}
