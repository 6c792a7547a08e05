// ServerPlan: a server as its agent plans it: who is to be there with what, and how cores and
// memory are best dealt to them.
//
// Guests get their lowest level; what is left goes, level by level, where a core or a byte buys the
// most worth. Guests without a class keep what they have.
#pragma once

#include "policy/cluster/maifs/task_utility.h"

enum {
    SERVER_PLAN_RESIDENTS = 96,
    SERVER_PLAN_STEPS = SERVER_PLAN_RESIDENTS * (UTILITY_LEVELS - 1)
};

typedef struct Resident {
    uint64_t mask;
    uint32_t task;
    uint32_t cores_milli, memory_mib;
    uint16_t milli;
    uint8_t  gpus, level;
    bool     fresh;   // it is not there yet
    bool     sliced;  // others have the rest of its GPUs: it is as fast as the slowest of them
    uint8_t  cap;     // the level that it gets at most
    float    spread;  // what being cut into slices leaves of its rate
    float    share;   // what company, spread and the type of GPU leave of its rate
} Resident;

typedef struct ServerPlan {
    uint32_t server, n;
    uint32_t gpus, cores_milli, memory_mib;  // that it has
    uint64_t used;                           // GPUs that somebody has
    double   worth;                          // of a second, of all guests together
    bool     stale;                          // its offers are of before
    bool     full;                           // more guests than can be planned for: let alone
    Resident at[SERVER_PLAN_RESIDENTS];
} ServerPlan;

typedef struct LevelStep {  // a level up
    float    density, worth;
    uint32_t cores_milli, memory_mib;
    uint8_t  guest, level;
} LevelStep;

typedef struct Headroom {               // what can be made of a inn without some of its guests
    double    worth;                    // of the rest with their lowest levels
    int64_t   cores_milli, memory_mib;  // left over then; below 0: even that is too much
    uint32_t  n;
    LevelStep at[SERVER_PLAN_STEPS];  // best first
} Headroom;

// As it is now; utilities are by slot.
void server_plan_init(ServerPlan *plan, const ClusterView *v, uint32_t server,
                      const TaskUtility *utilities);

// leave: a bit for every guest that is to go.
typedef struct VictimSet {
    uint64_t bits[(SERVER_PLAN_RESIDENTS + 63) / 64];
} VictimSet;

static inline bool victim_set_has(const VictimSet *l, uint32_t i) {
    return (l->bits[i / 64] >> i % 64 & 1) != 0;
}
static inline void victim_set_put(VictimSet *l, uint32_t i, bool on) {
    uint64_t bit = UINT64_C(1) << i % 64;
    l->bits[i / 64] = on ? l->bits[i / 64] | bit : l->bits[i / 64] & ~bit;
}

void   server_plan_headroom(const ServerPlan *plan, const VictimSet *leave,
                            const TaskUtility *utilities, Headroom *out);
double headroom_utility(const Headroom *f, int64_t cores_milli, int64_t memory_mib);

float server_plan_type_rate(const ClusterSetup *s, const TaskUtility *w,
                            uint32_t server);                      // on its type of GPU
float resident_rate(const Resident *g, const TaskUtility *w);      // as it is planned
float resident_utility(const Resident *g, const TaskUtility *w);   // of all of a gang
float resident_fraction(const Resident *g, const TaskUtility *w);  // of it that is here
float server_plan_spread(const ClusterSetup *s, const TaskUtility *w, uint32_t servers);

// What company leaves of the rate of a task with the GPUs of a mask; 0: somebody does not fit.
float server_plan_corun(const ServerPlan *plan, const ClusterSetup *s, const TaskUtility *utilities,
                        uint64_t mask, uint32_t task, uint32_t besides);

static inline const Resident *server_plan_find(const ServerPlan *plan,
                                               uint32_t          task) {  // NULL: it is not there
    for (uint32_t i = 0; i < plan->n; i++)
        if (plan->at[i].task == task) return &plan->at[i];
    return NULL;
}

void server_plan_total(ServerPlan        *plan,
                       const TaskUtility *utilities);  // worth anew, after values changed

void server_plan_remove(ServerPlan *plan, uint32_t task);
void server_plan_add(ServerPlan *plan, const Resident *g);

// Shares and levels anew, after guests came or went.
void server_plan_allocate(ServerPlan *plan, const ClusterSetup *s, const TaskUtility *utilities);

// VictimOrder: the guests of an inn in the order in which they would go for others.

typedef struct VictimRank {
    float   density;
    uint8_t guest;
} VictimRank;

typedef struct VictimOrder {  // guests, as victims are looked for
    uint64_t mask[SERVER_PLAN_RESIDENTS];
    uint32_t cores_milli[SERVER_PLAN_RESIDENTS],
        memory_mib[SERVER_PLAN_RESIDENTS];   // that each needs at least
    int64_t    cores_left, memory_left;      // when all have that
    VictimRank line[SERVER_PLAN_RESIDENTS];  // who may have to go, least first
    uint32_t   n, n_line;
} VictimOrder;

uint64_t gpu_mask_all(uint32_t gpus);                    // a mask of so many
uint64_t gpu_mask_lowest(uint64_t mask, uint32_t gpus);  // so many of it

void victim_order_init(VictimOrder *r, const ServerPlan *plan, const TaskUtility *utilities);

// Who has to go when a task gets so many whole GPUs and its lowest level: the least worthy until
// there is room; then those stay, the worthiest first, who could as well. False: it cannot be.
bool victim_order_pick(const VictimOrder *r, const ServerPlan *plan, const TaskUtility *w,
                       uint32_t gpus, bool evict, VictimSet *out, uint64_t *mask);
