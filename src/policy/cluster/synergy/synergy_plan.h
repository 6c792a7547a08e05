// SynergyPlan: one round of Synergy: jobs are placed one after the other on empty servers, with
// their best demand of cores and memory or with the share that goes with their GPUs.
#pragma once

#include "base/carve.h"
#include "contract/gang_demand.h"

typedef enum SynergyMode {
    SYNERGY_FAIR,    // every job has the share that goes with its GPUs
    SYNERGY_GREEDY,  // its best demand or nothing
    SYNERGY_TUNE,    // the best demand; jobs above their share give back for later ones
} SynergyMode;

typedef struct SynergyTask {
    uint64_t id;     // of the job in this slot, plus 1; 0: none
    uint32_t class;  // believed when `best` was found
    GangDemand      best;
    double          best_speed, speed;
    const uint64_t *servers;   // of the job
    TimeNs          left_at;   // last time it had GPUs, or submission
    uint32_t        first, n;  // its slices in this round
    bool            aged;
} SynergyTask;

typedef struct SynergyServer {
    GangDemand used, hold;
    uint32_t   n;
} SynergyServer;

typedef struct SynergyPlan {
    const ClusterSetup *setup;
    const ClusterView  *view;  // running jobs stay where they are; NULL: all are placed anew
    SynergyMode         mode;
    SynergyTask        *tasks;    // [n_slots]
    SynergyServer      *servers;  // [n_servers]
    uint32_t           *jobs;     // [n_servers][most_gpus] placed there in this round
    ClusterSlice       *slices;   // [gpus]
    uint32_t           *here;     // [n_servers] GPUs of the gang that is being placed
    uint32_t           *where;    // [n_where] servers on which it has some, ascending
    uint32_t            n_where, n_slices, n_free;
} SynergyPlan;

void synergy_plan_carve(SynergyPlan *p, const ClusterSetup *s, Carve *from);
void synergy_plan_begin(SynergyPlan *p, const ClusterView *v);  // v: see SynergyPlan.view
void synergy_plan_keep(SynergyPlan *p, const ClusterTask *t, uint32_t slot);  // runs on as it does
void synergy_plan_add(SynergyPlan *p, uint32_t slot);
void synergy_plan_raise(SynergyPlan *p,
                        uint32_t slot);  // towards its best demand, as far as resources are free
