// oracle: the best schedule found with all requests known in advance
//
// Not a baseline: it knows every request that will arrive and may simulate the whole run as often
// as it is allowed. The other policies are measured against it. It is the best of what was tried,
// not a proof that nothing is better.
//
// 1. Every online policy is simulated with its defaults. The best of them is the first candidate,
// so
//    that the oracle is never below any of them.
// 2. A list scheduler (oracle_list_scheduler.c) that orders tasks and bandwidth by deadline is
//    simulated with all requests; infeasible ones are dropped on the way.
// 3. Then with some requests rejected in advance (oracle_admit): with the work of requests in
//    nanoseconds of the whole package, and the package packed to 95, 85, 100 or 75 %, the largest
//    of those that compete are rejected until the rest fits. Rejected requests run only on units
//    that no other needs.
// 4. From the best of these the search goes on until `simulations` are spent: the scheduler's
//    parameters are varied; and in many short segments of the trace at once one request more is
//    required, and kept so where it was in time and cost no other request its deadline. When the
//    best candidate is an online policy, it is relieved of the requests it answers late
//    (oracle_filter.c), and the search goes on from there.
//
// The search is not charged.
#include "base/err.h"
#include "policy/chip/common/dispatch.h"
#include "policy/chip/oracle/oracle_int.h"
#include "policy/policies.h"

enum { ONLINE_MAX = 32 };

#define SETTINGS(X)                                                                                \
    X(simulations, int, 20, 1, 1000000, "simulations of the trace to search with")                 \
    X(online, bool, true, 0, 1, "simulate online policies first; the oracle is never below them")

typedef struct OracleSettings {
    SETTINGS(SETTING_FIELD)
} OracleSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(OracleSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct OnlinePolicies {
    OracleFilter at[ONLINE_MAX];
    uint32_t     n;
} OnlinePolicies;

typedef struct Oracle {
    OracleSearch      search;
    ChipSetup         blind;   // the setup without the future
    const ChipPolicy *policy;  // the best candidate
    void             *state;   // of policy
    bool              just_committed;
    uint32_t          n_waiting, n_free;  // after the last decision
} Oracle;

static Err load(const ChipSetup *setup, const void *settings, Arena *a, const void **loaded) {
    OnlinePolicies *all = arena_new(a, OnlinePolicies, 1);
    *loaded = all;
    if (!((const OracleSettings *)settings)->online) return ERR_OK;
    for (uint32_t i = 0; policies_chip_at(i) != NULL; i++) {
        const ChipPolicy *p = policies_chip_at(i);
        if (p->clairvoyant) continue;
        CHECK(all->n < ONLINE_MAX);
        OracleFilter *c = &all->at[all->n++];
        void         *values = arena_alloc(a, 1, p->settings_size, 64);
        Settings      rows_of = {p->rows, p->n_rows, values, a};
        settings_default(&rows_of);
        *c = (OracleFilter){.inner = p, .settings = values};
        if (p->load != NULL) TRY(p->load(setup, values, a, &c->loaded));
    }
    return ERR_OK;
}

static size_t state_of(const ChipSetup *s, const ChipPolicy *p) {
    _Alignas(64) char values[1024];
    Settings          rows_of = {p->rows, p->n_rows, values, NULL};
    OracleFilter      filter = {.inner = p, .settings = values};
    CHECK(p->settings_size <= sizeof values);
    settings_default(&rows_of);
    return oracle_filter(p)->state_size(s, &filter);
}

// The best candidate is not known yet: room for the state of any.
static size_t largest_state(const ChipSetup *s) {
    size_t most = oracle_list_scheduler.state_size(s, NULL);
    for (uint32_t i = 0; policies_chip_at(i) != NULL; i++) {
        if (policies_chip_at(i)->clairvoyant) continue;
        size_t bytes = state_of(s, policies_chip_at(i));
        if (bytes > most) most = bytes;
    }
    return most;
}

static void *carve_all(const ChipSetup *s, const void *settings, Carve *from) {
    (void)settings;
    OracleSearch search;
    Oracle      *o = carve(from, Oracle, 1);
    oracle_search_carve(&search, s, from);
    void *state = carve_bytes(from, largest_state(s));
    if (o != NULL) *o = (Oracle){.search = search, .state = state, .blind = *s};
    return o;
}

static size_t size(const ChipSetup *setup, const void *settings) {
    return state_size(carve_all, setup, settings);
}

static void init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    const OracleSettings *cfg = settings;
    const OnlinePolicies *all = loaded;
    Oracle               *o = state_place(carve_all, setup, settings, state);
    o->blind.future = NULL;
    oracle_search_run(&o->search, all->at, all->n, (uint32_t)cfg->simulations);
    o->policy = oracle_candidate_policy(&o->search.candidate);
    o->policy->init(o->state, &o->blind, oracle_candidate_settings(&o->search.candidate), NULL);
}

static void plan(void *state, const ChipView *v, ChipPlanCost *cost) {
    Oracle *o = state;
    if (o->policy->plan != NULL) o->policy->plan(o->state, v, cost);
}

static void commit(void *state) {
    Oracle *o = state;
    o->just_committed = true;
    if (o->policy->commit != NULL) o->policy->commit(o->state);
}

// A policy without plan() does not see the event of a commit: in its simulation there was none.
static bool is_news(Oracle *o, const ChipView *v) {
    bool committed = o->just_committed;
    o->just_committed = false;
    return !committed || o->policy->plan != NULL || v->n_waiting != o->n_waiting ||
           v->n_free != o->n_free;
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Oracle *o = state;
    if (!is_news(o, v)) return 0;
    uint32_t n = o->policy->decide(o->state, v, out, max);
    o->n_waiting = v->n_waiting;
    o->n_free = v->n_free;
    for (uint32_t i = 0; i < n; i++) {
        o->n_waiting -= out[i].verb == CHIP_START || out[i].verb == CHIP_DROP;
        o->n_free -= out[i].verb == CHIP_START;
    }
    return n;
}

const ChipPolicy chip_policy_oracle = {
    .name = "oracle",
    .about = "the best schedule found with knowledge of the future: a bound to compare with, not a "
             "proof that nothing is better",
    .clairvoyant = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(OracleSettings),
    .load = load,
    .state_size = size,
    .init = init,
    .plan = plan,
    .commit = commit,
    .decide = decide,
};
