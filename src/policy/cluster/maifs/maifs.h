// Maifs: one agent per server. Agents tell each other what they see; in every round each makes
// offers to tasks that wait, and they agree on who takes whom; again, until nobody gains by more.
//
// What a task's progress is worth is the reciprocal of what it has left, times what the network
// makes of the task and of what all agents see together. An offer counts the worth that it adds,
// plus what the network says of it. Without weights, rules take the network's place.
#pragma once

#include "base/carve.h"
#include "policy/cluster/maifs/coordination.h"
#include "policy/cluster/maifs/offer.h"
#include "policy/cluster/maifs/maifs_net.h"

#define MAIFS_SETTINGS(X)                                                                          \
    X(weights, string, "", 0, 4096, "the network's numbers; empty: shipped, none: rules instead")  \
    X(attention, bool, true, 0, 1, "agents tell each other what they see")                         \
    X(graph, string, "dynamic", 1, 16, "who coordinates with whom: dynamic, static or none")       \
    X(demand, string, "fungible", 1, 16, "fungible; fixed: what jobs ask for by default")          \
    X(two_step, bool, false, 0, 1, "place first, then deal cores and memory")                      \
    X(window, int, 32, 1, 256, "tasks that agents look at, at once")                               \
    X(mates, int, 2, 1, MAIFS_GPU_TASKS, "tasks on a GPU, at most")                                \
    X(slices, bool, true, 0, 1, "gangs may be cut into smaller slices than need be")               \
    X(moves, int, 16, 0, 256, "running tasks that look for a better place, at once")               \
    X(period_s, int, 900, 1, 1000000, "between looks while tasks wait and nothing happens")        \
    X(patience, double, 0.1, 0, 10, "how much worthier a task is than those that go for it")       \
    X(restart, double, 3, 0, 100, "weight of what it costs others to begin again")                 \
    X(urge, double, 4, 0, 8, "rules: how much jobs on the critical path gain")                     \
    X(gang, double, 1, 0, 2, "rules: wide jobs on that path gain by their GPUs to this power")     \
    X(margin, double, 1, 0, 100, "rules: critical is more left than so much of all there is")      \
    X(age_s, double, 600, 1, 1e7, "left of a job that nobody knows of, as it begins")

typedef struct MaifsSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    MAIFS_SETTINGS(X)
#undef X
} MaifsSettings;

enum {
    MAIFS_ROUNDS = 64,      // of an epoch, at most
    MAIFS_PAGES = 8,        // of waiting tasks in it
    MAIFS_OBSERVED = 1024,  // waiting tasks that the network sees
    MAIFS_VALUE_RANGE = 5,  // a network changes what a task is worth by e to this at most
    MAIFS_GPU_TASKS = 4,    // tasks on a GPU, at most
    MAIFS_HELD =
        2 * MAIFS_GPU_TASKS + 1,  // slices of gangs in a plan for each GPU: down, up, started
};

typedef struct OfferSample {  // an offer, for training
    MaifsOfferAt at;
    float        features[MAIFS_OFFER];
    float        gain, own;
} OfferSample;

typedef struct MaifsExplored {  // that was taken by an agent that strayed, and the one it liked
                                // best
    OfferSample took, liked;
} MaifsExplored;

typedef struct MaifsLoaded {
    const float *w;        // of the usual network; NULL: rules instead
    float        epsilon;  // training: an agent takes any offer, so often
    bool         record;   // training: what is taken by those who explore is kept
} MaifsLoaded;

typedef struct JointClaim {  // claims on a task, together
    uint32_t plans;
    uint32_t holder;  // the gang whose GPUs it is to share; or CLUSTER_NONE
    uint8_t  level;   // the lowest of theirs
    float    pays;
    bool     late;  // an server has changed since
} JointClaim;

typedef struct MaifsStart {  // a slice of a task that is to start
    uint32_t task, server;
} MaifsStart;

typedef enum PlanOutcome { MAIFS_STAYS, MAIFS_GOES, MAIFS_COMES, MAIFS_MOVES } PlanOutcome;

typedef struct Maifs {
    const ClusterSetup  *setup;
    const MaifsSettings *cfg;
    const MaifsLoaded   *loaded;
    const ClusterView   *view;
    MaifsNet             net;
    OfferContext         offering;
    UtilityParams        params;
    TaskUtility         *utilities;  // [n_slots]
    ServerPlan          *plans;      // [n_servers]
    uint8_t             *fate;       // [n_slots] in this plan
    uint8_t             *pace;       // [n_slots] the lowest level of a gang's slices
    uint32_t            *evicted, n_evicted;
    MaifsStart          *starts;
    uint32_t             n_starts;
    ClusterSlice        *slices;
    uint32_t             n_slices;
    double               drain_s;  // that the cluster needs for all that is there
    bool                 mute;     // the network's prices do not count
    // What the network saw in this epoch.
    MaifsInput input;
    float     *servers, *jobs, queue[MAIFS_QUEUE], *u, *cache;
    uint32_t  *row;   // [n_slots] of a task in jobs
    uint32_t  *seen;  // [n_jobs] slots
    // The tasks that agents look at, and their offers.
    uint32_t     *window, n_window;
    OfferAsk     *asks;  // [n_asks] of them, whole and in slices
    uint32_t      n_asks;
    bool          slices_too;
    bool          moving;    // they run, and look for a better place
    float        *stay;      // [n_slots] then: what it costs to take one away from where it is
    size_t        each;      // offers of a server, at most
    float        *dense;     // [n_slots] worth of a task for each of its GPUs
    float        *slowest;   // [n_slots][2] of a gang's slices: rate alone, company
    Offer        *offers;    // [n_servers][each]
    float        *payoffs;   // likewise
    uint32_t     *n_offers;  // [n_servers]
    float        *features;  // [each][MAIFS_OFFER]
    MaifsOfferAt *at;
    // What they agree by.
    Coordination *accord;
    float        *claim_payoff, *idle, *left, *right;  // [n_servers][n_asks], pairs [][][rank]
    bool         *paired;                              // [n_servers][n_asks] they are filled in
    float        *pairs;                               // [2][n_asks][rank] of one server
    uint16_t     *give, *need;
    double        agreed, plain;  // worth of all claims so far; had they been arbitrated plainly
    uint32_t     *best, *claims;  // offer by which a claim is made; job of each agent
    // For training.
    MaifsExplored *chosen;
    uint32_t       n_chosen;
    uint32_t       n_explored;  // agents that took any offer in this epoch
    uint32_t      *liked;       // [n_servers] the offer it liked best; none: it does not explore
    Rng            rng;
    TimeNs         again;  // when we last decided
    uint32_t       rewoken;
} Maifs;

MaifsNet maifs_net_of(const MaifsSettings *cfg);

void maifs_observe(Maifs             *m,
                   const ClusterView *v);     // opens an epoch: who is there, what it is worth
void maifs_offer(Maifs *m, uint32_t server);  // anew, to all that ask
// Gangs that share the GPUs of a gang, slice by slice: offers to those who ask, by the server of
// its first slice; a task joins; it can, as plans are by now.
uint32_t maifs_gang_offers(Maifs *m, uint32_t server, Offer *out);
void     maifs_join(Maifs *m, uint32_t task, uint32_t holder);
bool     maifs_can_join(const Maifs *m, uint32_t task, uint32_t holder);

void maifs_claim(Maifs *m);       // which offer each makes good
void maifs_negotiate(Maifs *m);   // one page of the window, until nobody gains
bool maifs_open_moves(Maifs *m);  // the window: those that would gain most elsewhere; none: false
void maifs_allocate(Maifs *m);    // cores and memory, in all plans
uint32_t maifs_plan(Maifs *m, ClusterAction *out);  // what was agreed on, as steps

// For training by imitation, after a decision with a network: u [input.n_jobs] with which the
// network would value what it saw as the rules do (settings urge and margin).
void maifs_teacher_values(const Maifs *m, float *u);

static inline bool maifs_taken(const Maifs *m, uint32_t task) {
    return m->fate[task] != MAIFS_STAYS;
}

static inline bool maifs_has_net(const Maifs *m) { return m->loaded->w != NULL && !m->mute; }

static inline size_t maifs_each(const Maifs *m) { return m->each; }

// MaifsFile: the network's weights, from a file or from those that are part of the program.

// what: see policy/embedded_weights.h; or "none" for the rules alone.
MUST_USE Err maifs_weights_load(const char *what, Arena *a, MaifsLoaded *out);

char *maifs_weights_facts(Arena *a);  // lines that a file has to have

// MaifsLook: servers, jobs, the queue and offers as the numbers that agents see, all near 0 .. 1.

void maifs_features_server(const ClusterSetup *s, const ServerPlan *server,
                           const TaskUtility *utilities, float *out);
void maifs_features_job(const ClusterView *v, const TaskUtility *w, const ClusterTask *t,
                        float *out);
void maifs_features_queue(const ClusterView *v, const TaskUtility *utilities, float *out);
void maifs_features_offer(const ServerPlan *server, const TaskUtility *w, const Offer *o,
                          float *out);
