// planaria: the weakest kind of unit that is still in time
//
// 1. Planaria splits one large array and gives every request the smallest part that meets its
//    deadline. Here the parts exist and differ: a request gets a kind of unit, the weakest one, by
//    its speed over all tenants' networks, on which the remaining layers still end in time. `ahead`
//    is the share of the remaining layers that is assumed to run on the same kind; the rest is
//    assumed to run on the fastest.
// 2. Requests go by priority / (slack x strength of their kind), so that those that can be in time
//    soon, with little, come first. Each takes a free unit of its kind, or of a stronger one.
// 3. When all requests got what they need and units are left, these go to the requests with the
//    highest priority / remaining time: a request on a weak kind moves to the fastest free unit.
// 4. When not all did, the rest take the remaining units, weaker than they need (the last step of
//    the paper's allocation). Infeasible requests come after all others or are dropped, which the
//    paper leaves open.
// 5. Everything is decided anew at the end of each layer. Times assume an idle memory;
//    `safety_factor` is how much they are expected to grow.
//
// Defaults were chosen on traces of seeds 1 to 99 with bench/chip_tune.c.
#include "policy/chip/common/dispatch.h"
#include "policy/policies.h"

#include <math.h>

#define SETTINGS(X)                                                                                \
    X(safety_factor, double, 3.9, 0.1, 100.0, "time a request still needs, over its best case")    \
    X(ahead, double, 0.0, 0.0, 1.0,                                                                \
      "share of the remaining layers assumed to run on the same kind")                             \
    X(drop, bool, true, 0, 1, "drop requests that cannot be in time; else compute them last")      \
    PATIENCE_SETTING(X, 0.0)

typedef struct PlanariaSettings {
    SETTINGS(SETTING_FIELD)
} PlanariaSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(PlanariaSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Grant {
    uint32_t task, unit;
    double   claim;  // on a faster unit: priority / remaining time
} Grant;

typedef struct Planaria {
    PlanariaSettings cfg;
    float      **rest;  // [tenant][layer + 1][kind] ns of all layers from `layer` on, on that kind
    double       strength[CHIP_KINDS];  // speed over all networks; 1: every layer on its fastest
    uint32_t     weakest[CHIP_KINDS];   // kinds by strength, ascending
    TaskQueue    order;                 // by key
    TaskQueue    unmet;  // tasks that found neither their kind nor a stronger one free
    uint8_t     *least;  // [slot] kind
    UnitTimeline timeline;
    Grant        grants[CHIP_UNITS];
    uint32_t     n_grants;
} Planaria;

static void *carve_all(const ChipSetup *s, const void *settings, Carve *from) {
    (void)settings;
    TaskQueue order, unmet;
    Planaria *p = carve(from, Planaria, 1);
    float   **rest = carve(from, float *, s->n_tenants);
    uint8_t  *least = carve(from, uint8_t, s->n_slots);
    task_queue_carve(&order, s->n_slots, from);
    task_queue_carve(&unmet, s->n_slots, from);
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        size_t n = (size_t)(s->tenants[i].model->n_layers + 1) * s->n_kinds;
        float *own = carve(from, float, n);
        if (p != NULL) rest[i] = own;
    }
    if (p != NULL) *p = (Planaria){.rest = rest, .order = order, .unmet = unmet, .least = least};
    return p;
}

static size_t size(const ChipSetup *setup, const void *settings) {
    return state_size(carve_all, setup, settings);
}

// A layer that the kind cannot compute counts with its time on the fastest kind.
static void sum_rest(const ChipModel *m, float *rest) {
    for (uint32_t l = m->n_layers; l-- > 0;)
        for (uint32_t k = 0; k < m->n_kinds; k++) {
            float ns = chip_cost(m, l, k)->ns;
            if (isinf(ns)) ns = chip_cost(m, l, m->fastest[l])->ns;
            rest[l * m->n_kinds + k] = rest[(l + 1) * m->n_kinds + k] + ns;
        }
}

static void rank_kinds(Planaria *p, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = i;
        for (; j > 0 && p->strength[p->weakest[j - 1]] > p->strength[i]; j--)
            p->weakest[j] = p->weakest[j - 1];
        p->weakest[j] = i;
    }
}

static void init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    (void)loaded;
    Planaria *p = state_place(carve_all, setup, settings, state);
    p->cfg = *(const PlanariaSettings *)settings;
    for (uint32_t i = 0; i < setup->n_tenants; i++) {
        const ChipModel *m = setup->tenants[i].model;
        sum_rest(m, p->rest[i]);
        for (uint32_t k = 0; k < setup->n_kinds; k++)
            p->strength[k] +=
                (double)m->rest_ns[0] / ((double)p->rest[i][k] * (double)setup->n_tenants);
    }
    rank_kinds(p, setup->n_kinds);
}

// Time of all remaining layers if the next one runs on a kind.
static double time_on(const Planaria *p, const ChipView *v, const ChipTask *t, uint32_t kind) {
    const ChipModel *m = v->setup->tenants[t->request.tenant].model;
    const float     *after = p->rest[t->request.tenant] + (size_t)(t->layer + 1) * m->n_kinds;
    double           same = p->cfg.ahead * (double)after[kind];
    double           fast = (1.0 - p->cfg.ahead) * (double)m->rest_ns[t->layer + 1];
    return (double)chip_cost(m, t->layer, kind)->ns + same + fast;
}

static const double late = 1e15;  // beyond the keys of feasible tasks

// Step 1; returns the key by which tasks are ordered. Infeasible ones come last, shortest first.
static double need(Planaria *p, const ChipView *v, const ChipTask *t) {
    double   left = (double)(t->request.deadline - v->now);
    double   within = left / feasibility_factor(v, t, p->cfg.safety_factor);
    uint32_t last = p->weakest[v->setup->n_kinds - 1];
    for (uint32_t i = 0; i < v->setup->n_kinds; i++) {
        uint32_t kind = p->weakest[i];
        if (time_on(p, v, t, kind) > within) continue;
        p->least[t->slot] = (uint8_t)kind;
        return left * p->strength[kind] / v->setup->tenants[t->request.tenant].priority;
    }
    p->least[t->slot] = (uint8_t)last;
    return late + feasibility_rest_ns(v, t);
}

// A free unit of the kind that the task needs at least; CHIP_NONE when there is none.
static uint32_t enough(const Planaria *p, const ChipTask *t) {
    const ChipSetup *s = p->timeline.view->setup;
    const ChipModel *m = s->tenants[t->request.tenant].model;
    uint32_t         i = 0;
    while (p->weakest[i] != p->least[t->slot]) i++;
    for (; i < s->n_kinds; i++) {
        uint32_t unit = p->timeline.next[p->weakest[i]];
        bool     can = unit != CHIP_NONE && !isinf(chip_cost(m, t->layer, p->weakest[i])->ns);
        if (can && p->timeline.at[unit] == 0) return unit;
    }
    return CHIP_NONE;
}

// Step 2.
static void grant(Planaria *p, const ChipView *v) {
    task_queue_clear(&p->unmet);
    p->n_grants = 0;
    while (!task_queue_empty(&p->order) && p->timeline.n_free > 0) {
        uint32_t        task = task_queue_pop(&p->order).task;
        const ChipTask *t = &v->tasks[task];
        uint32_t        unit = enough(p, t);
        if (unit == CHIP_NONE) {
            task_queue_add(&p->unmet, 0.0, task);
            continue;
        }
        const ChipTenant *tenant = &v->setup->tenants[t->request.tenant];
        float             ns = chip_cost(tenant->model, t->layer, v->setup->kind_of[unit])->ns;
        unit_timeline_reserve(&p->timeline, t, (UnitPick){unit, 0.0F, ns});
        p->grants[p->n_grants++] =
            (Grant){task, unit, tenant->priority / (feasibility_rest_ns(v, t) + 1.0)};
    }
}

// Step 3 for one task: the fastest free unit, if that is faster than its own.
static void improve(Planaria *p, const ChipView *v, Grant *g) {
    const ChipTask *t = &v->tasks[g->task];
    const ChipCost *costs = chip_cost(v->setup->tenants[t->request.tenant].model, t->layer, 0);
    UnitPick        better = unit_timeline_first_free(&p->timeline, t);
    float           ns = costs[v->setup->kind_of[g->unit]].ns;
    if (better.unit == CHIP_NONE || better.wait > 0 || better.ns >= ns) return;
    unit_timeline_reserve(&p->timeline, t, better);
    g->unit = better.unit;
}

static void spend(Planaria *p, const ChipView *v) {
    for (uint32_t done = 0; done < p->n_grants && p->timeline.n_free > 0; done++) {
        uint32_t best = done;
        for (uint32_t i = done + 1; i < p->n_grants; i++)
            if (p->grants[i].claim > p->grants[best].claim) best = i;
        Grant g = p->grants[best];
        p->grants[best] = p->grants[done];
        improve(p, v, &g);
        p->grants[done] = g;
    }
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Planaria *p = state;
    uint32_t  n = 0;
    task_queue_clear(&p->order);
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        double          key = need(p, v, t);
        if (p->cfg.drop && key >= late && n < max)
            out[n++] = (ChipAction){.verb = CHIP_DROP, .task = v->waiting[i]};
        else
            task_queue_add(&p->order, key, v->waiting[i]);
    }
    if (v->n_free == 0 || task_queue_empty(&p->order)) return n;
    unit_timeline_open(&p->timeline, v);
    grant(p, v);
    if (task_queue_empty(&p->unmet)) spend(p, v);
    for (uint32_t i = 0; i < p->n_grants && n < max; i++)
        out[n++] =
            (ChipAction){.verb = CHIP_START, .task = p->grants[i].task, .unit = p->grants[i].unit};
    Dispatch rest = {.choice = CHOOSE_FIRST_TO_END, .patience = p->cfg.patience};
    return n + dispatch_all(&rest, &p->unmet, &p->timeline, out + n, max - n);
}

const ChipPolicy chip_policy_planaria = {
    .name = "planaria",
    .about = "the weakest kind of unit that meets the deadline, by priority / (slack x strength)",
    .paper = "MICRO 2020",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(PlanariaSettings),
    .state_size = size,
    .init = init,
    .decide = decide,
};
