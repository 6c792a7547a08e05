// drf: dominant resource fairness among tenants
//
// 1. A tenant's dominant share is the largest fraction of the cluster's GPUs, cores or memory that
//    its running jobs hold, divided by its weight. Jobs without a tenant form one.
// 2. Free resources go to the tenant with the smallest dominant share, job by job in the order of
//    submission. A job that does not fit is passed over, so that it blocks none.
// 3. A tenant whose first job has waited for longer than `patience_s` and whose share is below its
//    fair share gets its resources back: jobs of tenants above theirs are preempted, those of the
//    largest share first, the latest started first. A tenant's fair share is its weight over the
//    weights of all tenants that have jobs.
//
// Gangs stay together; durations are not used.
#include <math.h>

#include "policy/cluster/common/cluster_policy.h"
#include "policy/cluster/common/tenant_reclaim.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(patience_s, int, 60, 0, 1000000,                                                             \
      "seconds a tenant below its fair share waits before jobs are preempted for it")              \
    X(period_s, int, 60, 1, 86400, "seconds between decisions that preempt jobs")                  \
    X(tries, int, 64, 1, 100000, "jobs of a tenant that do not fit before its turn ends")

typedef struct DrfSettings {
    SETTINGS(SETTING_FIELD)
} DrfSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(DrfSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct DrfTenant {
    double   gpus, cores, memory;  // fractions of the cluster
    double   weight, share;        // share: the dominant one over the weight
    uint32_t first, last;          // waiting tasks, by entry
    uint32_t failed;               // in this decision
    bool     active;
} DrfTenant;

typedef struct DrfVictim {
    double   share;
    TimeNs   since;
    uint32_t slot;
} DrfVictim;

typedef struct Drf {
    PlanBuilder builder;
    DrfTenant  *tenants;  // [n_tenants + 1] the last one: of jobs without a tenant
    uint32_t   *next;     // [n_slots] in a tenant's list
    DrfVictim  *victims;  // [n_slots]
    uint32_t   *slots;    // [n_slots] of the victims
    uint32_t    n_tenants;
    DrfSettings cfg;
    TimeNs      due;
} Drf;

static void lay_out(Drf *d, const ClusterSetup *s, Carve *from) {
    plan_builder_carve(&d->builder, s, from);
    d->tenants = carve(from, DrfTenant, s->n_tenants + 1);
    d->next = carve(from, uint32_t, s->n_slots);
    d->victims = carve(from, DrfVictim, s->n_slots);
    d->slots = carve(from, uint32_t, s->n_slots);
}

CLUSTER_POLICY_STATE(Drf)

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    Drf *d = state_open(state, s);
    d->cfg = *(const DrfSettings *)settings;
    d->n_tenants = s->n_tenants + 1;
    d->due = INT64_MAX;
}

static DrfTenant *tenant_of(Drf *d, const ClusterTask *t) {
    return &d->tenants[t->job.tenant < d->n_tenants ? t->job.tenant : d->n_tenants - 1];
}

static void add_usage(DrfTenant *x, const ClusterSetup *s, const ClusterJob *j, double sign) {
    x->gpus += sign * (double)cluster_gpu_milli(j) / (1e3 * (double)s->gpus);
    x->cores += sign * j->cores_milli / ((double)s->cores_milli + 1);
    x->memory += sign * j->memory_mib / ((double)s->memory_mib + 1);
    x->share = fmax(x->gpus, fmax(x->cores, x->memory)) / x->weight;
}

static void append(Drf *d, DrfTenant *x, uint32_t slot) {
    d->next[slot] = CLUSTER_NONE;
    if (x->first == CLUSTER_NONE)
        x->first = slot;
    else
        d->next[x->last] = slot;
    x->last = slot;
    x->active = true;
}

static void observe(Drf *d, const ClusterView *v) {
    const ClusterSetup *s = v->setup;
    for (uint32_t i = 0; i < d->n_tenants; i++) {
        double weight = i < s->n_tenants ? s->tenants[i].weight : 1;
        d->tenants[i] = (DrfTenant){.weight = weight, .first = CLUSTER_NONE, .last = CLUSTER_NONE};
    }
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        DrfTenant         *x = tenant_of(d, t);
        x->active = true;
        add_usage(x, s, &t->job, 1);
    }
    for (uint32_t i = 0; i < v->n_waiting; i++)
        append(d, tenant_of(d, &v->tasks[v->waiting[i]]), v->waiting[i]);
}

static DrfTenant *least_served(Drf *d) {
    DrfTenant *best = NULL;
    for (uint32_t i = 0; i < d->n_tenants; i++) {
        DrfTenant *x = &d->tenants[i];
        if (x->first == CLUSTER_NONE || x->failed >= (uint32_t)d->cfg.tries) continue;
        if (best == NULL || x->share < best->share) best = x;
    }
    return best;
}

static bool placed(const Drf *d, uint32_t slot) {
    uint32_t n = 0;
    return plan_builder_slices(&d->builder, slot, &n) != NULL;
}

static void fill(Drf *d, const ClusterView *v) {
    for (DrfTenant *x; (x = least_served(d)) != NULL;) {
        uint32_t slot = x->first;
        x->first = d->next[slot];
        if (placed(d, slot)) continue;
        if (plan_builder_place(&d->builder, slot))
            add_usage(x, v->setup, &v->tasks[slot].job, 1);
        else
            x->failed++;
    }
}

static bool before(const DrfVictim *a, const DrfVictim *b) {
    return a->share != b->share ? a->share > b->share : a->since > b->since;
}

// Running tasks of tenants above their fair share.
static uint32_t find_victims(Drf *d, const ClusterView *v, double unit) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        DrfVictim          x = {tenant_of(d, t)->share, t->since, v->running[i]};
        uint32_t           k = n;
        if (!(x.share > unit) || t->job.gpus == 0) continue;
        for (n++; k > 0 && before(&x, &d->victims[k - 1]); k--) d->victims[k] = d->victims[k - 1];
        d->victims[k] = x;
    }
    for (uint32_t i = 0; i < n; i++) d->slots[i] = d->victims[i].slot;
    return n;
}

// Usage by the plan so far.
static void recount(Drf *d, const ClusterView *v) {
    for (uint32_t i = 0; i < d->n_tenants; i++)
        d->tenants[i].gpus = d->tenants[i].cores = d->tenants[i].memory = d->tenants[i].share = 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        const uint32_t *slots = pass == 0 ? v->running : v->waiting;
        for (uint32_t i = 0; i < (pass == 0 ? v->n_running : v->n_waiting); i++)
            if (placed(d, slots[i]))
                add_usage(tenant_of(d, &v->tasks[slots[i]]), v->setup, &v->tasks[slots[i]].job, 1);
    }
}

static double fair_share(const Drf *d) {
    double weights = 0;
    for (uint32_t i = 0; i < d->n_tenants; i++)
        if (d->tenants[i].active) weights += d->tenants[i].weight;
    return weights > 0 ? 1 / weights : 0;
}

// For the first waiting task of each tenant that is owed resources.
static void take_back(Drf *d, const ClusterView *v) {
    double unit = fair_share(d);
    for (uint32_t i = 0; i < d->n_tenants; i++) {
        DrfTenant *x = &d->tenants[i];
        uint32_t   slot = x->first;
        if (slot == CLUSTER_NONE || placed(d, slot) || !(x->share < unit) ||
            v->now - v->tasks[slot].since < d->cfg.patience_s * CLUSTER_SECOND)
            continue;
        uint32_t n = find_victims(d, v, unit);
        if (!plan_builder_preempt(&d->builder, slot, &v->tasks[slot].job, d->slots, n)) continue;
        x->first = d->next[slot];
        recount(d, v);
    }
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Drf *d = state;
    (void)max;
    if (v->n_waiting == 0) {
        d->due = INT64_MAX;
        return 0;
    }
    if (d->due == INT64_MAX) d->due = period_after(v->now, d->cfg.period_s * CLUSTER_SECOND);
    plan_builder_begin(&d->builder, v);
    tenant_reclaim(&d->builder, d->slots);
    observe(d, v);
    if (v->setup->quotas) recount(d, v);
    if (v->now >= d->due || v->setup->round > 0) {
        d->due = period_after(v->now, d->cfg.period_s * CLUSTER_SECOND);
        take_back(d, v);
    }
    fill(d, v);
    uint32_t n = plan_builder_write(&d->builder, out);
    out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = d->due};
    return n;
}

const ClusterPolicy cluster_policy_drf = {
    .name = "drf",
    .about = "smallest dominant share of GPUs, cores or memory first, by tenant",
    .paper = "DRF (NSDI 2011)",
    .knows = CLUSTER_BLIND,
    .preempts = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(DrfSettings),
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
