#include "policy/cluster/common/elastic.h"

#include <string.h>

enum { POINTS = PROFILE_ALLOC_LEVELS + 2 };

typedef struct LevelClimb {
    uint32_t slot, gpus, n, at;
    double   cores[POINTS], mib[POINTS];  // per GPU; [0]: the base
    double   rate[POINTS];
} LevelClimb;

void elastic_carve(ElasticScaling *g, const ClusterSetup *s, Carve *from) {
    g->seen = carve(from, ElasticSeen, s->n_servers);
    g->dirty = carve(from, bool, s->n_servers);
    g->first = carve(from, uint32_t, s->n_servers);
    g->next = carve(from, uint32_t, s->n_slots);
}

static const ClusterProfile *profile_of(const ClusterSetup *s, const ClusterJob *j) {
    bool none = s->profiles == NULL || s->gpus_only || j->gpus == 0 || j->class == CLUSTER_NONE;
    return none ? NULL : &s->profiles->at[j->class];
}

static bool resize(PlanBuilder *d, uint32_t slot, double cores_milli, double mib) {
    return plan_builder_resize(d, slot, d->view->tasks[slot].job.gpu_milli, cores_milli, mib);
}

bool elastic_may(const PlanBuilder *d, uint32_t slot) {
    uint32_t            n = 0;
    const ClusterSlice *s = plan_builder_slices(d, slot, &n);
    return n == 1 && s->gpu_milli == d->view->tasks[slot].job.gpu_milli &&
           profile_of(d->view->setup, &d->view->tasks[slot].job) != NULL;
}

void elastic_base(const ElasticScaling *g, const ClusterSetup *s, const ClusterJob *j,
                  double *cores_milli, double *mib) {
    const ClusterProfile *p = profile_of(s, j);
    double                all = j->gpus > 0 ? j->gpus : 1;
    *cores_milli = j->cores_milli / all;
    *mib = j->memory_mib / all;
    if (p == NULL || !g->lean || j->gpus > s->most_gpus) return;
    double to_cores = 1e3 * rate_cores_scale(s->profiles, j),
           to_mib = 1024 * rate_memory_scale(s->profiles, j);
    for (uint32_t i = 0; i < p->levels.n; i++) {
        const AllocLevel *r = &p->levels.at[i];
        if (r->share < 1) continue;
        if (r->cores * to_cores < *cores_milli) *cores_milli = r->cores * to_cores;
        if (r->gb * to_mib < *mib) *mib = r->gb * to_mib;
        return;
    }
}

static void shrink(const ElasticScaling *g, PlanBuilder *d, uint32_t slot) {
    uint32_t n = 0;
    double   cores = 0, mib = 0;
    if (!elastic_may(d, slot)) return;
    const ClusterSlice *s = plan_builder_slices(d, slot, &n);
    elastic_base(g, d->view->setup, &d->view->tasks[slot].job, &cores, &mib);
    uint32_t base = plan_builder_amount(s->gpus * cores),
             least = plan_builder_amount(s->gpus * mib);
    if (s->cores_milli <= base && s->memory_mib <= least) return;
    (void)resize(d, slot, cores, mib);
}

void elastic_shrink(ElasticScaling *g, PlanBuilder *d) {
    const ClusterSetup *s = d->view->setup;
    if (s->profiles == NULL || s->gpus_only) return;
    for (uint32_t i = 0; i < d->view->n_running; i++) shrink(g, d, d->view->running[i]);
}

static void add_point(LevelClimb *c, const ClusterProfiles *p, const ClusterJob *j, double cores,
                      double mib) {
    c->cores[c->n] = cores;
    c->mib[c->n] = mib;
    c->rate[c->n++] = rate_resources(p, j, j->gpus, plan_builder_amount(j->gpus * cores),
                                     plan_builder_amount(j->gpus * mib));
}

static LevelClimb climber(const ElasticScaling *g, const ClusterView *v, uint32_t slot) {
    const ClusterJob      *j = &v->tasks[slot].job;
    const ClusterProfile  *p = profile_of(v->setup, j);
    LevelClimb             c = {.slot = slot, .gpus = j->gpus};
    const ClusterProfiles *of = v->setup->profiles;
    double                 cores = 0, mib = 0, all = j->gpus > 0 ? j->gpus : 1;
    elastic_base(g, v->setup, j, &cores, &mib);
    add_point(&c, of, j, cores, mib);
    for (uint32_t i = 0; i < p->levels.n && c.n < POINTS; i++)
        if (p->levels.at[i].share >= 1)
            add_point(&c, of, j, p->levels.at[i].cores * 1e3 * rate_cores_scale(of, j),
                      p->levels.at[i].gb * 1024 * rate_memory_scale(of, j));
    if (c.n < POINTS) add_point(&c, of, j, j->cores_milli / all, j->memory_mib / all);
    return c;
}

// Takes the step with the most gain per fraction of the server's cores or memory, whichever is
// larger.
static bool step(const ElasticScaling *g, PlanBuilder *d, uint32_t server, LevelClimb *c,
                 uint32_t n) {
    const ClusterServer *x = &d->view->setup->servers[server];
    double               all_cores = x->cores_milli + 1.0, all_mib = x->memory_mib + 1.0, best = 0;
    uint32_t             best_task = n, to = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < c[i].n; k++) {
            double cores = (c[i].cores[k] - c[i].cores[c[i].at]) * c[i].gpus;
            double mib = (c[i].mib[k] - c[i].mib[c[i].at]) * c[i].gpus;
            double from = c[i].rate[c[i].at], now = c[i].rate[k];
            if (!(now > from + 1e-9) || cores < 0 || mib < 0) continue;
            if (cores > d->free.cores[server] || mib > d->free.memory[server]) continue;
            double part = cores / all_cores > mib / all_mib ? cores / all_cores : mib / all_mib;
            double worth = g->gain(g->self, d->view, c[i].slot, from, now) / (part + 1e-9);
            if (!(worth > best)) continue;
            best = worth;
            best_task = i;
            to = k;
        }
    if (best_task == n) return false;
    c[best_task].at = to;
    return resize(d, c[best_task].slot, c[best_task].cores[to], c[best_task].mib[to]);
}

static uint32_t add_task(const ElasticScaling *g, PlanBuilder *d, uint32_t server, uint32_t slot,
                         LevelClimb *c, uint32_t n) {
    uint32_t            k = 0;
    const ClusterSlice *s = plan_builder_slices(d, slot, &k);
    if (n == ELASTIC_TASKS || !elastic_may(d, slot) || s->server != server) return n;
    c[n] = climber(g, d->view, slot);
    c[n].gpus = s->gpus;
    return n + resize(d, slot, c[n].cores[0], c[n].mib[0]);
}

// Shrinks all to the base, then takes steps up while resources last.
static void climb(ElasticScaling *g, PlanBuilder *d, uint32_t server) {
    const ServerState *x = &d->view->servers[server];
    LevelClimb         c[ELASTIC_TASKS];
    uint32_t           n = 0;
    for (uint32_t i = 0; i < x->n_residents; i++) n = add_task(g, d, server, x->residents[i], c, n);
    for (uint32_t t = g->first[server]; t != CLUSTER_NONE; t = g->next[t])
        n = add_task(g, d, server, t, c, n);
    while (step(g, d, server, c, n)) continue;
}

// An unchanged server: shrunk tasks get back what they had.
static void restore(PlanBuilder *d, uint32_t server) {
    const ServerState *x = &d->view->servers[server];
    for (uint32_t i = 0; i < x->n_residents; i++) {
        uint32_t            slot = x->residents[i], n = 0;
        const ClusterSlice *now = plan_builder_slices(d, slot, &n),
                           *had = d->view->tasks[slot].slices;
        if (now == had || !elastic_may(d, slot)) continue;
        (void)resize(d, slot, (double)had->cores_milli / had->gpus,
                     (double)had->memory_mib / had->gpus);
    }
}

// Marks servers that tasks leave or come to, and lists the tasks that come.
static void find_moves(ElasticScaling *g, PlanBuilder *d) {
    const ClusterView *v = d->view;
    for (uint32_t i = 0; i < v->setup->n_servers; i++) g->first[i] = CLUSTER_NONE;
    for (uint32_t i = d->n_touched; i-- > 0;) {
        uint32_t            slot = d->touched[i], n = 0;
        const ClusterTask  *t = &v->tasks[slot];
        const ClusterSlice *s = plan_builder_slices(d, slot, &n);
        if (!plan_builder_moves(d, slot)) continue;
        for (uint32_t k = 0; k < t->n_slices; k++) g->dirty[t->slices[k].server] = true;
        for (uint32_t k = 0; k < n; k++) g->dirty[s[k].server] = true;
        if (n != 1 || (t->n_slices == 1 && t->slices[0].server == s->server)) continue;
        g->next[slot] = g->first[s->server];
        g->first[s->server] = slot;
    }
}

void elastic_run(ElasticScaling *g, PlanBuilder *d) {
    const ClusterView *v = d->view;
    if (v->setup->profiles == NULL || v->setup->gpus_only) return;
    find_moves(g, d);
    for (uint32_t i = 0; i < v->setup->n_servers; i++) {
        const ServerState *x = &v->servers[i];
        ElasticSeen       *seen = &g->seen[i];
        bool changed = seen->cores_milli != x->cores_milli || seen->memory_mib != x->memory_mib ||
                       g->dirty[i] || (v->reason & CLUSTER_BELIEF) != 0;
        if (changed)
            climb(g, d, i);
        else
            restore(d, i);
        *seen = (ElasticSeen){d->free.cores[i], d->free.memory[i]};
        g->dirty[i] = false;
    }
}
