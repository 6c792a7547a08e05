// gavel: shares of time on each GPU type by an objective, followed in rounds
//
// 1. A job's throughput on a GPU type is the speed of its class there. An allocation is the
// fraction
//    of time that each job spends on each type. It is computed anew in every round (gavel_fill.h).
// 2. objective=max_min: all jobs rise to the same multiple of their fair throughput: what an equal
//    share of every type would give, per GPU, times the weight of the tenant.
//    objective=makespan: all rise to the same multiple of their work left, so that they end
//    together.
//    objective=sjf: jobs in ascending order of work left x GPUs get the types where they are
//    fastest, all of their time.
// 3. In a round a pair of job and type goes before others by its share of time over the time it has
//    already had there. GPUs of each type are granted along this order. A running job without a
//    grant is preempted for one with a grant; it changes its type only if the new one is
//    faster by a factor. Running jobs count `stay` times as much, because a stop costs a restart.
// 4. Between rounds free GPUs go to waiting jobs in the same order.
//
// The paper solves a linear program and may let two jobs share a GPU; here shares come from
// water-filling with prices, and jobs are alone on their GPUs.
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "contract/rate.h"
#include "policy/cluster/common/cluster_policy.h"
#include "policy/cluster/common/plan_builder.h"
#include "policy/cluster/common/priority_queue.h"
#include "policy/cluster/common/tenant_reclaim.h"
#include "policy/cluster/gavel/gavel_fill.h"
#include "policy/policies.h"

enum { TRIES = 256 };  // consecutive jobs that do not fit before a pass ends

#define SETTINGS(X)                                                                                \
    X(objective, string, "sjf", 1, 16, "max_min, makespan or sjf")                                 \
    X(period_s, int, 900, 1, 86400, "seconds of a round")                                          \
    X(stay, double, 2.0, 1.0, 1e6, "factor on the priority of running jobs")                       \
    X(faster, double, 1.5, 1.0, 1e6, "a job moves to a type that is faster by this factor")

typedef struct GavelSettings {
    SETTINGS(SETTING_FIELD)
} GavelSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(GavelSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

static const char *const objectives[] = {"max_min", "makespan", "sjf"};
typedef enum GavelObjective {
    GAVEL_MAX_MIN,
    GAVEL_MAKESPAN,
    GAVEL_SJF,
    GAVEL_OBJECTIVES
} GavelObjective;

typedef struct GavelTask {
    uint64_t id;                // of the job in this slot, plus 1; 0: none
    double   had[GAVEL_TYPES];  // seconds on each type
} GavelTask;

typedef struct Gavel {
    PlanBuilder    builder;
    GavelTask     *tasks;    // [n_slots]
    GavelJob      *jobs;     // [n_jobs] alive ones
    uint32_t      *slots;    // [n_jobs] of jobs, in the order of grants once sorted
    uint32_t      *type_of;  // [n_slots] granted type; GAVEL_TYPES: any; CLUSTER_NONE: no grant
    uint32_t      *job_of;   // [n_slots] index into jobs
    QueueNode     *nodes;    // [n_slots]
    uint32_t      *victims;  // [n_slots] running without a grant, last in the order first
    uint32_t       n_jobs, n_victims;
    uint32_t       server_of[GAVEL_TYPES];  // one of each type; CLUSTER_NONE: none
    uint32_t       most[GAVEL_TYPES];       // GPUs of the type in all
    double         room[GAVEL_TYPES];       // GPUs not granted yet
    GavelFill      fill;
    GavelObjective objective;
    GavelSettings  cfg;
    TimeNs         due, seen;
} Gavel;

static GavelObjective objective_of(const char *name) {
    GavelObjective o = 0;
    while (o < GAVEL_OBJECTIVES && strcmp(objectives[o], name) != 0) o++;
    return o;
}

static Err load(const ClusterSetup *s, const void *settings, Arena *a, const void **loaded) {
    const GavelSettings *cfg = settings;
    (void)s;
    (void)a;
    *loaded = NULL;
    if (objective_of(cfg->objective) < GAVEL_OBJECTIVES) return ERR_OK;
    return err_set(ERR_ARG, "objective=%.40s: choose max_min, makespan or sjf", cfg->objective);
}

static void lay_out(Gavel *g, const ClusterSetup *s, Carve *from) {
    plan_builder_carve(&g->builder, s, from);
    g->tasks = carve(from, GavelTask, s->n_slots);
    g->jobs = carve(from, GavelJob, s->n_slots);
    g->slots = carve(from, uint32_t, s->n_slots);
    g->type_of = carve(from, uint32_t, s->n_slots);
    g->job_of = carve(from, uint32_t, s->n_slots);
    g->nodes = carve(from, QueueNode, s->n_slots);
    g->victims = carve(from, uint32_t, s->n_slots);
}

CLUSTER_POLICY_STATE(Gavel)

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    Gavel *g = state_open(state, s);
    g->cfg = *(const GavelSettings *)settings;
    g->objective = objective_of(g->cfg.objective);
    CHECK(g->objective < GAVEL_OBJECTIVES);
    g->fill.n_types = s->n_types < GAVEL_TYPES ? s->n_types : GAVEL_TYPES;
    if (g->fill.n_types == 0) g->fill.n_types = 1;
    for (uint32_t t = 0; t < GAVEL_TYPES; t++) g->server_of[t] = CLUSTER_NONE;
    for (uint32_t i = s->n_servers; i-- > 0;) {
        uint32_t t = s->servers[i].type;
        g->server_of[t] = i;
        g->most[t] += s->servers[i].gpus;
    }
    g->due = INT64_MAX;
}

// A job's own servers have enough GPUs of the type.
static bool has_room(const ClusterSetup *s, const ClusterJob *j, uint32_t type) {
    uint64_t gpus = 0;
    for (uint32_t i = 0; i < s->n_servers; i++)
        if (s->servers[i].type == type && cluster_server_fits(s, j, i)) gpus += s->servers[i].gpus;
    return gpus >= j->gpus;
}

// Throughput of a job on a GPU type, relative to the profiles' first type; 0: it does not fit.
static double speed_on(const Gavel *g, const ClusterSetup *s, const ClusterJob *j, uint32_t type) {
    uint32_t   server = g->server_of[type];
    ClusterJob any = *j;
    any.servers = NULL;
    if (server == CLUSTER_NONE || !cluster_server_fits(s, &any, server) || j->gpus > g->most[type])
        return 0;
    if (j->servers != NULL && !has_room(s, j, type)) return 0;
    return s->profiles == NULL || j->class == CLUSTER_NONE ? 1 : rate_gpu_type(s, j, server);
}

static double left_s(const ClusterView *v, const ClusterTask *t) {
    TimeNs left = cluster_left(v, t);
    if (left < 0) left = cluster_held(v, t) + CLUSTER_SECOND;
    return (double)left / (double)CLUSTER_SECOND;
}

// An equal share of every type, per GPU; or the work left.
static double claim_of(const Gavel *g, const ClusterView *v, const ClusterTask *t,
                       const GavelJob *x) {
    double gpus = (double)v->setup->gpus, fair = 0;
    if (g->objective == GAVEL_MAKESPAN) return left_s(v, t);
    for (uint32_t k = 0; k < g->fill.n_types; k++) fair += x->speed[k] * g->most[k] / gpus;
    double weight = 1;
    if (t->job.tenant < v->setup->n_tenants) weight = v->setup->tenants[t->job.tenant].weight;
    return weight * fair / fmax(x->gpus, 1e-3);
}

static void add_job(Gavel *g, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    GavelJob          *x = &g->jobs[g->n_jobs];
    *x = (GavelJob){.gpus = (double)cluster_gpu_milli(&t->job) / CLUSTER_WHOLE_GPU};
    for (uint32_t k = 0; k < g->fill.n_types; k++)
        x->speed[k] = x->gpus > 0 ? speed_on(g, v->setup, &t->job, k) : 0;
    x->claim = claim_of(g, v, t, x);
    if (g->tasks[slot].id != t->job.id + 1) g->tasks[slot] = (GavelTask){.id = t->job.id + 1};
    g->job_of[slot] = g->n_jobs;
    g->slots[g->n_jobs++] = slot;
}

static void note_time(Gavel *g, const ClusterView *v) {
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        TimeNs             from = t->since > g->seen ? t->since : g->seen;
        uint32_t           type = v->setup->servers[t->slices[0].server].type;
        if (g->tasks[v->running[i]].id == t->job.id + 1)
            g->tasks[v->running[i]].had[type] += (double)(v->now - from) / (double)CLUSTER_SECOND;
    }
    g->seen = v->now;
}

static uint32_t type_now(const ClusterView *v, const ClusterTask *t) {
    return t->n_slices > 0 ? v->setup->servers[t->slices[0].server].type : GAVEL_TYPES;
}

// Priority of a job on a type: the time it is due over the time it had.
static double priority(const Gavel *g, const ClusterView *v, uint32_t slot, uint32_t type) {
    const ClusterTask *t = &v->tasks[slot];
    double             rounds = g->tasks[slot].had[type] / g->cfg.period_s;
    double             stay = type_now(v, t) == type ? g->cfg.stay : 1;
    return stay * g->jobs[g->job_of[slot]].share[type] / (1 + rounds);
}

// GAVEL_TYPES: it can run on none.
static uint32_t fastest_type(const Gavel *g, const GavelJob *x) {
    uint32_t best = GAVEL_TYPES;
    for (uint32_t k = 0; k < g->fill.n_types; k++)
        if (x->speed[k] > 0 && (best == GAVEL_TYPES || x->speed[k] > x->speed[best])) best = k;
    return best;
}

static uint32_t best_type(const Gavel *g, const ClusterView *v, uint32_t slot, double *most) {
    uint32_t best = GAVEL_TYPES;
    *most = 0;
    for (uint32_t k = 0; k < g->fill.n_types; k++) {
        double p = priority(g, v, slot, k);
        if (!(p > *most)) continue;
        *most = p;
        best = k;
    }
    return best < GAVEL_TYPES ? best : fastest_type(g, &g->jobs[g->job_of[slot]]);
}

static double service(const ClusterView *v, const ClusterTask *t) {
    return left_s(v, t) * (double)cluster_gpu_milli(&t->job);
}

// Sorts `slots` by priority and finds the wanted types.
static void sort_jobs(Gavel *g, const ClusterView *v) {
    PriorityQueue l = {g->nodes, CLUSTER_NONE};
    for (uint32_t i = 0; i < g->n_jobs; i++) {
        uint32_t           slot = g->slots[i];
        const ClusterTask *t = &v->tasks[slot];
        double             most, stay = t->state == CLUSTER_RUNNING ? g->cfg.stay : 1;
        g->type_of[slot] = best_type(g, v, slot, &most);
        SortKey key = {-most, g->objective == GAVEL_MAKESPAN ? -left_s(v, t) : (double)t->job.id};
        if (g->objective == GAVEL_SJF) key = (SortKey){service(v, t) / stay, (double)t->job.id};
        priority_queue_push(&l, slot, key, t->entry);
    }
    g->n_jobs = 0;
    for (uint32_t slot; (slot = priority_queue_pop(&l)) != CLUSTER_NONE;)
        g->slots[g->n_jobs++] = slot;
}

static bool by_service(const ClusterView *v, uint32_t a, uint32_t b) {
    return service(v, &v->tasks[a]) < service(v, &v->tasks[b]);
}

// Jobs in the order in which objective=sjf fills types.
static void order_for_fill(Gavel *g, const ClusterView *v) {
    for (uint32_t i = 1; i < g->n_jobs; i++) {
        uint32_t slot = g->slots[i], at = i;
        GavelJob x = g->jobs[i];
        for (; at > 0 && by_service(v, slot, g->slots[at - 1]); at--) {
            g->slots[at] = g->slots[at - 1];
            g->jobs[at] = g->jobs[at - 1];
        }
        g->slots[at] = slot;
        g->jobs[at] = x;
    }
    for (uint32_t i = 0; i < g->n_jobs; i++) g->job_of[g->slots[i]] = i;
}

static void allocate(Gavel *g, const ClusterView *v) {
    g->n_jobs = 0;
    for (uint32_t i = 0; i < v->n_running; i++) add_job(g, v, v->running[i]);
    for (uint32_t i = 0; i < v->n_waiting; i++) add_job(g, v, v->waiting[i]);
    for (uint32_t k = 0; k < g->fill.n_types; k++) g->fill.gpus[k] = g->most[k];
    if (g->objective == GAVEL_SJF) {
        order_for_fill(g, v);
        gavel_fill_in_order(&g->fill, g->jobs, g->n_jobs);
    } else {
        gavel_fill(&g->fill, g->jobs, g->n_jobs);
    }
    sort_jobs(g, v);
}

static bool is_firm(const ClusterView *v, const ClusterTask *t) {
    return t->state == CLUSTER_RUNNING &&
           (t->job.gpus == 0 || !cluster_may_preempt(v->setup, t, v->now));
}

static void take_room(Gavel *g, const ClusterView *v, const ClusterTask *t) {
    for (uint32_t i = 0; i < t->n_slices; i++)
        g->room[v->setup->servers[t->slices[i].server].type] -=
            t->slices[i].gpus * t->slices[i].gpu_milli / 1e3;
}

// The type that a job gets: where it runs unless the wanted one is much faster, the wanted one, or
// the fastest with room. CLUSTER_NONE: none.
static uint32_t grant_type(const Gavel *g, const ClusterView *v, uint32_t slot) {
    const GavelJob *x = &g->jobs[g->job_of[slot]];
    uint32_t now = type_now(v, &v->tasks[slot]), want = g->type_of[slot], best = CLUSTER_NONE;
    if (want == GAVEL_TYPES) return want;
    bool runs = now < GAVEL_TYPES && g->room[now] >= x->gpus;
    if (runs && x->speed[want] < g->cfg.faster * x->speed[now]) return now;
    if (g->room[want] >= x->gpus) return want;
    if (runs) return now;
    for (uint32_t k = 0; k < g->fill.n_types; k++)
        if (x->speed[k] > 0 && g->room[k] >= x->gpus &&
            (best == CLUSTER_NONE || x->speed[k] > x->speed[best]))
            best = k;
    return best;
}

static void grant(Gavel *g, const ClusterView *v) {
    for (uint32_t k = 0; k < g->fill.n_types; k++) g->room[k] = g->most[k];
    for (uint32_t i = 0; i < v->n_running; i++)
        if (is_firm(v, &v->tasks[v->running[i]])) take_room(g, v, &v->tasks[v->running[i]]);
    g->n_victims = 0;
    for (uint32_t i = 0; i < g->n_jobs; i++) {
        uint32_t           slot = g->slots[i];
        const ClusterTask *t = &v->tasks[slot];
        if (is_firm(v, t)) continue;
        uint32_t type = g->type_of[slot] = grant_type(g, v, slot);
        if (type < GAVEL_TYPES) g->room[type] -= g->jobs[g->job_of[slot]].gpus;
        if (type == CLUSTER_NONE && t->state == CLUSTER_RUNNING) g->victims[g->n_victims++] = slot;
    }
    for (uint32_t i = 0; i < g->n_victims / 2; i++) {
        uint32_t *a = &g->victims[i], *b = &g->victims[g->n_victims - 1 - i], x = *a;
        *a = *b;
        *b = x;
    }
}

static ClusterJob on_type(const ClusterView *v, uint32_t slot, uint32_t type) {
    ClusterJob j = v->tasks[slot].job;
    if (type < GAVEL_TYPES && j.gpus > 0) j.gpu_types = UINT32_C(1) << type;
    return j;
}

// To another type; if it does not fit there, it stays.
static void move(Gavel *g, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    ClusterJob         j = on_type(v, slot, g->type_of[slot]);
    plan_builder_stop(&g->builder, slot);
    if (plan_builder_place_as(&g->builder, slot, &j)) return;
    (void)plan_builder_put(&g->builder, slot, t->slices, t->n_slices);
}

static void carry_out(Gavel *g, const ClusterView *v) {
    uint32_t failed = 0;
    for (uint32_t i = 0; i < g->n_jobs && failed < TRIES; i++) {
        uint32_t           slot = g->slots[i], type = g->type_of[slot];
        const ClusterTask *t = &v->tasks[slot];
        uint32_t           has = 0;
        bool               runs = plan_builder_slices(&g->builder, slot, &has) != NULL;
        if (type == CLUSTER_NONE || is_firm(v, t)) continue;
        if (runs != (t->state == CLUSTER_RUNNING)) continue;  // changed by tenant_reclaim
        if (t->state == CLUSTER_RUNNING) {
            if (type < GAVEL_TYPES && type != type_now(v, t)) move(g, v, slot);
            continue;
        }
        ClusterJob j = on_type(v, slot, type);
        bool       placed = plan_builder_place_as(&g->builder, slot, &j) ||
                      plan_builder_preempt(&g->builder, slot, &j, g->victims, g->n_victims);
        failed = placed ? 0 : failed + 1;
    }
}

// On the wanted type, or else on the fastest with room.
static bool place_anywhere(Gavel *g, const ClusterView *v, uint32_t slot) {
    GavelJob x = g->jobs[g->job_of[slot]];
    uint32_t type = g->type_of[slot];
    if (type == CLUSTER_NONE) type = fastest_type(g, &x);
    for (; type < GAVEL_TYPES; type = fastest_type(g, &x)) {
        ClusterJob j = on_type(v, slot, type);
        if (plan_builder_place_as(&g->builder, slot, &j)) return true;
        x.speed[type] = 0;
    }
    return plan_builder_place(&g->builder, slot);
}

static void fill_free(Gavel *g, const ClusterView *v) {
    uint32_t failed = 0, n = 0;
    for (uint32_t i = 0; i < g->n_jobs && failed < TRIES; i++) {
        uint32_t slot = g->slots[i];
        if (v->tasks[slot].state != CLUSTER_WAITING) continue;
        if (plan_builder_slices(&g->builder, slot, &n) != NULL) continue;
        failed = place_anywhere(g, v, slot) ? 0 : failed + 1;
    }
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Gavel *g = state;
    (void)max;
    note_time(g, v);
    if (v->n_waiting == 0 && g->fill.n_types == 1) {
        g->due = INT64_MAX;
        return 0;
    }
    if (g->due == INT64_MAX) g->due = period_after(v->now, g->cfg.period_s * CLUSTER_SECOND);
    plan_builder_begin(&g->builder, v);
    tenant_reclaim(&g->builder, g->victims);
    allocate(g, v);
    if (v->now >= g->due || v->setup->round > 0) {
        g->due = period_after(v->now, g->cfg.period_s * CLUSTER_SECOND);
        grant(g, v);
        carry_out(g, v);
    }
    fill_free(g, v);
    uint32_t n = plan_builder_write(&g->builder, out);
    out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = g->due};
    return n;
}

const ClusterPolicy cluster_policy_gavel = {
    .name = "gavel",
    .about = "shares of time on each GPU type by an objective, followed in rounds",
    .paper = "Gavel (OSDI 2020)",
    .knows = CLUSTER_ORACLE,
    .preempts = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(GavelSettings),
    .load = load,
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
