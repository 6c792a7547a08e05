// themis: finish-time fairness
//
// 1. A job's rho is the time from its submission to its end as things stand, over the time that it
//    would take alone. Fair is when nobody's is much larger than others'.
// 2. GPUs are lent for a period. When it is over they are offered, with those that are free, to the
//    part 1 - fairness of all bidders whose rho is the worst: who waits, and who would have to
//    stop.
// 3. Among those the auction looks for the largest product of 1/rho: along the order of how much,
//    for each GPU, a rho would grow in the next period without one. Who runs would also have to
//    restart.
// 4. What is left goes to the others, the worst first, and stays with who has it rather than idle.
//
// Between two periods free GPUs go to those with the worst rho. Gangs are kept together. Where
// work is not told, as much is guessed to be left as was done.
#include <math.h>

#include "policy/cluster/common/plan_builder.h"
#include "policy/cluster/common/priority_queue.h"
#include "policy/policies.h"

enum { TRIES = 256, PATIENCE = 20 };  // in a row that find no place; periods until all make room

#define SETTINGS(X)                                                                                \
    X(period_s, int, 300, 1, 86400, "for which GPUs are lent")                                     \
    X(fairness, double, 0.1, 0.0, 1.0, "GPUs are offered to the worst 1 - this of all first")

typedef struct ThemisSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X)
#undef X
} ThemisSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(ThemisSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct ThemisTask {
    uint64_t id;  // of the job whose slot it is, from 1
    TimeNs   work;
} ThemisTask;

typedef struct Themis {
    PlanBuilder builder;
    QueueNode  *nodes;              // [n_slots]
    ThemisTask *tasks;              // [n_slots]
    uint32_t   *winners, *victims;  // [n_slots]
    uint32_t    n_winners, n_victims;
    TimeNs      period, due;
    double      fairness;
} Themis;

static void lay_out(Themis *h, const ClusterSetup *s, Carve *from) {
    plan_builder_carve(&h->builder, s, from);
    h->nodes = carve(from, QueueNode, s->n_slots);
    h->tasks = carve(from, ThemisTask, s->n_slots);
    h->winners = carve(from, uint32_t, s->n_slots);
    h->victims = carve(from, uint32_t, s->n_slots);
}

static size_t state_size(const ClusterSetup *s, const void *settings) {
    (void)settings;
    Themis h = {0};
    Carve  c = {.used = sizeof h};
    lay_out(&h, s, &c);
    return c.used;
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    const ThemisSettings *cfg = settings;
    Themis               *h = state;
    Carve                 c = {.base = state, .used = sizeof *h};
    lay_out(h, s, &c);
    plan_builder_init(&h->builder, s);
    h->period = cfg->period_s * CLUSTER_SECOND;
    h->fairness = cfg->fairness;
    h->due = INT64_MAX;
}

static TimeNs left_of(const ClusterView *v, const ClusterTask *t) {
    TimeNs left = cluster_left(v, t);
    return left >= 0 ? left : cluster_held(v, t) + CLUSTER_SECOND;
}

static void meet(Themis *h, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    ThemisTask        *x = &h->tasks[slot];
    if (x->id == t->job.id + 1 && t->left >= 0) return;
    *x = (ThemisTask){.id = t->job.id + 1, .work = left_of(v, t) + cluster_held(v, t)};
}

static double rho(const Themis *h, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    double             all = (double)(v->now - t->job.submit) + (double)left_of(v, t);
    double             work = (double)h->tasks[slot].work;
    return work > 1 ? all / work : all;
}

// How much the logarithm of rho would grow, for each GPU, without any for a period.
static double harm(const Themis *h, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    double             all = (double)(v->now - t->job.submit) + (double)left_of(v, t) + 1;
    double             more = (double)h->period, gpus = (double)cluster_gpu_milli(&t->job);
    if (t->state == CLUSTER_RUNNING) more += (double)cluster_restart(v->setup, &t->job);
    double x = more / all;  // log(1 + x), nearly, and the same on every machine
    return x * (6 + x) / (6 + 4 * x) / (gpus > 0 ? gpus : 1);
}

static PriorityQueue by_rho(Themis *h, const ClusterView *v, const uint32_t *slots, uint32_t n,
                            PriorityQueue l) {
    for (uint32_t i = 0; i < n; i++) {
        const ClusterTask *t = &v->tasks[slots[i]];
        meet(h, v, slots[i]);
        priority_queue_push(&l, slots[i], (SortKey){-rho(h, v, slots[i]), 0}, t->entry);
    }
    return l;
}

static void serve(Themis *h, PriorityQueue *l) {
    uint32_t failed = 0;
    for (uint32_t slot; failed < TRIES && (slot = priority_queue_pop(l)) != CLUSTER_NONE;)
        failed = plan_builder_place(&h->builder, slot) ? 0 : failed + 1;
}

static bool expired(const Themis *h, const ClusterView *v, const ClusterTask *t) {
    return v->now - t->since >= h->period;
}

// Those that have to bid again, at the front of `victims`.
static uint32_t bidders(Themis *h, const ClusterView *v) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_running; i++)
        if (expired(h, v, &v->tasks[v->running[i]])) h->victims[n++] = v->running[i];
    return n;
}

// The auction: who of the worst would be harmed most comes first, the rest by rho behind them.
static uint32_t next_bidder(PriorityQueue *worst, PriorityQueue *rest) {
    uint32_t slot = priority_queue_pop(worst);
    return slot != CLUSTER_NONE ? slot : priority_queue_pop(rest);
}

static void auction(Themis *h, const ClusterView *v) {
    uint64_t      offered = 0;
    uint32_t      again = bidders(h, v), all = again + v->n_waiting;
    PriorityQueue rest = {h->nodes, CLUSTER_NONE}, worst = rest;
    rest = by_rho(h, v, h->victims, again, rest);
    rest = by_rho(h, v, v->waiting, v->n_waiting, rest);
    for (uint32_t i = 0; i < v->setup->n_servers; i++) offered += v->servers[i].gpu_milli;
    for (uint32_t i = 0; i < again; i++) offered += cluster_gpu_milli(&v->tasks[h->victims[i]].job);
    uint32_t seen = (uint32_t)ceil((1 - h->fairness) * all);
    for (uint32_t i = 0; i < seen; i++) {
        uint32_t slot = priority_queue_pop(&rest);
        priority_queue_push(&worst, slot, (SortKey){-harm(h, v, slot), 0}, v->tasks[slot].entry);
    }
    h->n_winners = h->n_victims = 0;
    for (uint32_t slot; (slot = next_bidder(&worst, &rest)) != CLUSTER_NONE;) {
        uint64_t milli = cluster_gpu_milli(&v->tasks[slot].job);
        bool     wins = milli <= offered;
        if (wins) offered -= milli;
        if (v->tasks[slot].state == CLUSTER_WAITING) {
            if (wins) h->winners[h->n_winners++] = slot;
        } else if (!wins) {
            h->victims[h->n_victims++] = slot;
        }
    }
    for (uint32_t i = 0; i < h->n_victims / 2; i++) {  // who lost last stops first
        uint32_t *a = &h->victims[i], *b = &h->victims[h->n_victims - 1 - i], x = *a;
        *a = *b;
        *b = x;
    }
}

// Somebody who has waited very long gets a place whoever has to make room.
static bool overdue(const Themis *h, const ClusterView *v, uint32_t slot) {
    return v->now - v->tasks[slot].since > PATIENCE * h->period;
}

static void hand_out(Themis *h, const ClusterView *v) {
    uint32_t failed = 0;
    bool     pushed = false;
    for (uint32_t i = 0; i < h->n_winners && failed < TRIES; i++) {
        uint32_t          slot = h->winners[i];
        const ClusterJob *j = &v->tasks[slot].job;
        bool              placed = plan_builder_place(&h->builder, slot) ||
                      plan_builder_preempt(&h->builder, slot, j, h->victims, h->n_victims);
        if (!placed && !pushed && overdue(h, v, slot)) {
            pushed = true;
            placed = plan_builder_preempt(&h->builder, slot, j, v->running, v->n_running);
        }
        failed = placed ? 0 : failed + 1;
    }
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Themis *h = state;
    (void)max;
    if (v->n_waiting == 0) {
        h->due = INT64_MAX;
        return 0;
    }
    if (h->due == INT64_MAX) h->due = (v->now / h->period + 1) * h->period;
    plan_builder_begin(&h->builder, v);
    if (v->now >= h->due || v->setup->round > 0) {
        h->due = (v->now / h->period + 1) * h->period;
        auction(h, v);
        hand_out(h, v);
    }
    PriorityQueue l = {h->nodes, CLUSTER_NONE};
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        uint32_t slot = v->waiting[i], n = 0;
        if (plan_builder_slices(&h->builder, slot, &n) == NULL) l = by_rho(h, v, &slot, 1, l);
    }
    serve(h, &l);
    uint32_t n = plan_builder_write(&h->builder, out);
    out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = h->due};
    return n;
}

const ClusterPolicy cluster_policy_themis = {
    .name = "themis",
    .about = "whose end is delayed most against running alone first, in lent periods",
    .paper = "Themis (NSDI 2020)",
    .knows = CLUSTER_ORACLE,
    .preempts = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(ThemisSettings),
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
