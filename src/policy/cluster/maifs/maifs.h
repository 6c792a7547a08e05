// Maifs: one agent per server. Agents exchange observations; in every round each makes offers to
// waiting tasks, and coordination decides which offers are taken, until no offer adds utility.
//
// A task's value is the reciprocal of its remaining time, scaled by the network's output for the
// task and the exchanged observations. An offer's payoff is the utility it adds plus the network's
// correction. Without weights, rules replace the network.
#pragma once

#include "base/carve.h"
#include "placement/tenant_quota.h"
#include "policy/cluster/common/gpu_split.h"
#include "policy/cluster/maifs/coordination.h"
#include "policy/cluster/maifs/maifs_net.h"
#include "policy/cluster/maifs/offer.h"
#include "policy/cluster/maifs/stance.h"

#define MAIFS_SETTINGS(X)                                                                          \
    X(weights, string, "", 0, 4096, "weights file; empty: the shipped ones, none: rules instead")  \
    X(stance, string, "none", 0, 4096,                                                             \
      "weights file of stances; empty: the shipped ones, or none")                                 \
    X(net_exact, bool, true, 0, 1, "rules replace the network where durations are uncertain")      \
    X(attention, bool, true, 0, 1, "agents exchange observations")                                 \
    X(coordination, string, "auction", 1, 16, "how servers agree: a word of coord_kind.def")       \
    X(epoch_s, int, 0, 0, 1000000, "0: rounds at every event; else one every that many seconds")   \
    X(demand, string, "fungible", 1, 16, "fungible amounts, or fixed: the default demand")         \
    X(two_step, bool, false, 0, 1, "place first, then distribute cores and memory")                \
    X(window, int, 32, 1, MAIFS_WINDOW, "waiting tasks considered at once")                        \
    X(gpu_tasks, int, 2, 1, MAIFS_GPU_TASKS, "tasks on a GPU, at most")                            \
    X(slices, bool, true, 0, 1, "gangs may be split over more servers than necessary")             \
    X(migrations, int, 16, 0, 256, "running tasks considered for migration at once")               \
    X(period_s, int, 900, 1, 1000000, "seconds between decisions while tasks wait")                \
    X(evict_margin, double, 0.1, 0, 10, "utility by which a task must exceed its victims")         \
    X(restart_weight, double, 3, 0, 100, "weight of the victims' restart cost")                    \
    X(critical_boost, double, 4, 0, 8, "rules: exponent of the gain of critical jobs")             \
    X(uncertain_boost, double, 1, 0, 8, "the same where durations are uncertain")                  \
    X(critical_gang_power, double, 1, 0, 2, "rules: their gain grows with GPUs to this power")     \
    X(margin, double, 1, 0, 100, "rules: critical is more left than this many drain times")        \
    X(elastic, bool, true, 0, 1, "elastic jobs run on other numbers of GPUs than submitted")       \
    X(spread, bool, true, 0, 1, "uncertain durations are valued by their distribution")            \
    X(probing, double, 0.5, 0, 100,                                                                \
      "work that knowing a rate's variance of 1 saves; 0: no probes")                              \
    X(pace, double, 0.25, 0, 10, "part of the work left per stop left, before the next stop")      \
    X(last_alone, bool, true, 0, 1, "what may be stopped no more shares no GPU and is not cut")    \
    X(unknown_left_s, double, 600, 1, 1e7, "assumed seconds left of a new job if unknown")

typedef struct MaifsSettings {
    MAIFS_SETTINGS(SETTING_FIELD)
} MaifsSettings;

enum {
    MAIFS_ROUNDS = 64,                     // of negotiation in a decision, at most
    MAIFS_WINDOW = 256,                    // tasks in a window, at most
    MAIFS_PAGES = 8,                       // windows of waiting tasks in a decision, at most
    MAIFS_OBSERVED = 1024,                 // waiting tasks that the network sees
    MAIFS_VALUE_RANGE = 5,                 // the network scales a task's value by e^-5 to e^5
    MAIFS_GPU_TASKS = 4,                   // tasks on a GPU, at most
    MAIFS_HELD = 2 * MAIFS_GPU_TASKS + 1,  // slices in a plan per GPU: shrunk, grown, started
};

typedef struct OfferSample {  // an offer, for training
    MaifsOfferAt at;
    float        features[MAIFS_OFFER];
    float        gain, own;
} OfferSample;

typedef struct MaifsExplored {  // the offer an exploring agent took, and the one it preferred
    OfferSample took, liked;
} MaifsExplored;

typedef struct StanceForced {  // training: all agents take a row in that time
    TimeNs   from, until;
    uint32_t row;
} StanceForced;

typedef struct MaifsLoaded {
    const float *w;       // of the default network; NULL: rules instead
    const float *stance;  // of the stances' network; NULL: the usual one
    StanceForced forced;
    float        epsilon;    // training: probability that an agent explores
    bool         record;     // training: offers taken while exploring are kept
    bool         recompute;  // tests: nothing is kept from one round to the next
} MaifsLoaded;

typedef struct JointClaim {  // all claims on one request
    uint32_t servers;
    uint32_t holder;  // the gang that shares its GPUs; or CLUSTER_NONE
    uint8_t  level;   // lowest of the claims
    float    payoff;
    bool     stale;  // a server changed since its claim
} JointClaim;

typedef struct MaifsProbe {  // the last one in this slot
    uint64_t job;            // id of its job plus 1
    TimeNs   begin;
    bool     open;
} MaifsProbe;

typedef struct MaifsStart {  // a slice of a task to start
    uint32_t task, server;
} MaifsStart;

typedef enum PlanOutcome { MAIFS_KEPT, MAIFS_EVICTED, MAIFS_STARTED, MAIFS_MIGRATED } PlanOutcome;

typedef struct Maifs {
    const ClusterSetup  *setup;
    const MaifsSettings *cfg;
    const MaifsLoaded   *loaded;
    const ClusterView   *view;
    MaifsNet             net;
    OfferContext         offering;
    UtilityParams        params;
    TaskUtility         *utilities;                      // [n_slots]
    ServerPlan          *plans;                          // [n_servers]
    uint8_t             *outcome;                        // [n_slots] in this plan
    MaifsProbe          *probes;                         // [n_slots]
    Stance              *stances;                        // [n_servers]
    float               *scene;                          // [n_servers][STANCE_FEATURES]
    float               *stance_hidden, *stance_logits;  // [n_servers] rows
    TimeNs               look_at;    // time of a decision that ends a probe; 0: none
    uint8_t             *min_level;  // [n_slots] lowest level among a gang's slices
    uint32_t            *evicted, n_evicted;
    MaifsStart          *starts;
    uint32_t             n_starts;
    ClusterSlice        *slices;
    uint32_t             n_slices;
    TenantQuota          tenants;     // with this plan
    GpuSplit             split;       // GPUs of elastic tasks
    bool                 free_only;   // offers are without victims
    double               drain_s;     // time the cluster needs for all remaining work
    bool                 by_rules;    // in this decision
    bool                 ignore_net;  // the network's payoffs do not count
    // Observation of this decision.
    MaifsInput input;
    float     *servers, *jobs, queue[MAIFS_QUEUE], *u, *cache;
    uint32_t  *row;   // [n_slots] of a task in jobs; CLUSTER_NONE: not observed
    uint32_t  *seen;  // [n_jobs] slots
    // The window of tasks and the offers to them.
    uint32_t     *window, n_window, most_window;
    OfferRequest *requests;  // [n_requests] of the window, whole and in slices
    uint32_t      n_requests;
    bool          slices_too;
    bool          migrating;  // the window holds running tasks
    float        *stay;       // [n_slots] then: utility lost by leaving the current server
    size_t        each;       // capacity of offers per server
    float        *density;    // [n_slots] utility of a task per GPU
    float        *slowest;    // [n_slots][2] of a gang's slices: rate alone, co-runner factor
    Offer        *offers;     // [n_servers][each]
    float        *payoffs;    // [n_servers][each]
    uint32_t     *n_offers;   // [n_servers]
    float        *features;   // [each][MAIFS_OFFER]
    MaifsOfferAt *at;
    // Input and result of coordination.
    Coordination *coord;
    float        *offer_payoff;                        // [n_servers][n_requests] of the best offer
    float        *claim_payoff, *idle, *left, *right;  // [n_servers][n_requests], pairs [][][rank]
    bool         *changed;              // [n_servers] its offers, since its best ones were found
    bool         *paired;               // [n_servers][n_requests] left, right are set
    float        *pairs;                // [2][n_requests][rank] of one server
    double    granted[2 * COORD_RANK];  // sums of left, then right, of the claims granted so far
    uint16_t *give, *need;
    double    agreed, baseline;  // payoff of all claims so far; with plain arbitration
    uint32_t *best, *claims;     // offer behind a claim; request claimed by each agent
    // For training.
    MaifsExplored *chosen;
    uint32_t       n_chosen;
    uint32_t       n_explored;  // agents that explored in this decision
    uint32_t      *liked;  // [n_servers] preferred offer of an exploring agent; or CLUSTER_NONE
    Rng            rng;
    TimeNs         decided_at;  // time of the last decision
    uint32_t       rewoken;     // decisions in a row without time passing
} Maifs;

MaifsNet maifs_net_of(const MaifsSettings *cfg);

void maifs_observe(Maifs *m, const ClusterView *v);  // begins a decision: plans, utilities, network
void maifs_offer(Maifs *m, uint32_t server);         // offers to all requests anew
// Gangs that share another gang's GPUs slice by slice: offers, made by the server of the first
// slice; placing a task; whether it still fits.
uint32_t maifs_gang_offers(Maifs *m, uint32_t server, Offer *out);
void     maifs_join(Maifs *m, uint32_t task, uint32_t holder);
bool     maifs_can_join(const Maifs *m, uint32_t task, uint32_t holder);

// Elastic tasks: numbers of GPUs for all, then what is free on a server, or their fewest, for those
// that did not fit (false: none changed), then running ones grow onto what is left free.
void maifs_divide(Maifs *m);
bool maifs_fit_smaller(Maifs *m, bool fewest);
void maifs_grow(Maifs *m);
void maifs_set_density(Maifs *m, uint32_t task);

void maifs_grant_pairs(Maifs *m, uint32_t server, uint32_t request);  // of a granted claim

void maifs_take_stances(Maifs *m);
void maifs_hold(Maifs *m, uint32_t server);  // lowers payoffs where GPUs are held for a gang

void     maifs_probe(Maifs *m);                        // begins and ends probes
bool     maifs_probes(const Maifs *m, uint32_t task);  // a probe of it is open
uint32_t maifs_probe_cores(const Maifs *m, uint32_t task, uint32_t cores_milli);  // in a plan

void     maifs_claim(Maifs *m);       // coordination: which offer each agent claims
void     maifs_negotiate(Maifs *m);   // rounds over one window, until none gains
bool     maifs_open_moves(Maifs *m);  // window of running tasks to migrate; false: none
void     maifs_allocate(Maifs *m);    // cores and memory on all servers
uint32_t maifs_plan(Maifs *m, ClusterAction *out);  // the result as actions

// For imitation, after a decision with a network: u [input.n_jobs] with which the network would
// value tasks as the rules do (settings critical_boost and margin).
void maifs_teacher_values(const Maifs *m, float *u);

// The task's job with the GPUs that it has or is to get.
static inline ClusterJob maifs_job(const Maifs *m, uint32_t task) {
    return cluster_job_on(&m->view->tasks[task].job, m->utilities[task].gpus);
}

static inline bool maifs_taken(const Maifs *m, uint32_t task) {
    return m->outcome[task] != MAIFS_KEPT;
}

static inline bool maifs_has_net(const Maifs *m) { return !m->by_rules && !m->ignore_net; }

static inline size_t maifs_each(const Maifs *m) { return m->each; }

// what: see policy/embedded_weights.h; or "none" for the rules alone.
MUST_USE Err maifs_weights_load(const char *what, Arena *a, MaifsLoaded *out);
MUST_USE Err maifs_stance_load(const char *what, Arena *a, MaifsLoaded *out);  // the same

char *maifs_weights_facts(Arena *a);  // facts that a weights file has to state

// Features for the network, all near 0 .. 1.
void maifs_features_server(const ClusterSetup *s, const ServerPlan *plan,
                           const TaskUtility *utilities, float *out);
void maifs_features_job(const ClusterView *v, const TaskUtility *w, const ClusterTask *t,
                        float *out);
void maifs_features_queue(const ClusterView *v, const TaskUtility *utilities, float *out);
void maifs_features_offer(const ServerPlan *plan, const TaskUtility *w, const Offer *o, float *out);
