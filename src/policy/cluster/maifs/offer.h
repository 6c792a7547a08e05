// Offer: what a inn could do with a task: with which amounts, on whose GPU, in whose place, and
// what worth that adds.
#pragma once

#include "base/carve.h"
#include "policy/cluster/maifs/server_plan.h"

enum { OFFER_EACH = 2 * UTILITY_LEVELS };  // of a inn to a task, at most

typedef struct OfferAsk {  // a task that is to have so many GPUs of a server
    uint32_t task;
    uint32_t gpus;  // all of its own, or those of a slice
} OfferAsk;

typedef struct Offer {
    uint64_t mask;  // GPUs that it would have; they may have to be cleared first
    uint32_t task, ask;
    uint32_t holder;  // a gang whose GPUs it would share, slice by slice; or CLUSTER_NONE
    uint16_t give;    // GPUs; 1 of a task without any
    uint8_t  level;
    uint8_t  mates;    // that it shares a GPU with
    uint8_t  victims;  // that have to go
    float    gain;     // worth, all in all; of a slice: but for what gangs that go have elsewhere
    float    own;      // of that, the task's; what others lose is the difference
    float    lost;     // worth of those that go
    float    rate;     // that the task would have
} Offer;

typedef struct OfferParams {
    uint32_t mates;         // tasks on a GPU, at most
    float    patience;      // how much better a task has to be than those that go for it
    float    restart;       // weight of what it costs them to begin again
    bool     evict, blind;  // blind: as if levels did not matter
} OfferParams;

typedef struct OfferSpace OfferSpace;

typedef struct OfferContext {  // what goes with all offers of an epoch
    const ClusterSetup *setup;
    const TaskUtility  *utilities;
    OfferParams         params;
    OfferSpace         *space;                  // to work in
    float               harm[PROFILE_CLASSES];  // that company does a class at least
} OfferContext;

void        offer_context_init(OfferContext *d);  // setup is set
OfferSpace *offer_carve(Carve *from);

// Offers of an inn to those who ask and are not there, at most OFFER_EACH each.
uint32_t offer_make(const OfferContext *d, const ServerPlan *plan, const OfferAsk *asks, uint32_t n,
                    Offer *out);

// Who has to go when a task gets so many whole GPUs and its lowest level; false: it cannot be.
bool offer_victims(const OfferContext *d, const ServerPlan *plan, const TaskUtility *w,
                   uint32_t gpus, VictimSet *out, uint64_t *mask);
