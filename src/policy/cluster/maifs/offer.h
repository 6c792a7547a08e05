// Offer: what a server could give a task: amounts, GPUs, co-runners, victims, and the utility it
// adds.
#pragma once

#include "base/carve.h"
#include "policy/cluster/maifs/server_plan.h"

enum { OFFER_EACH = 2 * UTILITY_LEVELS };  // offers of a server to a request, at most

typedef struct OfferRequest {  // a task that asks for GPUs on one server
    uint32_t task;
    uint32_t gpus;  // all of its GPUs, or those of a slice
} OfferRequest;

typedef struct Offer {
    uint64_t mask;  // its GPUs, possibly after evictions
    uint32_t task, request;
    uint32_t holder;  // a gang that would share its GPUs, slice by slice; or CLUSTER_NONE
    uint16_t give;    // GPUs; 1 for a task without any
    uint8_t  level;
    uint8_t  corunners;  // tasks on the GPUs it would share
    uint8_t  victims;    // residents to evict
    float    gain;       // utility in all; for a slice without the victims' slices elsewhere
    float    own;        // of that, the task's utility; the difference is what others lose
    float    lost;       // utility of the victims
    float    rate;       // of the task
} Offer;

typedef struct OfferParams {
    uint32_t gpu_tasks;       // tasks on a GPU, at most
    float    evict_margin;    // fraction of the victims' utility by which a task must exceed it
    float    restart_weight;  // weight of the victims' restart cost
    bool     evict;           // victims are allowed
    bool     ignore_levels;   // compare servers at default amounts only
} OfferParams;

typedef struct OfferSpace OfferSpace;

typedef struct OfferContext {  // shared by all offers of a decision
    const ClusterSetup *setup;
    const TaskUtility  *utilities;
    OfferParams         params;
    OfferSpace         *space;                  // scratch
    float               harm[PROFILE_CLASSES];  // least rate a class loses to any co-runner
} OfferContext;

void        offer_context_init(OfferContext *d);  // after setup is set
OfferSpace *offer_carve(Carve *from);

// Offers of a server to all requests of tasks that are not resident, at most OFFER_EACH each.
uint32_t offer_make(const OfferContext *d, const ServerPlan *plan, const OfferRequest *requests,
                    uint32_t n, Offer *out);

// Victims for a task that gets `gpus` whole GPUs at its lowest level; false: it does not fit.
bool offer_victims(const OfferContext *d, const ServerPlan *plan, const TaskUtility *w,
                   uint32_t gpus, VictimSet *out, uint64_t *mask);
