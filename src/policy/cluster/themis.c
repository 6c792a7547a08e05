// themis: finish-time fairness
//
// 1. A job's rho is its time from submission to its projected end, over its time alone. The cluster
//    is fair when no rho is much larger than the others.
// 2. GPUs are leased for a period. When leases end, their GPUs and the free ones are offered to the
//    1 - fairness of all bidders with the worst rho. Waiting jobs bid, and
//    so do jobs with an ended lease.
// 3. Among those bidders the auction seeks the largest product of 1/rho: in the order of how much a
//    rho would grow per GPU in the next period without GPUs. Running jobs add their restart cost.
// 4. The remainder goes to the other bidders, worst rho first; a job keeps GPUs that would idle.
//
// Between periods free GPUs go to the worst rho. Gangs stay together. Where durations are unknown,
// as much work is assumed left as was done.
#include <math.h>

#include "policy/cluster/common/cluster_policy.h"
#include "policy/cluster/common/plan_builder.h"
#include "policy/cluster/common/priority_queue.h"
#include "policy/cluster/common/tenant_reclaim.h"
#include "policy/policies.h"

enum {
    TRIES = 256,    // consecutive jobs that do not fit before a pass ends
    PATIENCE = 20,  // periods of waiting after which any running job is preempted for it
};

#define SETTINGS(X)                                                                                \
    X(period_s, int, 300, 1, 86400, "seconds of a GPU lease")                                      \
    X(fairness, double, 0.1, 0.0, 1.0,                                                             \
      "GPUs are offered first to the worst 1 - fairness of bidders")

typedef struct ThemisSettings {
    SETTINGS(SETTING_FIELD)
} ThemisSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(ThemisSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct ThemisTask {
    uint64_t id;  // of the job in this slot, plus 1; 0: none
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

CLUSTER_POLICY_STATE(Themis)

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    const ThemisSettings *cfg = settings;
    Themis               *h = state_open(state, s);
    h->period = cfg->period_s * CLUSTER_SECOND;
    h->fairness = cfg->fairness;
    h->due = INT64_MAX;
}

static TimeNs left_of(const ClusterView *v, const ClusterTask *t) {
    TimeNs left = cluster_left(v, t);
    return left >= 0 ? left : cluster_held(v, t) + CLUSTER_SECOND;
}

static void remember_work(Themis *h, const ClusterView *v, uint32_t slot) {
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

// Growth of log(rho) per GPU if the job gets none for a period.
static double harm(const Themis *h, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    double             all = (double)(v->now - t->job.submit) + (double)left_of(v, t) + 1;
    double             more = (double)h->period, gpus = (double)cluster_gpu_milli(&t->job);
    if (t->state == CLUSTER_RUNNING) more += (double)cluster_restart(v->setup, &t->job);
    double x = more / all;  // Pade approximation of log(1 + x): equal on every machine
    return x * (6 + x) / (6 + 4 * x) / (gpus > 0 ? gpus : 1);
}

static PriorityQueue by_rho(Themis *h, const ClusterView *v, const uint32_t *slots, uint32_t n,
                            PriorityQueue l) {
    for (uint32_t i = 0; i < n; i++) {
        const ClusterTask *t = &v->tasks[slots[i]];
        remember_work(h, v, slots[i]);
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
    return v->now - t->since >= h->period && cluster_may_preempt(v->setup, t, v->now);
}

// Running jobs with an ended lease, at the front of `victims`.
static uint32_t bidders(Themis *h, const ClusterView *v) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_running; i++)
        if (expired(h, v, &v->tasks[v->running[i]])) h->victims[n++] = v->running[i];
    return n;
}

// The worst bidders by harm, then the rest by rho.
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
    for (uint32_t i = 0; i < h->n_victims / 2; i++) {  // the last to lose is preempted first
        uint32_t *a = &h->victims[i], *b = &h->victims[h->n_victims - 1 - i], x = *a;
        *a = *b;
        *b = x;
    }
}

// It has waited so long that any running job may be preempted for it, one per decision.
static bool overdue(const Themis *h, const ClusterView *v, uint32_t slot) {
    return v->now - v->tasks[slot].since > PATIENCE * h->period;
}

static void place_winners(Themis *h, const ClusterView *v) {
    uint32_t failed = 0;
    bool     pushed = false;
    for (uint32_t i = 0; i < h->n_winners && failed < TRIES; i++) {
        uint32_t slot = h->winners[i], has = 0;
        if (plan_builder_slices(&h->builder, slot, &has) != NULL) continue;
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
    if (h->due == INT64_MAX) h->due = period_after(v->now, h->period);
    plan_builder_begin(&h->builder, v);
    tenant_reclaim(&h->builder, h->victims);
    if (v->now >= h->due || v->setup->round > 0) {
        h->due = period_after(v->now, h->period);
        auction(h, v);
        place_winners(h, v);
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
    .about = "largest ratio of finish time to finish time alone first, with leases",
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
