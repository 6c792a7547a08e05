// Synergy: at every round everybody is released and placed anew, in some order.
#pragma once

#include "policy/cluster/common/plan_builder.h"
#include "policy/cluster/synergy/synergy_plan.h"

#define SYNERGY_SETTINGS(X, usual)                                                                 \
    X(order, string, usual, 1, 16, "who is served first: fifo, srtf, las or ftf")                  \
    X(period_s, int, 0, 0, 86400, "between rounds, where the cluster has none; 0: every event")    \
    X(repack_s, int, 900, 0, 86400, "all move for a gang that finds no server, no more often")

typedef struct SynergySettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SYNERGY_SETTINGS(X, 0)
#undef X
} SynergySettings;

typedef enum SynergyOrder {
    SYNERGY_BY_FIFO,
    SYNERGY_BY_SRTF,
    SYNERGY_BY_LAS,
    SYNERGY_BY_FTF,
    SYNERGY_ORDERS
} SynergyOrder;

typedef struct Synergy {
    SynergyPlan  plan;
    PlanBuilder  builder;
    SynergyOrder order;
    TimeNs       period, repack;
    TimeNs       repacked;        // when all were placed anew
    uint32_t    *queue, *picked;  // [n_slots] in the order of the last round
    uint32_t     n_queue;
    uint64_t     seen;
} Synergy;

Err    synergy_load(const ClusterSetup *s, const void *settings, Arena *a, const void **loaded);
size_t synergy_size(const ClusterSetup *s, const void *settings);
void synergy_init(Synergy *y, const ClusterSetup *s, const SynergySettings *cfg, SynergyMode mode);
uint32_t synergy_decide(Synergy *y, const ClusterView *v, ClusterAction *out);
