#include "policy/cluster/synergy.h"

#include <string.h>

#include "base/check.h"

static const TimeNs aged_ns = INT64_C(1000) * 3600 * CLUSTER_SECOND;

static SynergyOrder order_of(const char *name) {
    static const char *const names[SYNERGY_ORDERS] = {"fifo", "srtf", "las", "ftf"};
    SynergyOrder             o = 0;
    while (o < SYNERGY_ORDERS && strcmp(names[o], name) != 0) o++;
    return o;
}

Err synergy_load(const ClusterSetup *s, const void *settings, Arena *a, const void **loaded) {
    const SynergySettings *with = settings;
    (void)a;
    *loaded = NULL;
    for (uint32_t i = 1; i < s->n_servers; i++)
        if (s->servers[i].gpus != s->servers[0].gpus || s->servers[i].type != s->servers[0].type)
            return err_set(ERR_ARG,
                           "synergy shares out servers that are alike; %s has %u GPUs of type %u, "
                           "%s %u of type %u",
                           s->servers[0].name, s->servers[0].gpus, s->servers[0].type,
                           s->servers[i].name, s->servers[i].gpus, s->servers[i].type);
    if (s->fractions) return err_set(ERR_ARG, "synergy knows whole GPUs only");
    if (order_of(with->order) == SYNERGY_ORDERS)
        return err_set(ERR_ARG, "order=%.40s: there are fifo, srtf, las and ftf", with->order);
    return ERR_OK;
}

static void lay_out(Synergy *y, const ClusterSetup *s, Carve *from) {
    y->queue = carve(from, uint32_t, s->n_slots);
    y->picked = carve(from, uint32_t, s->n_slots);
    synergy_plan_carve(&y->plan, s, from);
}

size_t synergy_size(const ClusterSetup *s, const void *settings) {
    (void)settings;
    Synergy y = {0};
    Carve   c = {.used = sizeof y};
    lay_out(&y, s, &c);
    return c.used;
}

void synergy_init(Synergy *y, const ClusterSetup *s, const SynergySettings *with,
                  SynergyMode mode) {
    Carve c = {.base = (char *)y, .used = sizeof *y};
    lay_out(y, s, &c);
    y->plan.mode = mode;
    y->order = order_of(with->order);
    CHECK(y->order < SYNERGY_ORDERS);
    y->period = with->period_s * CLUSTER_SECOND;
}

static double seconds(TimeNs t) { return (double)t / (double)CLUSTER_SECOND; }

static double left_s(const Synergy *y, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    double             left = v->setup->in_rounds
                                  ? seconds(t->job.iteration) * (double)(t->job.iterations - t->done)
                                  : seconds(cluster_left(v, t));
    return y->plan.mode == SYNERGY_FAIR ? left : left / y->plan.tasks[slot].speed;
}

static double key(const Synergy *y, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    double             came = seconds(t->job.submit);
    double alone = v->setup->in_rounds ? seconds(t->job.iteration) * (double)t->job.iterations
                                       : seconds(cluster_left(v, t) + cluster_held(v, t));
    switch (y->order) {
    case SYNERGY_BY_SRTF: return left_s(y, v, slot);
    case SYNERGY_BY_LAS: return seconds(cluster_held(v, t)) * t->job.gpus;
    case SYNERGY_BY_FTF: return (seconds(v->now) - came + left_s(y, v, slot)) / alone;
    default: return came;
    }
}

// Who has had nothing for 1000 hours goes before all who have, except in fifo.
static bool before(const Synergy *y, const ClusterView *v, uint32_t a, uint32_t b) {
    const SynergyTask *x = &y->plan.tasks[a], *z = &y->plan.tasks[b];
    double             of_a = key(y, v, a), of_b = key(y, v, b);
    if (y->order != SYNERGY_BY_FIFO && x->aged != z->aged) return x->aged;
    if (of_a != of_b) return of_a < of_b;
    return v->tasks[a].job.submit < v->tasks[b].job.submit;
}

static void sort_queue(Synergy *y, const ClusterView *v) {
    for (uint32_t i = 1; i < y->n_queue; i++) {
        uint32_t x = y->queue[i], at = i;
        for (; at > 0 && before(y, v, x, y->queue[at - 1]); at--) y->queue[at] = y->queue[at - 1];
        y->queue[at] = x;
    }
}

static void meet(Synergy *y, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    SynergyTask       *x = &y->plan.tasks[slot];
    if (x->id == t->job.id + 1) return;
    *x = (SynergyTask){.id = t->job.id + 1, .left_at = t->job.submit};
    x->best_speed = x->speed = demand_best(v->setup, &t->job, &x->best);
    y->queue[y->n_queue++] = slot;
}

// Those that ended leave; those that came since join at the end.
static void look(Synergy *y, const ClusterView *v) {
    uint32_t kept = 0, from = v->n_waiting;
    for (uint32_t i = 0; i < y->n_queue; i++) {
        const ClusterTask *t = &v->tasks[y->queue[i]];
        SynergyTask       *x = &y->plan.tasks[y->queue[i]];
        if (t->state == CLUSTER_GONE || x->id != t->job.id + 1) continue;
        if (t->state == CLUSTER_RUNNING) x->left_at = v->now;
        y->queue[kept++] = y->queue[i];
    }
    y->n_queue = kept;
    while (from > 0 && v->tasks[v->waiting[from - 1]].entry > y->seen) from--;
    for (; from < v->n_waiting; from++) {
        meet(y, v, v->waiting[from]);
        y->seen = v->tasks[v->waiting[from]].entry;
    }
}

// las picks by GPUs before anybody is placed and then, in tune, places the larger first.
static uint32_t pick(Synergy *y, const ClusterView *v) {
    uint64_t free = v->setup->gpus;
    uint32_t n = 0;
    for (uint32_t i = 0; i < y->n_queue; i++) {
        uint32_t slot = y->queue[i], gpus = v->tasks[slot].job.gpus, at = n;
        if (y->order == SYNERGY_BY_LAS && gpus > free) continue;
        if (y->order == SYNERGY_BY_LAS) free -= gpus;
        bool by_size = y->order == SYNERGY_BY_LAS && y->plan.mode == SYNERGY_TUNE;
        for (; by_size && at > 0 && gpus > v->tasks[y->picked[at - 1]].job.gpus; at--)
            y->picked[at] = y->picked[at - 1];
        y->picked[at] = slot;
        n++;
    }
    return n;
}

static bool same(const SynergyPlan *p, const SynergyTask *x, const ClusterTask *t) {
    if (t->state != CLUSTER_RUNNING || x->n != t->n_slices) return false;
    for (uint32_t i = 0; i < x->n; i++) {
        const ClusterSlice *a = &p->slices[x->first + i], *b = &t->slices[i];
        if (a->server != b->server || a->gpus != b->gpus || a->cores_milli != b->cores_milli ||
            a->memory_mib != b->memory_mib)
            return false;
    }
    return true;
}

// Who keeps what it has is left alone; all others let go before anybody is started.
static uint32_t act(const Synergy *y, const ClusterView *v, ClusterAction *out) {
    const SynergyPlan *p = &y->plan;
    uint32_t           n = 0;
    for (uint32_t i = 0; i < y->n_queue; i++) {
        const ClusterTask *t = &v->tasks[y->queue[i]];
        if (t->state == CLUSTER_RUNNING && !same(p, &p->tasks[y->queue[i]], t))
            out[n++] = (ClusterAction){.verb = CLUSTER_PREEMPT, .task = y->queue[i]};
    }
    for (uint32_t i = 0; i < y->n_queue; i++) {
        const SynergyTask *x = &p->tasks[y->queue[i]];
        if (x->n == 0 || same(p, x, &v->tasks[y->queue[i]])) continue;
        out[n++] = (ClusterAction){.verb = CLUSTER_START,
                                   .task = y->queue[i],
                                   .slices = p->slices + x->first,
                                   .n_slices = x->n};
    }
    return n;
}

uint32_t synergy_decide(Synergy *y, const ClusterView *v, ClusterAction *out) {
    ClusterAction wake = {.verb = CLUSTER_WAKE, .at = (v->now / y->period + 1) * y->period};
    if (v->setup->round == 0 && v->now % y->period != 0) {
        out[0] = wake;
        return 1;
    }
    look(y, v);
    sort_queue(y, v);
    synergy_plan_begin(&y->plan);
    for (uint32_t i = 0; i < y->n_queue; i++) {
        SynergyTask *x = &y->plan.tasks[y->queue[i]];
        x->n = 0;
        x->speed = x->best_speed;
        x->aged = x->aged || v->now - x->left_at > aged_ns;
    }
    uint32_t picked = pick(y, v);
    for (uint32_t i = 0; i < picked; i++) synergy_plan_add(&y->plan, y->picked[i]);
    uint32_t n = act(y, v, out);
    if (v->setup->round == 0) out[n++] = wake;
    return n;
}
