// edf_gate, bytes_gate: a bandwidth gate on a simple order
//
// 1. Gate. No layer starts while the running layers demand `gate` of the memory's bandwidth or
//    more: layers that slow each other down hold their units for longer and answer no request
//    sooner. On an idle package the first layer always starts. With `aware` units are compared at
//    the speed that the bandwidth allows. (To count the layer's own demand as well gained nothing:
//    layers that alone demand more than the memory has would never start beside others.)
// 2. Order. edf_gate takes tasks by deadline, bytes_gate those with the fewest remaining bytes of
//    memory traffic first: where the bandwidth is scarce, these are the shortest requests. The
//    bytes of a layer are those on the kind of unit where it needs fewest.
// 3. As with edf, a task takes the unit where its layer ends first by the cost table, waits for a
//    busy one within `patience`, and is dropped when it cannot be in time.
//
// Both are our own and take no network, no throttle and no price: what they reach is no merit of a
// policy that has these. Defaults were chosen on traces of seeds 1 to 99 with bench/chip_tune.c.
#include <math.h>

#include "policy/chip/common/dispatch.h"
#include "policy/policies.h"

#define SETTINGS(X, factor, waits, share)                                                          \
    FEASIBILITY_SETTINGS(X, LATE_DROP, factor)                                                     \
    PATIENCE_SETTING(X, waits)                                                                     \
    X(gate, double, share, 0.01, 100.0, "demand beyond which no layer starts, over the bandwidth") \
    X(aware, bool, true, 0, 1, "compare units at the speed that the bandwidth allows")

typedef struct GateSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X, 1.0, 1.0, 1.0)
#undef X
} GateSettings;

static const Setting edf_rows[] = {
#define X(...) SETTING_ROW(GateSettings, __VA_ARGS__)
    SETTINGS(X, 1.7, 13.0, 0.65)
#undef X
};

static const Setting bytes_rows[] = {
#define X(...) SETTING_ROW(GateSettings, __VA_ARGS__)
    SETTINGS(X, 1.5, 4.0, 0.68)
#undef X
};

typedef struct Gate {
    const GateSettings *cfg;
    TaskQueue           queue;
    UnitTimeline        timeline;
    float              *bytes[CHIP_TENANTS];  // [n_layers + 1] of all layers from l on
} Gate;

static void *carve_all(const ChipSetup *s, const void *settings, Carve *from) {
    Gate *g = carve(from, Gate, 1), none = {.cfg = NULL}, *to = g == NULL ? &none : g;
    to->cfg = settings;
    task_queue_carve(&to->queue, s->n_slots, from);
    for (uint32_t t = 0; t < s->n_tenants; t++)
        to->bytes[t] = carve(from, float, s->tenants[t].model->n_layers + 1);
    return g;
}

static size_t size(const ChipSetup *s, const void *settings) {
    return state_size(carve_all, s, settings);
}

static float least_bytes(const ChipModel *m, uint32_t layer) {
    float least = INFINITY;
    for (uint32_t k = 0; k < m->n_kinds; k++) {
        const ChipCost *c = chip_cost(m, layer, k);
        if (!isinf(c->ns)) least = fminf(least, c->ns * c->bytes_ns);
    }
    return least;
}

static void init(void *state, const ChipSetup *s, const void *settings, const void *loaded) {
    Gate *g = state_place(carve_all, s, settings, state);
    (void)loaded;
    for (uint32_t t = 0; t < s->n_tenants; t++) {
        const ChipModel *m = s->tenants[t].model;
        for (uint32_t l = m->n_layers; l-- > 0;)
            g->bytes[t][l] = g->bytes[t][l + 1] + least_bytes(m, l);
    }
}

static double with_late(double key, bool late) {
    const double last = 1e18;  // beyond any deadline [ns] and any traffic [bytes]
    return key + (late ? last : 0);
}

static double deadline_of(const void *self, const ChipView *v, const ChipTask *t, bool late) {
    (void)self;
    (void)v;
    return with_late((double)t->request.deadline, late);
}

static double bytes_of(const void *self, const ChipView *v, const ChipTask *t, bool late) {
    const Gate *g = self;
    (void)v;
    return with_late((double)g->bytes[t->request.tenant][t->layer], late);
}

// Whether the gate is open beside layers of this demand; 0: the package is idle.
static bool is_open(const Gate *g, float demand) {
    return demand <= 0 || demand < (float)g->cfg->gate * g->timeline.view->setup->bytes_ns;
}

static uint32_t start_all(Gate *g, const ChipView *v, ChipAction *out, uint32_t max) {
    uint32_t n = 0;
    float    demand = v->demand;
    while (!task_queue_empty(&g->queue) && g->timeline.n_free > 0 && n < max) {
        uint32_t        i = task_queue_pop(&g->queue).task;
        const ChipTask *task = &v->tasks[i];
        UnitPick        p = unit_timeline_first_to_end(&g->timeline, task, (float)g->cfg->patience);
        if (p.unit == CHIP_NONE) continue;
        uint32_t kind = v->setup->kind_of[p.unit];
        if (p.wait == 0 && !is_open(g, demand)) continue;
        unit_timeline_reserve(&g->timeline, task, p);
        if (p.wait > 0) continue;
        demand += chip_cost(unit_timeline_model(&g->timeline, task), task->layer, kind)->bytes_ns;
        out[n++] = (ChipAction){.verb = CHIP_START, .task = i, .unit = p.unit};
    }
    return n;
}

static uint32_t decide_by(Gate *g, TaskKey *key, const ChipView *v, ChipAction *out, uint32_t max) {
    Feasibility f = {g->cfg->late_action, g->cfg->safety_factor};
    uint32_t    n = task_queue_fill(&g->queue, v, &f, key, g, out, max);
    if (task_queue_empty(&g->queue) || v->n_free == 0) return n;
    unit_timeline_open(&g->timeline, v);
    if (g->cfg->aware) unit_timeline_share_bandwidth(&g->timeline);
    return n + start_all(g, v, out + n, max - n);
}

static uint32_t decide_edf(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    return decide_by(state, deadline_of, v, out, max);
}

static uint32_t decide_bytes(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    return decide_by(state, bytes_of, v, out, max);
}

#define POLICY(id, text, rows_, fn)                                                                \
    .name = id, .about = text, .rows = rows_, .n_rows = sizeof rows_ / sizeof *rows_,              \
    .settings_size = sizeof(GateSettings), .state_size = size, .init = init, .decide = fn

const ChipPolicy chip_policy_edf_gate = {
    POLICY("edf_gate", "edf that starts no layer for which the memory has no bandwidth left",
           edf_rows, decide_edf)};

const ChipPolicy chip_policy_bytes_gate = {
    POLICY("bytes_gate", "the fewest remaining bytes first, behind the same gate", bytes_rows,
           decide_bytes)};
