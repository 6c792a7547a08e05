// dream: the best pair of a layer and a unit by a weighted score
//
// 1. Every pair of a waiting task and a kind of unit has a score: urgency x preference + alpha x
//    starvation + beta x thrift. Urgency: remaining time over time to the deadline. Preference:
//    mean time over the kinds, over the time on this kind. Starvation: time waited over the mean
//    time of a layer. Thrift: mean energy over the kinds, over the energy on this kind.
// 2. The pair with the highest score is dispatched, and so on while there are free units. The paper
//    compares free units only; here busy units take part, with the time until they are free added
//    and `patience` as a factor in favour of waiting, and they are reserved for the task. With
//    patience 0 the policy is as published.
// 3. Smart drop: requests that cannot be in time are dropped, up to a share `cap` of each tenant's
//    requests; beyond that they come last.
// 4. alpha and beta are tuned online: every `window` a neighbour of the best pair so far is tried
//    and kept if the product of misses and energy in that window is lower. With `adapt` off they
//    stay as set.
//
// Bandwidth plays no part except through the energy of traffic. The paper's switch between
// super-nets when late is a matter of the networks, not of the package.
//
// Defaults were chosen on traces of seeds 1 to 99 with bench/chip_tune.c; alpha and beta are where
// the online search starts.
#include <math.h>

#include "policy/chip/common/dispatch.h"
#include "policy/chip/common/feasibility.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(alpha, double, 1.0, 0.0, 100.0, "weight of starvation")                                      \
    X(beta, double, 0.11, 0.0, 100.0, "weight of thrift")                                          \
    X(safety_factor, double, 6.0, 0.0, 100.0, "time a request still needs, over its best case")    \
    X(cap, double, 1.0, 0.0, 1.0, "share of a tenant's requests that may be dropped")              \
    PATIENCE_SETTING(X, 0.0)                                                                       \
    X(adapt, bool, true, 0, 1, "tune alpha and beta online")                                       \
    X(window, double, 100.0, 0.1, 1e6, "milliseconds for which a pair of weights is tried")

typedef struct DreamSettings {
    SETTINGS(SETTING_FIELD)
} DreamSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(DreamSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Weights {
    double alpha, beta;
} Weights;

typedef struct Tuner {
    Weights now, best;  // tried at present; the best so far
    double  best_cost;  // below 0: not known yet
    double  window_ns;
    TimeNs  until;     // end of the window
    double  spent_pj;  // by layers dispatched in the window,
    double  mean_pj;   // and by the same layers on the mean kind
    Rng     rng;
} Tuner;

typedef struct MeanLayer {  // over the kinds that can compute it
    float ns, pj;
} MeanLayer;

typedef struct Dream {
    DreamSettings cfg;
    MeanLayer   **layers;    // [tenant][layer]
    float       **thrift;    // [tenant][layer][kind]
    double        layer_ns;  // of the mean layer
    Tuner         tuner;
    TaskQueue     queue;
    UnitTimeline  timeline;
    uint64_t      seen_id;  // requests below are counted
    double        seen[CHIP_TENANTS], dropped[CHIP_TENANTS];
} Dream;

static void *carve_all(const ChipSetup *s, const void *settings, Carve *from) {
    (void)settings;
    TaskQueue   queue;
    Dream      *d = carve(from, Dream, 1);
    MeanLayer **layers = carve(from, MeanLayer *, s->n_tenants);
    float     **thrift = carve(from, float *, s->n_tenants);
    task_queue_carve(&queue, s->n_slots, from);
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        size_t     n = s->tenants[i].model->n_layers;
        MeanLayer *own = carve(from, MeanLayer, n);
        float     *ratios = carve(from, float, n * s->n_kinds);
        if (d != NULL) layers[i] = own, thrift[i] = ratios;
    }
    if (d != NULL) *d = (Dream){.layers = layers, .thrift = thrift, .queue = queue};
    return d;
}

static size_t size(const ChipSetup *setup, const void *settings) {
    return state_size(carve_all, setup, settings);
}

static MeanLayer mean_layer(const ChipModel *m, uint32_t l) {
    MeanLayer sum = {0};
    uint32_t  n = 0;
    for (uint32_t k = 0; k < m->n_kinds; k++) {
        const ChipCost *c = chip_cost(m, l, k);
        if (isinf(c->ns)) continue;
        sum.ns += c->ns;
        sum.pj += c->energy_pj;
        n++;
    }
    return n > 0 ? (MeanLayer){sum.ns / (float)n, sum.pj / (float)n} : sum;
}

static void init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    (void)loaded;
    Dream *d = state_place(carve_all, setup, settings, state);
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
    Weights w = {d->cfg.alpha, d->cfg.beta};
    d->tuner = (Tuner){.now = w,
                       .best = w,
                       .best_cost = -1.0,
                       .window_ns = d->cfg.window * 1e6,
                       .rng = setup->rng};
}

// Misses of all tenants, recent ones weighing more, times energy over the mean kind's.
static double cost_of(const Tuner *t, const ChipView *v) {
    double misses = 0.0;
    for (uint32_t i = 0; i < v->setup->n_tenants; i++)
        misses += 1.0 - (double)v->tenant_stats[i].hit_rate;
    return misses * (t->mean_pj > 0 ? t->spent_pj / t->mean_pj : 1.0);
}

static double neighbour(double x, Rng *rng) {
    const double step = 1.5, least = 1e-4;
    return (x > least ? x : least) * (rng_below(rng, 2) == 0 ? step : 1.0 / step);
}

// The best cost grows with every window that does not reach it: traffic changes, and one lucky
// window must not decide for good.
static void end_window(Tuner *t, double cost) {
    const double fade = 1.05;
    if (t->best_cost < 0 || cost <= t->best_cost) {
        t->best = t->now;
        t->best_cost = cost;
    } else {
        t->best_cost *= fade;
    }
}

// Step 4, at every decision.
static void tune(Tuner *t, const ChipView *v) {
    if (t->until == 0) t->until = v->now + (TimeNs)t->window_ns;
    if (v->now < t->until) return;
    end_window(t, cost_of(t, v));
    t->now = t->best;
    double *moves = rng_below(&t->rng, 2) == 0 ? &t->now.alpha : &t->now.beta;
    *moves = neighbour(*moves, &t->rng);
    t->until = v->now + (TimeNs)t->window_ns;
    t->spent_pj = t->mean_pj = 0.0;
}

typedef struct Pair {
    UnitPick pick;
    double   score;
} Pair;

// Steps 1 and 2 for one task: its best kind.
static Pair best_pair(const Dream *d, const ChipView *v, const ChipTask *t) {
    uint32_t     tenant = t->request.tenant, n_kinds = v->setup->n_kinds;
    const float *thrift = d->thrift[tenant] + (size_t)t->layer * n_kinds;
    double       left = (double)(t->request.deadline - v->now);
    double       urgency = left > 0 ? feasibility_rest_ns(v, t) / left : 0.0;
    double       gain = urgency * (double)d->layers[tenant][t->layer].ns;
    double       starvation = d->tuner.now.alpha * (double)(v->now - t->since) / d->layer_ns;
    Pair         best = {.pick = {.unit = CHIP_NONE}, .score = -INFINITY};
    for (uint32_t k = 0; k < n_kinds; k++) {
        UnitPick p = unit_timeline_of_kind(&d->timeline, t, k);
        double   ns = (double)(p.wait + p.ns) + 1.0, factor = p.wait > 0 ? d->cfg.patience : 1.0;
        if (p.unit == CHIP_NONE || !(factor > 0)) continue;
        double score = gain * factor / ns + starvation + d->tuner.now.beta * (double)thrift[k];
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

static const double last = 1e12;  // beyond any score

static uint32_t drop_and_queue(Dream *d, const ChipView *v, ChipAction *out, uint32_t max) {
    uint32_t n = 0;
    task_queue_clear(&d->queue);
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        bool            late = feasibility_slack_ns(v, t, d->cfg.safety_factor) < 0;
        if (late && n < max && may_drop(d, t)) {
            out[n++] = (ChipAction){.verb = CHIP_DROP, .task = v->waiting[i]};
            continue;
        }
        Pair p = best_pair(d, v, t);
        if (p.pick.unit != CHIP_NONE)
            task_queue_add(&d->queue, (late ? last : 0.0) - p.score, v->waiting[i]);
    }
    return n;
}

static void start(Dream *d, const ChipView *v, uint32_t task, const UnitPick *p, ChipAction *out) {
    const ChipTask *t = &v->tasks[task];
    const ChipCost *c =
        chip_cost(unit_timeline_model(&d->timeline, t), t->layer, v->setup->kind_of[p->unit]);
    d->tuner.spent_pj += (double)c->energy_pj;
    d->tuner.mean_pj += (double)d->layers[t->request.tenant][t->layer].pj;
    *out = (ChipAction){.verb = CHIP_START, .task = task, .unit = p->unit};
}

// Scores only fall while units are reserved, so that a task that is still first when scored again
// is the best. The number of repeated scores is limited; after that the order is that of the last
// scores.
static uint32_t dispatch(Dream *d, const ChipView *v, ChipAction *out, uint32_t max) {
    uint32_t n = 0, rescores = 32;
    while (!task_queue_empty(&d->queue) && d->timeline.n_free > 0 && n < max) {
        QueuedTask      top = task_queue_pop(&d->queue);
        const ChipTask *t = &v->tasks[top.task];
        Pair            p = best_pair(d, v, t);
        double          key = (top.key > last / 2 ? last : 0.0) - p.score;
        if (p.pick.unit == CHIP_NONE) continue;
        if (rescores > 0 && !task_queue_empty(&d->queue) && key > task_queue_first_key(&d->queue)) {
            rescores--;
            task_queue_push(&d->queue, (QueuedTask){key, top.task, top.place});
            continue;
        }
        if (p.pick.wait == 0) start(d, v, top.task, &p.pick, &out[n++]);
        unit_timeline_reserve(&d->timeline, t, p.pick);
    }
    return n;
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Dream *d = state;
    count_arrivals(d, v);
    if (d->cfg.adapt) tune(&d->tuner, v);
    if (v->n_waiting == 0) return 0;
    unit_timeline_open(&d->timeline, v);
    uint32_t n = drop_and_queue(d, v, out, max);
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
