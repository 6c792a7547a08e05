// dream: the best pair of a layer and a unit, by a weighted score
//
// 1. Every pair of a waiting task and a kind of unit has a score: urgency x preference + alpha x
//    starvation + beta x thrift. Urgency is time left to compute / time left to the deadline;
//    preference is the mean time over kinds / the time on this one; starvation is the time it has
//    waited / the mean time of a layer; thrift is the mean energy over kinds / that of this one.
// 2. The highest score is dispatched, and so on while there are free units. The original compares
//    free units alone; here a busy one takes part as well, cfg the time until it is free added and
//    `patience` in favour of waiting, and its claim keeps others off. With patience 0 it is as
//    published.
// 3. Smart drop: what cannot be in time any more is dropped, as long as no more than `cap` of a
//    tenant's requests are; the rest comes last.
// 4. alpha and beta may be tuned on the way: every `window` a neighbour of the best pair so far is
//    tried, and kept if the product of misses and energy in that window is lower. With `adapt` off
//    they stay as set.
//
// Bandwidth is unknown to it but for the energy of traffic. Super-nets, which the original switches
// between when late, are a matter of the networks, not of the package.
//
// Defaults were chosen on traces of the seeds 1 to 99, see bench/chip_tune.c: alpha and beta are
// where its own search begins.
#include <math.h>

#include "policy/chip/dream_tune.h"
#include "policy/chip/common/feasibility.h"
#include "policy/chip/common/dispatch.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(alpha, double, 1.0, 0.0, 100.0, "weight of starvation")                                      \
    X(beta, double, 0.11, 0.0, 100.0, "weight of thrift")                                          \
    X(safety_factor, double, 6.0, 0.0, 100.0,                                                      \
      "what is left is taken to need this many times its least")                                   \
    X(cap, double, 1.0, 0.0, 1.0, "share of a tenant's requests that may be dropped")              \
    PATIENCE_SETTING(X, 0.0)                                                                       \
    X(adapt, bool, true, 0, 1, "alpha and beta are tuned on the way")                              \
    X(window, double, 100.0, 0.1, 1e6, "milliseconds that a pair of them is tried")

typedef struct DreamSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X)
#undef X
} DreamSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(DreamSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Layer {  // means over the kinds that can compute it
    float ns, pj;
} Layer;

typedef struct Dream {
    DreamSettings cfg;
    Layer       **layers;    // [tenant][layer]
    float       **thrift;    // [tenant][layer][kind]
    double        layer_ns;  // of the mean layer
    DreamTune     tune;
    TaskQueue     order;
    UnitTimeline  timeline;
    uint64_t      seen_id;  // requests below have been counted
    double        seen[CHIP_TENANTS], dropped[CHIP_TENANTS];
} Dream;

static Dream *carve_all(const ChipSetup *s, Carve *from) {
    TaskQueue order;
    Dream    *d = carve(from, Dream, 1);
    Layer   **layers = carve(from, Layer *, s->n_tenants);
    float   **thrift = carve(from, float *, s->n_tenants);
    task_queue_carve(&order, s->n_slots, from);
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        size_t n = s->tenants[i].model->n_layers;
        Layer *own = carve(from, Layer, n);
        float *spares = carve(from, float, n * s->n_kinds);
        if (d != NULL) layers[i] = own, thrift[i] = spares;
    }
    if (d != NULL) *d = (Dream){.layers = layers, .thrift = thrift, .order = order};
    return d;
}

static size_t size(const ChipSetup *setup, const void *settings) {
    (void)settings;
    Carve c = {0};
    carve_all(setup, &c);
    return c.used;
}

static Layer mean_layer(const ChipModel *m, uint32_t l) {
    Layer    sum = {0};
    uint32_t n = 0;
    for (uint32_t k = 0; k < m->n_kinds; k++) {
        const ChipCost *c = chip_cost(m, l, k);
        if (isinf(c->ns)) continue;
        sum.ns += c->ns;
        sum.pj += c->energy_pj;
        n++;
    }
    return n > 0 ? (Layer){sum.ns / (float)n, sum.pj / (float)n} : sum;
}

static void init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    (void)loaded;
    Carve  c = {.base = state};
    Dream *d = carve_all(setup, &c);
    double n = 0;
    d->cfg = *(const DreamSettings *)settings;
    for (uint32_t i = 0; i < setup->n_tenants; i++) {
        const ChipModel *m = setup->tenants[i].model;
        for (uint32_t l = 0; l < m->n_layers; l++) {
            d->layers[i][l] = mean_layer(m, l);
            for (uint32_t k = 0; k < m->n_kinds; k++) {
                float pj = chip_cost(m, l, k)->energy_pj;
                d->thrift[i][l * m->n_kinds + k] = pj > 0 ? d->layers[i][l].pj / pj : 1.0F;
            }
        }
        d->layer_ns += (double)m->rest_ns[0];
        n += m->n_layers;
    }
    d->layer_ns = n > 0 ? d->layer_ns / n : 1.0;
    dream_tune_init(&d->tune, d->cfg.alpha, d->cfg.beta, d->cfg.window * 1e6, setup->rng);
}

typedef struct Pair {
    UnitPick pick;
    double   score;
} Pair;

// Steps 1 and 2, for one task: its best kind.
static Pair best_pair(const Dream *d, const ChipView *v, const ChipTask *t) {
    uint32_t     tenant = t->request.tenant, n_kinds = v->setup->n_kinds;
    const float *thrift = d->thrift[tenant] + (size_t)t->layer * n_kinds;
    double       left = (double)(t->request.deadline - v->now);
    double       urgency = left > 0 ? feasibility_rest_ns(v, t) / left : 0.0;
    double       gain = urgency * (double)d->layers[tenant][t->layer].ns;
    double       starved = d->tune.now.alpha * (double)(v->now - t->since) / d->layer_ns;
    Pair         best = {.pick = {.unit = CHIP_NONE}, .score = -INFINITY};
    for (uint32_t k = 0; k < n_kinds; k++) {
        UnitPick p = unit_timeline_of_kind(&d->timeline, t, k);
        double   ns = (double)(p.wait + p.ns) + 1.0, eager = p.wait > 0 ? d->cfg.patience : 1.0;
        if (p.unit == CHIP_NONE || !(eager > 0)) continue;
        double score = gain * eager / ns + starved + d->tune.now.beta * (double)thrift[k];
        if (score > best.score) best = (Pair){p, score};
    }
    return best;
}

// Step 3.
static bool may_drop(Dream *d, const ChipTask *t) {
    uint32_t i = t->request.tenant;
    if (d->dropped[i] + 1.0 > d->cfg.cap * d->seen[i]) return false;
    d->dropped[i]++;
    return true;
}

static void count_arrivals(Dream *d, const ChipView *v) {
    uint64_t first = d->seen_id;
    for (uint32_t i = v->n_waiting; i-- > 0 && v->tasks[v->waiting[i]].request.id >= first;) {
        const ChipRequest *r = &v->tasks[v->waiting[i]].request;
        d->seen[r->tenant]++;
        if (r->id >= d->seen_id) d->seen_id = r->id + 1;
    }
}

static const double last = 1e12;  // more than any score

static uint32_t line_up(Dream *d, const ChipView *v, ChipAction *out, uint32_t max) {
    uint32_t n = 0;
    task_queue_clear(&d->order);
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        bool            infeasible = feasibility_slack_ns(v, t, d->cfg.safety_factor) < 0;
        if (infeasible && n < max && may_drop(d, t)) {
            out[n++] = (ChipAction){.verb = CHIP_DROP, .task = v->waiting[i]};
            continue;
        }
        Pair p = best_pair(d, v, t);
        if (p.pick.unit != CHIP_NONE)
            task_queue_add(&d->order, (infeasible ? last : 0.0) - p.score, v->waiting[i]);
    }
    return n;
}

// Scores only fall while units are claimed, so whoever still leads after a second look is the best.
// With many claims in one decision the looks run out, and the rest goes by what was seen last.
static uint32_t dispatch(Dream *d, const ChipView *v, ChipAction *out, uint32_t max) {
    uint32_t n = 0, looks = 32;
    while (d->order.n > 0 && d->timeline.n_free > 0 && n < max) {
        QueuedTask      top = task_queue_pop(&d->order);
        const ChipTask *t = &v->tasks[top.task];
        Pair            p = best_pair(d, v, t);
        double          key = (top.key > last / 2 ? last : 0.0) - p.score;
        if (p.pick.unit == CHIP_NONE) continue;
        if (looks > 0 && d->order.n > 0 && key > d->order.at[0].key) {
            looks--;
            task_queue_push(&d->order, (QueuedTask){key, top.task, top.place});
            continue;
        }
        if (p.pick.wait == 0) {
            uint32_t kind = v->setup->kind_of[p.pick.unit];
            dream_tune_spend(&d->tune,
                             chip_cost(unit_timeline_model(&d->timeline, t), t->layer, kind),
                             d->layers[t->request.tenant][t->layer].pj);
            out[n++] = (ChipAction){.verb = CHIP_START, .task = top.task, .unit = p.pick.unit};
        }
        unit_timeline_reserve(&d->timeline, t, p.pick);
    }
    return n;
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Dream *d = state;
    count_arrivals(d, v);
    if (d->cfg.adapt) dream_tune_look(&d->tune, v);
    if (v->n_waiting == 0) return 0;
    unit_timeline_open(&d->timeline, v);
    uint32_t n = line_up(d, v, out, max);
    return n + dispatch(d, v, out + n, max - n);
}

const ChipPolicy chip_policy_dream = {
    .name = "dream",
    .about = "the best pair of layer and unit by urgency, speed, starvation and energy",
    .paper = "ASPLOS 2023",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(DreamSettings),
    .state_size = size,
    .init = init,
    .decide = decide,
};
