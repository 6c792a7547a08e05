// SynergyPlan: a round of Synergy: servers are empty, and jobs are placed one after the other with
// the cores and memory that they like best, or with their share.
#pragma once

#include "contract/gang_demand.h"
#include "base/carve.h"

typedef enum SynergyMode {
    SYNERGY_FAIR,    // everybody has the share that goes with its GPUs
    SYNERGY_GREEDY,  // what it likes best or nothing
    SYNERGY_TUNE,    // the best where there is room; the rich give back for those who come late
} SynergyMode;

typedef struct SynergyTask {
    uint64_t   id;  // of the job whose slot it is, from 1
    GangDemand best;
    double     best_speed, speed;
    TimeNs     left_at;   // when it last let go of GPUs, or came
    uint32_t   first, n;  // slices of this round; 0: none
    bool       aged;
} SynergyTask;

typedef struct SynergyServer {
    GangDemand used, hold;
    uint32_t   n;
} SynergyServer;

typedef struct SynergyPlan {
    const ClusterSetup *setup;
    const ClusterView  *view;  // who runs stays where it is; NULL: all are placed anew
    SynergyMode         mode;
    SynergyTask        *tasks;   // [n_slots]
    SynergyServer      *rooms;   // [n_servers]
    uint32_t           *jobs;    // [n_servers][most_gpus] placed there in this round
    ClusterSlice       *slices;  // [gpus]
    uint32_t           *here;    // [n_servers] GPUs of the gang that is being placed
    uint32_t           *where;   // [n_where] servers on which it has some, ascending
    uint32_t            n_where, n_slices, n_free;
} SynergyPlan;

void synergy_plan_carve(SynergyPlan *p, const ClusterSetup *s, Carve *from);
void synergy_plan_begin(SynergyPlan *p, const ClusterView *v);  // a round; v: see above
void synergy_plan_add(SynergyPlan *p, uint32_t slot);
void synergy_plan_raise(SynergyPlan *p, uint32_t slot);  // as far up to its best as there is room
