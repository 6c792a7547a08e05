// Maifs: one agent per server. In every round of an epoch each makes offers to tasks that wait;
// they agree on who takes whom; again, until nobody gains by anything more.
#pragma once

#include "policy/carve.h"
#include "policy/cluster/offer.h"

#define MAIFS_SETTINGS(X)                                                                          \
    X(window, int, 32, 1, 256, "tasks that agents look at, at once")                               \
    X(mates, int, 2, 1, 4, "tasks on a GPU, at most")                                              \
    X(demand, string, "fungible", 1, 16, "fungible; fixed: what jobs ask for by default")          \
    X(two_step, bool, false, 0, 1, "place first, then deal cores and memory")                      \
    X(patience, double, 0.1, 0, 10, "how much worthier a task is than those that go for it")       \
    X(restart, double, 1, 0, 100, "weight of what it costs others to begin again")                 \
    X(urge, double, 2, 0, 8, "how much jobs on the critical path gain")                            \
    X(margin, double, 1, 0, 100, "critical: more left than so many times what all need")           \
    X(age_s, double, 600, 1, 1e7, "left of a job that nobody knows of, as it begins")

typedef struct MaifsSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    MAIFS_SETTINGS(X)
#undef X
} MaifsSettings;

enum { MAIFS_ROUNDS = 64, MAIFS_PAGES = 8 };

typedef struct MaifsStart {  // a slice of a task that is to start
    uint32_t task, inn;
} MaifsStart;

typedef struct MaifsBid {  // of an inn for a slice of a gang
    uint32_t inn, give;
    float    gain;
} MaifsBid;

typedef struct Maifs {
    const ClusterSetup  *setup;
    const MaifsSettings *with;
    const ClusterView   *view;
    OfferDesk            desk;
    WantRules            rules;
    Want                *wants;   // [n_slots]
    Inn                *inns;   // [n_servers]
    uint32_t            *window;  // [window]
    uint32_t             n_window;
    float               *dense;   // [n_slots] of those that wait, worth for each GPU
    uint8_t             *state;   // [n_slots] in this plan, see MaifsFate
    uint32_t            *evicted; // [n_slots]
    uint32_t             n_evicted;
    MaifsStart          *starts;  // [gpus + n_slots]
    uint32_t             n_starts;
    Offer               *offers;  // [n_servers][window * OFFER_EACH]
    uint32_t            *n_offers;
    MaifsBid            *bids;
    ClusterSlice        *slices;
    uint32_t             n_slices;
    double               drain_s;
    TimeNs               again;   // the last time we asked to be woken at once
    uint32_t             rewoken;
} Maifs;

typedef enum MaifsFate { MAIFS_STAYS, MAIFS_GOES, MAIFS_COMES } MaifsFate;

void     maifs_carve(Maifs *m, const ClusterSetup *s, const MaifsSettings *with, Carve *from);
uint32_t maifs_plan(Maifs *m, ClusterAction *out);  // what the inns agreed on, as steps
