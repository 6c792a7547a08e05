// herald: layers laid out ahead on the kinds that suit them, loads kept even
//
// 1. Herald plans ahead of time for a fixed set of networks. Requests come as they like, so here
//    the next `depth` layers of the oldest `tasks` requests are planned anew every period, and what
//    the planning takes is charged.
// 2. Layers are laid out one round after the other, one layer of every request in a round (breadth
//    first, so that models that are independent of each other lie side by side), or one request
//    after the other (`breadth` off: depth first, the paper's other order).
// 3. A layer is given to its best kind by `metric`: the least time, energy, or product of both.
//    Unless it would end there later than (1 + delta) times its end on the least loaded kind: then
//    the next best is tried, and so on.
// 4. Gaps in the plan are filled when they come: a unit whose next layer is not ready takes one of
//    a later place that is, and a layer may leave its kind for a free unit when waiting would not
//    end before `patience` times that.
// 5. What came after the last plan follows it, in order of arrival.
//
// Deadlines and the memory's bandwidth play no part, as in the original.
//
// Defaults were chosen on traces of the seeds 1 to 99, see bench/chip_tune.c. Plans of one layer
// did best, by 3 points: in a period more happens than a longer plan can know.
#include <math.h>

#include "base/err.h"
#include "policy/chip/common/layer_plan.h"
#include "policy/policies.h"

enum { TASKS = 256 };

#define SETTINGS(X)                                                                                \
    X(delta, double, 7.8, 0.0, 100.0, "how much later than elsewhere a layer may end on its best") \
    X(metric, int, 0, 0, 2, "what the best kind has least of: 0 time, 1 energy, 2 their product")  \
    X(breadth, bool, true, 0, 1, "one layer of every request in a round; else by request")         \
    X(depth, int, 1, 1, LAYER_PLAN_DEPTH, "layers of a request that are planned")                  \
    X(tasks, int, 64, 1, TASKS, "requests that are planned, the oldest")                           \
    PATIENCE_SETTING(X, 1.8)

typedef struct HeraldSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X)
#undef X
} HeraldSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(HeraldSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Laid {  // how far a request is laid out
    uint32_t task, layer, end;
    float    ready;
} Laid;

typedef struct Herald {
    HeraldSettings cfg;
    LayerPlan      layer_plan;
    UnitTimeline   timeline;
    Laid           laid[TASKS];
    uint32_t       n_laid;
} Herald;

static Herald *carve_all(const ChipSetup *s, Carve *from) {
    LayerPlan layer_plan;
    Herald   *h = carve(from, Herald, 1);
    layer_plan_carve(&layer_plan, s->n_slots, from);
    if (h != NULL) h->layer_plan = layer_plan;
    return h;
}

static size_t size(const ChipSetup *setup, const void *settings) {
    (void)settings;
    Carve c = {0};
    carve_all(setup, &c);
    return c.used;
}

static void init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    (void)loaded;
    Carve   c = {.base = state};
    Herald *h = carve_all(setup, &c);
    h->cfg = *(const HeraldSettings *)settings;
}

static void add(Herald *h, const ChipView *v, uint32_t task) {
    const ChipTask *t = &v->tasks[task];
    uint32_t        n_layers = v->setup->tenants[t->request.tenant].model->n_layers,
             depth = (uint32_t)h->cfg.depth;
    Laid x = {.task = task, .layer = t->layer};
    if (h->n_laid >= (uint32_t)h->cfg.tasks) return;
    if (t->unit != CHIP_NONE) {
        x.layer++;
        x.ready = h->timeline.at[t->unit];
    }
    x.end = x.layer + depth < n_layers ? x.layer + depth : n_layers;
    h->laid[h->n_laid++] = x;
}

// Requests that run come first: they are mostly older, and few.
static void gather(Herald *h, const ChipView *v) {
    h->n_laid = 0;
    for (uint32_t u = 0; u < v->setup->n_units; u++)
        if (v->units[u].task != CHIP_NONE) add(h, v, v->units[u].task);
    for (uint32_t i = 0; i < v->n_waiting; i++) add(h, v, v->waiting[i]);
}

static float worth(const Herald *h, const ChipCost *c) {
    return (h->cfg.metric == 1 ? 1.0F : c->ns) * (h->cfg.metric == 0 ? 1.0F : c->energy_pj);
}

typedef struct Offer {
    float    start, end, worth;
    uint32_t kind;
} Offer;

// What every kind that can compute the layer offers, the best first.
static uint32_t offers(const Herald *h, const ChipModel *m, const Laid *x, Offer *out) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < m->n_kinds; k++) {
        const ChipCost *c = chip_cost(m, x->layer, k);
        uint32_t        unit = h->timeline.next[k];
        if (unit == CHIP_NONE || isinf(c->ns)) continue;
        float    start = fmaxf(x->ready, h->timeline.at[unit]);
        Offer    o = {start, start + c->ns, worth(h, c), k};
        uint32_t i = n++;
        for (; i > 0 && out[i - 1].worth > o.worth; i--) out[i] = out[i - 1];
        out[i] = o;
    }
    return n;
}

// Step 3.
static Offer choose(const Herald *h, const Offer *at, uint32_t n) {
    uint32_t idle = 0, i = 0;  // the least loaded: where it could start first
    for (uint32_t k = 1; k < n; k++)
        if (at[k].start < at[idle].start) idle = k;
    while (i + 1 < n && (double)at[i].end > (1.0 + h->cfg.delta) * (double)at[idle].end) i++;
    return at[i];
}

static void lay_out(Herald *h, const ChipView *v, Laid *x) {
    const ChipTask  *t = &v->tasks[x->task];
    const ChipModel *m = v->setup->tenants[t->request.tenant].model;
    Offer            at[CHIP_KINDS];
    uint32_t         n = offers(h, m, x, at);
    CHECK(n > 0);
    Offer o = choose(h, at, n);
    layer_plan_put(&h->layer_plan, t, x->layer, (PlannedLayer){o.start, (uint8_t)o.kind});
    unit_timeline_occupy(&h->timeline, h->timeline.next[o.kind], o.end);
    x->ready = o.end;
    x->layer++;
}

static uint32_t lay_out_all(Herald *h, const ChipView *v) {
    uint32_t n = 0, rounds = h->cfg.breadth ? (uint32_t)h->cfg.depth : 1;
    for (uint32_t round = 0; round < rounds; round++)
        for (uint32_t i = 0; i < h->n_laid; i++) {
            Laid    *x = &h->laid[i];
            uint32_t end = h->cfg.breadth && x->layer < x->end ? x->layer + 1 : x->end;
            for (; x->layer < end; n++) lay_out(h, v, x);
        }
    return n;
}

static void plan(void *state, const ChipView *v, ChipPlanCost *cost) {
    Herald *h = state;
    layer_plan_begin(&h->layer_plan);
    unit_timeline_open(&h->timeline, v);
    gather(h, v);
    cost->ops += (double)lay_out_all(h, v) * v->setup->n_kinds;
}

static void commit(void *state) {
    Herald *h = state;
    layer_plan_commit(&h->layer_plan);
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Herald *h = state;
    if (v->n_free == 0 || v->n_waiting == 0) return 0;
    unit_timeline_open(&h->timeline, v);
    LayerPlanParams rules = {.patience = h->cfg.patience, .late_action = LATE_KEEP};
    return layer_plan_dispatch(&h->layer_plan, &h->timeline, &rules, out, max);
}

const ChipPolicy chip_policy_herald = {
    .name = "herald",
    .about =
        "the next layers planned every period, on the kind that suits them unless it is crowded",
    .paper = "HPCA 2021",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(HeraldSettings),
    .state_size = size,
    .init = init,
    .plan = plan,
    .commit = commit,
    .decide = decide,
};
