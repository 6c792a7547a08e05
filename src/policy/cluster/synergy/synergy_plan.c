#include "policy/cluster/synergy/synergy_plan.h"

#include <string.h>

void synergy_plan_carve(SynergyPlan *p, const ClusterSetup *s, Carve *from) {
    p->setup = s;
    p->tasks = carve(from, SynergyTask, s->n_slots);
    p->servers = carve(from, SynergyServer, s->n_servers);
    p->jobs = carve(from, uint32_t, (size_t)s->n_servers * s->most_gpus);
    p->slices = carve(from, ClusterSlice, s->gpus);
    p->here = carve(from, uint32_t, s->n_servers);
    p->where = carve(from, uint32_t, s->n_servers);
}

void synergy_plan_begin(SynergyPlan *p, const ClusterView *v) {
    p->view = v;
    memset(p->servers, 0, p->setup->n_servers * sizeof *p->servers);
    p->n_slices = 0;
    p->n_free = (uint32_t)p->setup->gpus;
}

static uint32_t free_gpus(const SynergyPlan *p, uint32_t i) {
    return p->setup->servers[i].gpus - p->servers[i].used.gpus;
}

static bool fits(const SynergyPlan *p, uint32_t i, const GangDemand *d) {
    const SynergyServer *r = &p->servers[i];
    const ClusterServer *s = &p->setup->servers[i];
    return s->gpus >= r->used.gpus + r->hold.gpus + d->gpus &&
           s->cores_milli >= r->used.cores_milli + r->hold.cores_milli + d->cores_milli &&
           s->memory_mib >= r->used.memory_mib + r->hold.memory_mib + d->memory_mib;
}

static void add(GangDemand *to, const GangDemand *d) {
    to->gpus += d->gpus;
    to->cores_milli += d->cores_milli;
    to->memory_mib += d->memory_mib;
}

static void note_server(SynergyPlan *p, uint32_t server, uint32_t gpus) {
    p->here[server] = gpus;
    p->where[p->n_where++] = server;
}

// May the job run there?
static bool allows(const SynergyPlan *p, uint32_t slot, uint32_t server) {
    const uint64_t *only = p->tasks[slot].servers;
    return only == NULL || (only[server / 64] >> server % 64 & 1) != 0;
}

static bool put_on_one(SynergyPlan *p, uint32_t slot, const GangDemand *d) {
    uint32_t best = CLUSTER_NONE;
    for (uint32_t i = 0; i < p->setup->n_servers; i++)
        if (allows(p, slot, i) && fits(p, i, d) &&
            (best == CLUSTER_NONE || free_gpus(p, i) < free_gpus(p, best)))
            best = i;
    if (best != CLUSTER_NONE) note_server(p, best, d->gpus);
    return best != CLUSTER_NONE;
}

// GPU by GPU, filling the servers with the fewest free GPUs first.
static bool put_spread(SynergyPlan *p, uint32_t slot, const GangDemand *d) {
    GangDemand one = gang_demand_part(d, 1);
    uint32_t   left = d->gpus;
    for (uint32_t free = 1; left > 0 && free <= p->setup->most_gpus; free++)
        for (uint32_t i = 0; left > 0 && i < p->setup->n_servers; i++)
            for (; allows(p, slot, i) && free_gpus(p, i) == free && left > 0 && fits(p, i, &one);
                 left--) {
                add(&p->servers[i].hold, &one);
                p->here[i]++;
            }
    for (uint32_t i = 0; i < p->setup->n_servers; i++) {
        p->servers[i].hold = (GangDemand){0};
        if (left > 0) p->here[i] = 0;
        if (p->here[i] > 0) note_server(p, i, p->here[i]);
    }
    return left == 0;
}

static bool put_where_it_runs(SynergyPlan *p, uint32_t slot, const GangDemand *d) {
    const ClusterTask *t = &p->view->tasks[slot];
    for (uint32_t i = 0; i < t->n_slices; i++) {
        GangDemand part = gang_demand_part(d, t->slices[i].gpus);
        if (!fits(p, t->slices[i].server, &part)) return false;
    }
    for (uint32_t i = 0; i < t->n_slices; i++)
        note_server(p, t->slices[i].server, t->slices[i].gpus);
    return t->n_slices > 0;
}

static bool put(SynergyPlan *p, uint32_t slot, const GangDemand *d, bool spread) {
    if (p->view == NULL) return (d->gpus > 1 && put_on_one(p, slot, d)) || put_spread(p, slot, d);
    if (put_where_it_runs(p, slot, d) || put_on_one(p, slot, d)) return true;
    return spread && put_spread(p, slot, d);
}

static void take(SynergyPlan *p, ClusterSlice *s, const GangDemand *d) {
    GangDemand part = gang_demand_part(d, s->gpus);
    s->cores_milli = part.cores_milli;
    s->memory_mib = part.memory_mib;
    add(&p->servers[s->server].used, &part);
}

static bool place(SynergyPlan *p, uint32_t slot, const GangDemand *d, bool spread) {
    SynergyTask *t = &p->tasks[slot];
    p->n_where = 0;
    if (!put(p, slot, d, spread)) return false;
    t->first = p->n_slices;
    for (uint32_t k = 0; k < p->n_where; k++) {
        uint32_t i = p->where[k];
        p->slices[p->n_slices] = (ClusterSlice){.server = i, .gpus = p->here[i]};
        take(p, &p->slices[p->n_slices++], d);
        p->jobs[(size_t)i * p->setup->most_gpus + p->servers[i].n++] = slot;
        p->here[i] = 0;
    }
    t->n = p->n_slices - t->first;
    p->n_free -= d->gpus;
    return true;
}

// Of a task that shares GPUs, which another policy started, only cores and memory are counted.
void synergy_plan_keep(SynergyPlan *p, const ClusterTask *t, uint32_t slot) {
    SynergyTask *x = &p->tasks[slot];
    bool         whole = t->slices->gpu_milli == CLUSTER_WHOLE_GPU;
    x->first = p->n_slices;
    x->n = whole ? t->n_slices : 0;
    for (uint32_t k = 0; k < t->n_slices; k++) {
        const ClusterSlice *s = &t->slices[k];
        GangDemand          d = {whole ? s->gpus : 0, s->cores_milli, s->memory_mib};
        add(&p->servers[s->server].used, &d);
        if (!whole) continue;
        p->slices[p->n_slices++] = *s;
        p->jobs[(size_t)s->server * p->setup->most_gpus + p->servers[s->server].n++] = slot;
        p->n_free -= s->gpus;
    }
}

static bool above_share(const GangDemand *d, const GangDemand *share) {
    return d->cores_milli > share->cores_milli || d->memory_mib > share->memory_mib;
}

static GangDemand held_by(const SynergyPlan *p, const SynergyTask *t) {
    GangDemand d = {0};
    for (uint32_t i = 0; i < t->n; i++) {
        const ClusterSlice *s = &p->slices[t->first + i];
        add(&d, &(GangDemand){s->gpus, s->cores_milli, s->memory_mib});
    }
    return d;
}

// Fewer servers first, then more cores per GPU, then more memory per GPU.
static bool gives_before(const SynergyPlan *p, uint32_t a, uint32_t b) {
    const SynergyTask *x = &p->tasks[a], *y = &p->tasks[b];
    GangDemand         u = held_by(p, x), v = held_by(p, y);
    if (x->n != y->n) return x->n < y->n;
    uint64_t cores_u = (uint64_t)u.cores_milli * v.gpus, cores_v = (uint64_t)v.cores_milli * u.gpus;
    if (cores_u != cores_v) return cores_u > cores_v;
    return (uint64_t)u.memory_mib * v.gpus > (uint64_t)v.memory_mib * u.gpus;
}

static void sort_by_giving(SynergyPlan *p, uint32_t *jobs, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        uint32_t x = jobs[i], at = i;
        for (; at > 0 && gives_before(p, x, jobs[at - 1]); at--) jobs[at] = jobs[at - 1];
        jobs[at] = x;
    }
}

static void give_back(SynergyPlan *p, uint32_t slot) {
    SynergyTask *t = &p->tasks[slot];
    GangDemand   share = gang_demand_share(p->setup, t->best.gpus), d = t->best;
    if (above_share(&d, &share)) {
        d = share;
        t->speed = 1;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        ClusterSlice *s = &p->slices[t->first + i];
        GangDemand   *used = &p->servers[s->server].used;
        used->gpus -= s->gpus;
        used->cores_milli -= s->cores_milli;
        used->memory_mib -= s->memory_mib;
        take(p, s, &d);
    }
}

static uint32_t excess(uint32_t a, uint32_t b) { return a > b ? a - b : 0; }

// Walks a server's jobs until what they hold beyond their shares covers what is missing there. All
// walked jobs are reset to their share, also those with nothing to give.
static void squeeze(SynergyPlan *p, uint32_t i, const GangDemand *d) {
    const ClusterServer *s = &p->setup->servers[i];
    SynergyServer       *r = &p->servers[i];
    uint32_t            *jobs = p->jobs + (size_t)i * p->setup->most_gpus, walked = 0;
    uint32_t             gpus = excess(r->used.gpus + d->gpus, s->gpus);
    uint32_t             cores = excess(r->used.cores_milli + d->cores_milli, s->cores_milli);
    uint32_t             memory = excess(r->used.memory_mib + d->memory_mib, s->memory_mib);
    if (gpus + cores + memory > 0) sort_by_giving(p, jobs, r->n);
    for (; gpus + cores + memory > 0 && walked < r->n; walked++) {
        const SynergyTask  *t = &p->tasks[jobs[walked]];
        const ClusterSlice *x = &p->slices[t->first];
        while (x->server != i) x++;
        GangDemand share = gang_demand_share(p->setup, x->gpus);
        cores = excess(cores, excess(x->cores_milli, share.cores_milli));
        memory = excess(memory, excess(x->memory_mib, share.memory_mib));
    }
    for (uint32_t k = 0; k < walked; k++) give_back(p, jobs[k]);
}

static void make_room(SynergyPlan *p, uint32_t slot, const GangDemand *d) {
    uint32_t left = d->gpus;
    for (uint32_t i = 0; d->gpus > 1 && i < p->setup->n_servers; i++)
        if (allows(p, slot, i) && free_gpus(p, i) >= left) {
            squeeze(p, i, d);
            return;
        }
    for (uint32_t free = 1; left > 0 && free <= p->setup->most_gpus; free++)
        for (uint32_t i = 0; left > 0 && i < p->setup->n_servers; i++) {
            if (!allows(p, slot, i) || free_gpus(p, i) != free) continue;
            uint32_t   here = free < left ? free : left;
            GangDemand part = gang_demand_part(d, here);
            squeeze(p, i, &part);
            left -= here;
        }
}

// A gang is spread over servers only if it is wider than one, or where moving is free.
void synergy_plan_add(SynergyPlan *p, uint32_t slot) {
    SynergyTask *t = &p->tasks[slot];
    GangDemand   share = gang_demand_share(p->setup, t->best.gpus);
    bool         spread = p->view == NULL || t->best.gpus > p->setup->most_gpus;
    if (p->n_free < t->best.gpus) return;
    if (p->mode == SYNERGY_FAIR) (void)place(p, slot, &share, true);
    if (p->mode != SYNERGY_FAIR && place(p, slot, &t->best, spread)) return;
    if (p->mode != SYNERGY_TUNE) return;
    GangDemand d = t->best;
    if (above_share(&d, &share)) {
        d = share;
        t->speed = 1;
        if (place(p, slot, &d, spread)) return;
    }
    make_room(p, slot, &d);
    (void)place(p, slot, &d, true);
}

static uint32_t lesser(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Additional cores and memory per GPU available on the slice's server, up to the best demand.
static GangDemand spare(const SynergyPlan *p, const ClusterSlice *s, const GangDemand *best) {
    const ClusterServer *x = &p->setup->servers[s->server];
    const GangDemand    *used = &p->servers[s->server].used;
    GangDemand           want = gang_demand_part(best, s->gpus);
    uint32_t             cores = excess(x->cores_milli, used->cores_milli);
    uint32_t             memory = excess(x->memory_mib, used->memory_mib);
    return (GangDemand){1, lesser(cores, excess(want.cores_milli, s->cores_milli)) / s->gpus,
                        lesser(memory, excess(want.memory_mib, s->memory_mib)) / s->gpus};
}

void synergy_plan_raise(SynergyPlan *p, uint32_t slot) {
    SynergyTask *t = &p->tasks[slot];
    GangDemand   more = {0, UINT32_MAX, UINT32_MAX};
    for (uint32_t i = 0; i < t->n; i++) {
        GangDemand d = spare(p, &p->slices[t->first + i], &t->best);
        more.cores_milli = lesser(more.cores_milli, d.cores_milli);
        more.memory_mib = lesser(more.memory_mib, d.memory_mib);
    }
    if (t->n == 0 || more.cores_milli + more.memory_mib == 0) return;
    for (uint32_t i = 0; i < t->n; i++) {
        ClusterSlice *s = &p->slices[t->first + i];
        GangDemand    part = {0, more.cores_milli * s->gpus, more.memory_mib * s->gpus};
        s->cores_milli += part.cores_milli;
        s->memory_mib += part.memory_mib;
        add(&p->servers[s->server].used, &part);
    }
}
