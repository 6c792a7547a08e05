// herald: layers are planned ahead on the kinds that suit them, with balanced loads
//
// 1. Herald plans offline for a fixed set of networks. Here requests arrive at any time, so that
// the
//    next `depth` layers of the oldest `tasks` requests are planned anew every period, and the
//    planning time is charged.
// 2. Layers are placed breadth first, one layer of every request in a round, so that independent
//    models overlap; or, with `breadth` off, depth first, one request after the other, the paper's
//    other order.
// 3. A layer goes to its best kind by `metric`: least time, least energy, or least product of both.
//    If it would end there later than (1 + delta) times its end on the least loaded kind, the next
//    best kind is tried, and so on.
// 4. Gaps are filled at run time: if the next planned layer of a unit is not ready, the unit takes
// a
//    later one, and a layer may leave its planned kind for a free unit if waiting would not end
//    within `patience` times the time there.
// 5. Requests that arrive after the last plan follow it, in order of arrival.
//
// Deadlines and bandwidth play no part, as in the paper.
//
// Defaults were chosen on traces of seeds 1 to 99 with bench/chip_tune.c. Plans of one layer were
// best, by 3 points: longer plans are outdated before their period ends.
#include <math.h>

#include "base/err.h"
#include "policy/chip/common/layer_plan.h"
#include "policy/policies.h"

enum { TASKS = 256 };

#define SETTINGS(X)                                                                                \
    X(delta, double, 7.8, 0.0, 100.0,                                                              \
      "how much later than on the least loaded kind a layer may end on its best, as a share")      \
    X(metric, int, 0, 0, 2, "what the best kind minimises: 0 time, 1 energy, 2 their product")     \
    X(breadth, bool, true, 0, 1, "plan one layer of every request in a round; else by request")    \
    X(depth, int, 1, 1, LAYER_PLAN_DEPTH, "planned layers of a request")                           \
    X(tasks, int, 64, 1, TASKS, "planned requests, the oldest")                                    \
    PATIENCE_SETTING(X, 1.8)

typedef struct HeraldSettings {
    SETTINGS(SETTING_FIELD)
} HeraldSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(HeraldSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Cursor {  // how far a request is planned
    uint32_t task, layer, end;
    float    ready;  // nanoseconds until its next layer can start
} Cursor;

typedef struct Herald {
    HeraldSettings cfg;
    LayerPlan      layer_plan;
    UnitTimeline   timeline;
    Cursor         cursors[TASKS];
    uint32_t       n_cursors;
} Herald;

static void *carve_all(const ChipSetup *s, const void *settings, Carve *from) {
    (void)settings;
    LayerPlan layer_plan;
    Herald   *h = carve(from, Herald, 1);
    layer_plan_carve(&layer_plan, s->n_slots, from);
    if (h != NULL) h->layer_plan = layer_plan;
    return h;
}

static size_t size(const ChipSetup *setup, const void *settings) {
    return state_size(carve_all, setup, settings);
}

static void init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    (void)loaded;
    Herald *h = state_place(carve_all, setup, settings, state);
    h->cfg = *(const HeraldSettings *)settings;
}

static void add(Herald *h, const ChipView *v, uint32_t task) {
    const ChipTask *t = &v->tasks[task];
    uint32_t        n_layers = v->setup->tenants[t->request.tenant].model->n_layers,
             depth = (uint32_t)h->cfg.depth;
    Cursor x = {.task = task, .layer = t->layer};
    if (h->n_cursors >= (uint32_t)h->cfg.tasks) return;
    if (t->unit != CHIP_NONE) {
        x.layer++;
        x.ready = h->timeline.at[t->unit];
    }
    x.end = x.layer + depth < n_layers ? x.layer + depth : n_layers;
    h->cursors[h->n_cursors++] = x;
}

// Running requests come first: they are few and mostly the oldest.
static void gather(Herald *h, const ChipView *v) {
    h->n_cursors = 0;
    for (uint32_t u = 0; u < v->setup->n_units; u++)
        if (v->units[u].task != CHIP_NONE) add(h, v, v->units[u].task);
    for (uint32_t i = 0; i < v->n_waiting; i++) add(h, v, v->waiting[i]);
}

static float metric_of(const Herald *h, const ChipCost *c) {
    return (h->cfg.metric == 1 ? 1.0F : c->ns) * (h->cfg.metric == 0 ? 1.0F : c->energy_pj);
}

typedef struct Option {
    float    start, end, metric;
    uint32_t kind;
} Option;

// The kinds that can compute the layer, the best first.
static uint32_t options(const Herald *h, const ChipModel *m, const Cursor *x, Option *out) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < m->n_kinds; k++) {
        const ChipCost *c = chip_cost(m, x->layer, k);
        uint32_t        unit = h->timeline.next[k];
        if (unit == CHIP_NONE || isinf(c->ns)) continue;
        float    start = fmaxf(x->ready, h->timeline.at[unit]);
        Option   o = {start, start + c->ns, metric_of(h, c), k};
        uint32_t i = n++;
        for (; i > 0 && out[i - 1].metric > o.metric; i--) out[i] = out[i - 1];
        out[i] = o;
    }
    return n;
}

// Step 3.
static Option choose(const Herald *h, const Option *at, uint32_t n) {
    uint32_t idle = 0, i = 0;  // idle: the least loaded kind, on which the layer starts first
    for (uint32_t k = 1; k < n; k++)
        if (at[k].start < at[idle].start) idle = k;
    while (i + 1 < n && (double)at[i].end > (1.0 + h->cfg.delta) * (double)at[idle].end) i++;
    return at[i];
}

static void place(Herald *h, const ChipView *v, Cursor *x) {
    const ChipTask  *t = &v->tasks[x->task];
    const ChipModel *m = v->setup->tenants[t->request.tenant].model;
    Option           at[CHIP_KINDS];
    uint32_t         n = options(h, m, x, at);
    CHECK(n > 0);
    Option o = choose(h, at, n);
    layer_plan_put(&h->layer_plan, t, x->layer, (PlannedLayer){o.start, (uint8_t)o.kind});
    unit_timeline_occupy(&h->timeline, h->timeline.next[o.kind], o.end);
    x->ready = o.end;
    x->layer++;
}

static uint32_t place_all(Herald *h, const ChipView *v) {
    uint32_t n = 0, rounds = h->cfg.breadth ? (uint32_t)h->cfg.depth : 1;
    for (uint32_t round = 0; round < rounds; round++)
        for (uint32_t i = 0; i < h->n_cursors; i++) {
            Cursor  *x = &h->cursors[i];
            uint32_t end = h->cfg.breadth && x->layer < x->end ? x->layer + 1 : x->end;
            for (; x->layer < end; n++) place(h, v, x);
        }
    return n;
}

static void plan(void *state, const ChipView *v, ChipPlanCost *cost) {
    Herald *h = state;
    layer_plan_begin(&h->layer_plan);
    unit_timeline_open(&h->timeline, v);
    gather(h, v);
    cost->ops += (double)place_all(h, v) * v->setup->n_kinds;
}

static void commit(void *state) {
    Herald *h = state;
    layer_plan_commit(&h->layer_plan);
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Herald *h = state;
    if (v->n_free == 0 || v->n_waiting == 0) return 0;
    unit_timeline_open(&h->timeline, v);
    LayerPlanParams cfg = {h->cfg.patience, {.late_action = LATE_KEEP}};
    return layer_plan_dispatch(&h->layer_plan, &h->timeline, &cfg, out, max);
}

const ChipPolicy chip_policy_herald = {
    .name = "herald",
    .about =
        "the next layers planned every period, each on its best kind unless that is overloaded",
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
