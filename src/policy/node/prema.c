// prema: one model at a time, chosen by tokens
//
// 1. Time sharing without space sharing: one request has all cores that it can use.
// 2. A waiting request earns tokens: its priority times its waiting time in units of its isolated
//    run time, so that short requests earn quickly. It starts with its priority.
// 3. Candidates have at least the threshold: the maximum of all tokens, rounded down to a power of
//    `step`. The candidate with the shortest predicted time left runs.
// 4. After every `quantum` layers the choice is repeated. A preempted request keeps its results:
//    that is the checkpoint, and on a CPU it costs only warm caches.
//
// Predictions are for a machine without interference, which holds, as one request runs at a time.
#include <math.h>

#include "policy/node/common/core_placement.h"
#include "policy/node/common/node_setup.h"
#include "policy/node/common/request_queue.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(quantum, int, 20, 1, 10000, "layers between two decisions")                                  \
    X(step, double, 3.0, 1.01, 100.0, "ratio of successive thresholds")

typedef struct PremaSettings {
    SETTINGS(SETTING_FIELD)
} PremaSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(PremaSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Isolated {  // a tenant's model without co-runners
    uint32_t k;            // index of the fastest core count
    float    ns;
} Isolated;

typedef struct Prema {
    PremaSettings cfg;
    Isolated     *isolated;  // [tenant]
    uint8_t      *solo;      // version 0 of every layer
    float         tokens[REQUEST_QUEUE_MAX];
} Prema;

static Prema *carve_all(const NodeSetup *s, Carve *from) {
    Prema    *p = carve(from, Prema, 1);
    Isolated *isolated = carve(from, Isolated, s->n_tenants);
    uint8_t  *solo = node_setup_carve_solo(s, from);
    if (p != NULL) *p = (Prema){.isolated = isolated, .solo = solo};
    return p;
}

CARVE_STATE_SIZE(NodeSetup)

static void init(void *state, const NodeSetup *setup, const void *settings) {
    Carve  c = {.base = state};
    Prema *p = carve_all(setup, &c);
    p->cfg = *(const PremaSettings *)settings;
    for (uint32_t i = 0; i < setup->n_tenants; i++) {
        const NodeModel *m = setup->tenants[i].model;
        Isolated        *best = &p->isolated[i];
        *best = (Isolated){0, node_rest(m, m->rest_solo, 0, 0, 0)};
        for (uint32_t k = 1; k < m->n_counts; k++) {
            float ns = node_rest(m, m->rest_solo, 0, k, 0);
            if (ns < best->ns) *best = (Isolated){k, ns};
        }
    }
}

static float tokens_of(const Prema *p, const NodeView *v, const NodeRequest *r) {
    const NodeTenant *t = &v->setup->tenants[r->tenant];
    const Isolated   *isolated = &p->isolated[r->tenant];
    double            ran = (double)r->computed / t->model->counts[isolated->k];
    double            waited = fmax(0.0, (double)(v->now - r->arrival) - ran);
    return (float)(t->priority * (1.0 + waited / (double)isolated->ns));
}

static double threshold(const Prema *p, float most) {
    double t = 1.0;
    if ((double)most < t) return (double)most;
    while (t * p->cfg.step <= (double)most) t *= p->cfg.step;
    return t;
}

// Step 3; returns an index into v->waiting.
static uint32_t choose(Prema *p, const NodeView *v, uint32_t n) {
    float most = 0.0F;
    for (uint32_t i = 0; i < n; i++) {
        p->tokens[i] = tokens_of(p, v, &v->requests[v->waiting[i]]);
        if (p->tokens[i] > most) most = p->tokens[i];
    }
    double   least = threshold(p, most);
    uint32_t chosen = 0;
    float    shortest = INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        if ((double)p->tokens[i] < least) continue;
        const NodeRequest *r = &v->requests[v->waiting[i]];
        const NodeModel   *m = v->setup->tenants[r->tenant].model;
        float              left = node_rest(m, m->rest_solo, r->next, p->isolated[r->tenant].k, 0);
        if (left < shortest) shortest = left, chosen = i;
    }
    return chosen;
}

static uint32_t decide(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    Prema *p = state;
    if (v->n_running > 0 || v->n_waiting == 0 || max == 0 || v->n_free == 0) return 0;
    uint32_t           n = v->n_waiting < REQUEST_QUEUE_MAX ? v->n_waiting : REQUEST_QUEUE_MAX;
    uint32_t           chosen = v->waiting[choose(p, v, n)];
    const NodeRequest *r = &v->requests[chosen];
    const NodeModel   *m = v->setup->tenants[r->tenant].model;
    uint32_t           left = m->n_layers - r->next, quantum = (uint32_t)p->cfg.quantum;
    uint32_t           wanted = m->counts[p->isolated[r->tenant].k];
    uint32_t           given = wanted < v->n_free ? wanted : v->n_free;
    out[0] = (NodeAction){.verb = NODE_START,
                          .request = chosen,
                          .n_layers = left < quantum ? left : quantum,
                          .wanted = wanted,
                          .cores = core_placement_first(&v->free, given),
                          .versions = p->solo};
    return 1;
}

const NodePolicy policy_prema = {
    .name = "prema",
    .about = "one model at a time on all cores, chosen by tokens and the shortest time left",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(PremaSettings),
    .state_size = size,
    .init = init,
    .decide = decide,
};
