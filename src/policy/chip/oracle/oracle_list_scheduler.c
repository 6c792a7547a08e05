#include "policy/chip/oracle/oracle_int.h"

#include <math.h>

#include "policy/chip/common/feasibility.h"
#include "policy/chip/relmas/relmas_price.h"
#include "policy/chip/common/dispatch.h"

static const float least_demand = 1e-6F;  // of a running layer; 0 marks a free unit
static const float least_speed = 0.01F;   // share that a throttle leaves

typedef struct ListScheduler {
    OracleListParams cfg;
    RelmasPrice      price;
    TaskQueue        queue;
    UnitTimeline     timeline;
    double           keys[CHIP_UNITS];    // of the layer on each unit
    float            demand[CHIP_UNITS];  // bytes a nanosecond; 0: free
} ListScheduler;

static void *carve_all(const ChipSetup *s, const void *settings, Carve *from) {
    (void)settings;
    TaskQueue      queue;
    ListScheduler *r = carve(from, ListScheduler, 1);
    task_queue_carve(&queue, s->n_slots, from);
    if (r != NULL) r->queue = queue;
    return r;
}

static size_t size(const ChipSetup *setup, const void *settings) {
    return state_size(carve_all, setup, settings);
}

static void init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    (void)loaded;
    ListScheduler *r = state_place(carve_all, setup, settings, state);
    r->cfg = *(const OracleListParams *)settings;
    r->price = relmas_price_find(setup);
}

static double key_of(const ListScheduler *r, const ChipView *v, const ChipTask *t) {
    const double last = 1e18;
    double       key = (double)t->request.deadline + r->cfg.size * feasibility_rest_ns(v, t);
    return r->cfg.verdicts[t->request.id] == ORACLE_REQUIRED ? key : key + last;
}

static uint32_t drop_and_queue(ListScheduler *r, const ChipView *v, ChipAction *out, uint32_t max) {
    uint32_t n = 0;
    task_queue_clear(&r->queue);
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        bool            rejected = r->cfg.verdicts[t->request.id] == ORACLE_REJECTED;
        if (n < max && (rejected || feasibility_slack_ns(v, t, r->cfg.safety_factor) < 0))
            out[n++] = (ChipAction){.verb = CHIP_DROP, .task = v->waiting[i]};
        else
            task_queue_add(&r->queue, key_of(r, v, t), v->waiting[i]);
    }
    return n;
}

static void open_units(ListScheduler *r, const ChipView *v) {
    unit_timeline_open(&r->timeline, v);
    for (uint32_t u = 0; u < v->setup->n_units; u++) {
        const ChipUnit *unit = &v->units[u];
        bool            busy = unit->task != CHIP_NONE;
        r->demand[u] = busy ? fmaxf(unit->bytes_ns, least_demand) : 0.0F;
        r->keys[u] = busy ? key_of(r, v, &v->tasks[unit->task]) : INFINITY;
    }
}

// Bandwidth left by all layers that go before a key.
static float left_for(const ListScheduler *r, double key, uint32_t unit) {
    float left = r->timeline.view->setup->bytes_ns;
    for (uint32_t u = 0; u < r->timeline.view->setup->n_units; u++)
        if (r->demand[u] > 0 && (r->keys[u] < key || (u < unit && r->keys[u] == key)))
            left -= r->demand[u];
    return left;
}

typedef struct Option {
    UnitPick pick;
    float    cost;
    bool     starved;  // the unit is free, but too little bandwidth is left
} Option;

static Option option_of(const ListScheduler *r, const ChipTask *t, uint32_t kind, float left) {
    const ChipSetup *s = r->timeline.view->setup;
    const ChipCost  *c = chip_cost(unit_timeline_model(&r->timeline, t), t->layer, kind);
    Option           b = {.pick = unit_timeline_of_kind(&r->timeline, t, kind), .cost = INFINITY};
    const float      slowest = 0.05F;
    if (b.pick.unit == CHIP_NONE) return b;
    float speed = left < c->bytes_ns ? fmaxf(left / c->bytes_ns, 0.0F) : 1.0F;
    b.starved = b.pick.wait == 0 && speed < (float)r->cfg.speed && left < s->bytes_ns;
    b.pick.ns = c->ns / fmaxf(speed, slowest);
    b.cost = b.pick.wait + b.pick.ns;
    if (b.pick.wait > 0 || b.starved) b.cost /= (float)r->cfg.patience;
    b.cost += (float)(r->cfg.price * s->n_units) * relmas_price_work(&r->price, c, kind);
    return b;
}

static Option best_option(const ListScheduler *r, const ChipTask *t, double key) {
    float  left = left_for(r, key, CHIP_UNITS);
    Option best = {.pick = {.unit = CHIP_NONE}, .cost = INFINITY};
    for (uint32_t k = 0; k < r->timeline.view->setup->n_kinds; k++) {
        Option b = option_of(r, t, k, left);
        if (b.cost < best.cost) best = b;
    }
    return best;
}

static uint32_t start(ListScheduler *r, ChipAction *out, uint32_t max) {
    const ChipView *v = r->timeline.view;
    uint32_t        n = 0;
    while (!task_queue_empty(&r->queue) && r->timeline.n_free > 0 && n < max) {
        QueuedTask      top = task_queue_pop(&r->queue);
        const ChipTask *t = &v->tasks[top.task];
        Option          b = best_option(r, t, top.key);
        uint32_t        unit = b.pick.unit;
        if (unit == CHIP_NONE || b.starved) continue;
        if (b.pick.wait == 0) {
            const ChipModel *m = unit_timeline_model(&r->timeline, t);
            float            demand = chip_cost(m, t->layer, v->setup->kind_of[unit])->bytes_ns;
            r->demand[unit] = fmaxf(demand, least_demand);
            r->keys[unit] = top.key;
            out[n++] = (ChipAction){.verb = CHIP_START, .task = top.task, .unit = unit};
        }
        unit_timeline_reserve(&r->timeline, t, b.pick);
    }
    return n;
}

static bool same(float a, float b) {
    const float near = 0.01F;
    if (isinf(a) || isinf(b)) return isinf(a) && isinf(b);
    return fabsf(a - b) <= near * b;
}

static uint32_t throttle(const ListScheduler *r, ChipAction *out, uint32_t max) {
    const ChipView *v = r->timeline.view;
    uint32_t        n = 0;
    for (uint32_t u = 0; u < v->setup->n_units && n < max; u++) {
        float demand = r->demand[u], cap = INFINITY;
        if (!(demand > 0)) continue;
        float left = left_for(r, r->keys[u], u);
        if (left < demand) cap = fmaxf(left, least_speed * demand);
        float has = v->units[u].task == CHIP_NONE ? INFINITY : v->units[u].cap;
        if (!same(cap, has)) out[n++] = (ChipAction){.verb = CHIP_THROTTLE, .unit = u, .cap = cap};
    }
    return n;
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    ListScheduler *r = state;
    uint32_t       n = drop_and_queue(r, v, out, max);
    open_units(r, v);
    n += start(r, out + n, max - n);
    return n + throttle(r, out + n, max - n);
}

const ChipPolicy oracle_list_scheduler = {
    .name = "oracle_list",
    .about = "by deadline, required requests first",
    .settings_size = sizeof(OracleListParams),
    .state_size = size,
    .init = init,
    .decide = decide,
};
