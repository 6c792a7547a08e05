// ServerPlan: one server as its agent plans it: its residents, and the distribution of cores and
// memory among them.
//
// Every resident gets its lowest allocation level; the rest goes, level by level, where a core or a
// byte adds the most utility. Residents without a class keep what they have.
#pragma once

#include "policy/cluster/maifs/task_utility.h"

enum {
    SERVER_PLAN_RESIDENTS = 96,
    SERVER_PLAN_STEPS = SERVER_PLAN_RESIDENTS * (UTILITY_LEVELS - 1)
};

typedef struct Resident {  // a task, or its slice, on the server
    uint64_t mask;
    uint32_t task;
    uint32_t cores_milli, memory_mib;
    uint16_t milli;  // thousandths of each GPU
    uint8_t  gpus, level;
    bool     incoming;       // placed by this plan, not running here yet
    bool     pinned;         // keeps its amounts: below its lowest level, and no more are free
    bool     firm;           // may not be preempted
    bool     sliced;         // a slice of a gang on several servers: as fast as its slowest slice
    uint8_t  cap;            // highest useful level
    float    spread_factor;  // of its rate, from being on several servers
    float    rate_factor;    // of its rate, from co-runners, spread and GPU type together
} Resident;

typedef struct ServerPlan {
    uint32_t server, n;
    uint32_t gpus, cores_milli, memory_mib;  // capacity
    uint64_t used;                           // mask of GPUs with a resident
    double   utility;                        // of all residents, per second
    float    tilt;                           // exponent of utilities where cores are dealt, less 1
    bool     stale;                          // changed since its last offers
    bool     full;                           // more residents than fit: the server is left alone
    Resident at[SERVER_PLAN_RESIDENTS];
} ServerPlan;

typedef struct LevelStep {  // one level up
    float    density, utility;
    uint32_t cores_milli, memory_mib;
    uint8_t  resident, level;
} LevelStep;

typedef struct Headroom {               // of a server without its victims
    double    utility;                  // of the others at their lowest levels
    int64_t   cores_milli, memory_mib;  // left then; below 0: even the lowest levels do not fit
    uint32_t  n;
    LevelStep at[SERVER_PLAN_STEPS];  // highest density first
} Headroom;

typedef struct VictimSet {  // bit i: resident i is evicted
    uint64_t bits[(SERVER_PLAN_RESIDENTS + 63) / 64];
} VictimSet;

static inline bool victim_set_has(const VictimSet *l, uint32_t i) {
    return (l->bits[i / 64] >> i % 64 & 1) != 0;
}
static inline void victim_set_put(VictimSet *l, uint32_t i, bool on) {
    uint64_t bit = UINT64_C(1) << i % 64;
    l->bits[i / 64] = on ? l->bits[i / 64] | bit : l->bits[i / 64] & ~bit;
}

// In all functions `utilities` is indexed by slot.

// The server as it is now.
void server_plan_init(ServerPlan *plan, const ClusterView *v, uint32_t server,
                      const TaskUtility *utilities);

void   server_plan_headroom(const ServerPlan *plan, const VictimSet *victims,
                            const TaskUtility *utilities, Headroom *out);
double headroom_utility(const Headroom *f, int64_t cores_milli, int64_t memory_mib);

// Rate on the server's GPU type, relative to the profile's first type.
float server_plan_type_rate(const ClusterSetup *s, const TaskUtility *w, uint32_t server);
float resident_rate(const Resident *g, const TaskUtility *w);
float resident_utility(const Resident *g, const TaskUtility *w);   // of the whole gang
float resident_fraction(const Resident *g, const TaskUtility *w);  // of the gang's GPUs
float server_plan_spread(const ClusterSetup *s, const TaskUtility *w, uint32_t servers);

// Rate factor a task keeps beside its co-runners on the GPUs in `mask`; 0 if GPU memory does not
// fit.
float server_plan_corun(const ServerPlan *plan, const ClusterSetup *s, const TaskUtility *utilities,
                        uint64_t mask, uint32_t task, uint32_t besides);

static inline const Resident *server_plan_find(const ServerPlan *plan, uint32_t task) {
    for (uint32_t i = 0; i < plan->n; i++)
        if (plan->at[i].task == task) return &plan->at[i];
    return NULL;
}

// Recomputes `used` and `utility`, after values changed.
void server_plan_total(ServerPlan *plan, const TaskUtility *utilities);

void server_plan_remove(ServerPlan *plan, uint32_t task);
void server_plan_add(ServerPlan *plan, const Resident *g);

// Recomputes GPU shares, rate factors and levels, after residents came or went.
void server_plan_allocate(ServerPlan *plan, const ClusterSetup *s, const TaskUtility *utilities);

typedef struct VictimRank {
    float   density;  // utility per GPU
    uint8_t resident;
} VictimRank;

typedef struct VictimOrder {  // residents in the order of eviction
    uint64_t   mask[SERVER_PLAN_RESIDENTS];
    uint32_t   cores_milli[SERVER_PLAN_RESIDENTS], memory_mib[SERVER_PLAN_RESIDENTS];  // minimum
    int64_t    cores_left, memory_left;       // with all residents at their minimum
    VictimRank order[SERVER_PLAN_RESIDENTS];  // [n_order] lowest density first
    uint32_t   n, n_order;
} VictimOrder;

uint64_t gpu_mask_all(uint32_t gpus);                    // the lowest `gpus` bits
uint64_t gpu_mask_lowest(uint64_t mask, uint32_t gpus);  // the lowest `gpus` set bits of mask

void victim_order_init(VictimOrder *r, const ServerPlan *plan, const TaskUtility *utilities);

// Picks victims by ascending utility density until `gpus` whole GPUs and the task's lowest level
// are free, then reinstates needless ones, highest density first. false: it does not fit.
bool victim_order_pick(const VictimOrder *r, const ServerPlan *plan, const TaskUtility *w,
                       uint32_t gpus, bool evict, VictimSet *out, uint64_t *mask);
