// fgd: fragmentation gradient descent
//
// Free GPUs are fragmented for a job that their server cannot hold: too few cores, too small a free
// part of each GPU, another type. A job goes where the expected fragmentation, for a job drawn from
// those seen so far, grows least. Without preemption.
#include <string.h>

#include "policy/cluster/common/cluster_policy.h"
#include "policy/cluster/common/plan_builder.h"
#include "policy/cluster/fgd.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(backfill, bool, true, 0, 1, "jobs behind one that does not fit may start first")             \
    X(shapes, int, 100, 1, FGD_SHAPES, "most frequent job shapes that count")

typedef struct FgdSettings {
    SETTINGS(SETTING_FIELD)
} FgdSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(FgdSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct FgdServer {
    uint32_t gpu_milli, cores_milli, memory_mib;  // free, at the last update
    double   fragmentation;                       // at that time
} FgdServer;

typedef struct Fgd {
    FgdMix      mix;
    FgdSettings cfg;
    PlanBuilder builder;
    FgdServer  *servers;
    uint32_t   *all, *freed;  // servers: every one; those that changed
    uint32_t    n_freed;
    uint64_t    seen, tried;  // last entry numbers: counted in the mix, tried on all servers
    uint32_t    most[32];     // largest server by GPU type, in GPUs
} Fgd;

typedef struct FgdPlace {
    uint32_t server;
    uint64_t mask;
    double   growth;
    uint32_t free;
} FgdPlace;

static void lay_out(Fgd *f, const ClusterSetup *s, Carve *from) {
    f->servers = carve(from, FgdServer, s->n_servers);
    f->all = carve(from, uint32_t, s->n_servers);
    f->freed = carve(from, uint32_t, s->n_servers);
    plan_builder_carve(&f->builder, s, from);
}

CLUSTER_POLICY_STATE(Fgd)

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    Fgd *f = state_open(state, s);
    f->cfg = *(const FgdSettings *)settings;
    for (uint32_t i = 0; i < s->n_servers; i++) {
        uint32_t *most = &f->most[s->servers[i].type % 32];
        f->all[i] = i;
        f->servers[i].gpu_milli = UINT32_MAX;
        if (s->servers[i].gpus > *most) *most = s->servers[i].gpus;
    }
}

static FgdFree free_of(const Fgd *f, uint32_t server) {
    const FreeResources *x = &f->builder.free;
    const ClusterServer *s = &x->view->setup->servers[server];
    FgdFree              r = {.cores_milli = x->cores[server],
                              .memory_mib = x->memory[server],
                              .server = server,
                              .type = s->type,
                              .n = s->gpus};
    for (uint32_t g = 0; g < s->gpus; g++) r.parts[g] = x->parts[x->first[server] + g];
    return r;
}

static void update_server(Fgd *f, uint32_t server) {
    FgdFree    r = free_of(f, server);
    FgdServer *x = &f->servers[server];
    *x = (FgdServer){.cores_milli = r.cores_milli,
                     .memory_mib = r.memory_mib,
                     .fragmentation = fgd_mix_fragmentation(&f->mix, &r)};
    for (uint32_t g = 0; g < r.n; g++) x->gpu_milli += r.parts[g];
}

// Counts new jobs and finds servers with changed free resources.
static void update(Fgd *f, const ClusterView *v) {
    uint32_t from = waiting_since(v, f->seen);
    for (; from < v->n_waiting; from++) {
        fgd_mix_count(&f->mix, v->setup, &v->tasks[v->waiting[from]].job);
        f->seen = v->tasks[v->waiting[from]].entry;
    }
    bool reweighted = fgd_mix_update(&f->mix, (uint32_t)f->cfg.shapes);
    f->n_freed = 0;
    for (uint32_t i = 0; i < v->setup->n_servers; i++) {
        const ServerState *s = &v->servers[i];
        const FgdServer   *x = &f->servers[i];
        bool changed = s->gpu_milli != x->gpu_milli || s->cores_milli != x->cores_milli ||
                       s->memory_mib != x->memory_mib;
        if (changed) f->freed[f->n_freed++] = i;
        if (changed || reweighted) update_server(f, i);
    }
}

static bool has_part(const ClusterSlice *s, uint32_t n, uint32_t server, uint64_t gpu) {
    for (uint32_t i = 0; i < n; i++)
        if (s[i].server == server && (s[i].mask & gpu) != 0) return true;
    return false;
}

// The GPU's memory holds the job together with all tasks that have a part of the GPU.
static bool memory_fits(const Fgd *f, const ClusterView *v, const ClusterJob *j, uint32_t server,
                        uint64_t gpu) {
    const ServerState *s = &v->servers[server];
    uint32_t           n, class = j->class;
    if (v->setup->profiles == NULL || class == CLUSTER_NONE) return true;
    for (uint32_t i = 0; i < s->n_residents + f->builder.n_touched; i++) {
        bool     resident = i < s->n_residents;
        uint32_t slot = resident ? s->residents[i] : f->builder.touched[i - s->n_residents];
        const ClusterSlice *has = plan_builder_slices(&f->builder, slot, &n);
        uint32_t            other = v->tasks[slot].job.class;
        if (other == CLUSTER_NONE || !has_part(has, n, server, gpu)) continue;
        if (!(profile_pair(v->setup->profiles, class, other) > 0)) return false;
        if (!(profile_pair(v->setup->profiles, other, class) > 0)) return false;
    }
    return true;
}

static void consider(const Fgd *f, const ClusterJob *j, FgdFree r, uint32_t server, uint64_t mask,
                     FgdPlace *best) {
    const FgdServer *x = &f->servers[server];
    r.cores_milli -= j->cores_milli;
    r.memory_mib -= j->memory_mib;
    for (uint64_t m = mask; m != 0; m &= m - 1) {
        uint16_t *p = &r.parts[__builtin_ctzll(m)];
        *p = (uint16_t)(*p - j->gpu_milli);
    }
    double growth = fgd_mix_fragmentation(&f->mix, &r) - x->fragmentation, even = 1e-6;
    bool   less = growth < best->growth - even;
    if (!less && (growth > best->growth + even || x->gpu_milli >= best->free)) return;
    *best = (FgdPlace){server, mask, growth, x->gpu_milli};
}

static bool first_whole(const FgdFree *r, uint32_t gpu) {
    for (uint32_t g = 0; g < gpu; g++)
        if (r->parts[g] == CLUSTER_WHOLE_GPU) return false;
    return true;
}

// Every GPU with enough free; of the whole free ones only the first, as they are equal.
static void try_parts(const Fgd *f, const ClusterView *v, const ClusterJob *j, uint32_t server,
                      FgdPlace *best) {
    FgdFree r = free_of(f, server);
    for (uint32_t g = 0; g < r.n; g++) {
        uint64_t gpu = UINT64_C(1) << g;
        if (r.parts[g] < j->gpu_milli) continue;
        bool good = r.parts[g] == CLUSTER_WHOLE_GPU ? first_whole(&r, g)
                                                    : memory_fits(f, v, j, server, gpu);
        if (good) consider(f, j, r, server, gpu, best);
    }
}

static void try_whole(const Fgd *f, const ClusterJob *j, uint32_t server, FgdPlace *best) {
    FgdFree  r = free_of(f, server);
    uint64_t mask = 0;
    uint32_t left = j->gpus;
    for (uint32_t g = 0; g < r.n && left > 0; g++) {
        if (r.parts[g] < CLUSTER_WHOLE_GPU) continue;
        mask |= UINT64_C(1) << g;
        left--;
    }
    if (left == 0) consider(f, j, r, server, mask, best);
}

static void try_server(const Fgd *f, const ClusterView *v, const ClusterJob *j, uint32_t server,
                       FgdPlace *best) {
    const FreeResources *x = &f->builder.free;
    if (x->cores[server] < j->cores_milli || x->memory[server] < j->memory_mib) return;
    if (!cluster_server_fits(v->setup, j, server)) return;
    if (j->gpus == 1 && j->gpu_milli < CLUSTER_WHOLE_GPU)
        try_parts(f, v, j, server, best);
    else if (x->gpus[server] >= j->gpus)
        try_whole(f, j, server, best);
}

static bool is_wide(const Fgd *f, const ClusterView *v, const ClusterJob *j) {
    if (j->servers != NULL) return j->gpus > cluster_largest(v->setup, j);
    uint32_t most = j->gpu_types == 0 ? v->setup->most_gpus : 0;
    for (uint32_t t = 0; j->gpu_types != 0 && t < 32; t++)
        if ((j->gpu_types >> t & 1) != 0 && f->most[t] > most) most = f->most[t];
    return j->gpus > most;
}

static bool place_wide(Fgd *f, uint32_t slot) {
    uint32_t n;
    if (!plan_builder_place(&f->builder, slot)) return false;
    const ClusterSlice *s = plan_builder_slices(&f->builder, slot, &n);
    for (uint32_t i = 0; i < n; i++) update_server(f, s[i].server);
    return true;
}

static bool place(Fgd *f, const ClusterView *v, uint32_t slot, const uint32_t *where, uint32_t n) {
    const ClusterJob *j = &v->tasks[slot].job;
    FgdPlace          best = {.server = CLUSTER_NONE, .growth = 1e300};
    if (is_wide(f, v, j)) return place_wide(f, slot);
    for (uint32_t i = 0; i < n; i++) try_server(f, v, j, where[i], &best);
    if (best.server == CLUSTER_NONE) return false;
    ClusterSlice s = {.server = best.server,
                      .mask = best.mask,
                      .gpus = j->gpus,
                      .gpu_milli = j->gpu_milli,
                      .cores_milli = j->cores_milli,
                      .memory_mib = j->memory_mib};
    if (!plan_builder_put(&f->builder, slot, &s, 1)) return false;
    update_server(f, best.server);
    return true;
}

// A task that was tried before can only fit on servers that changed since, unless its own did.
static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Fgd *f = state;
    (void)max;
    if (v->n_waiting == 0) return 0;
    plan_builder_begin(&f->builder, v);
    update(f, v);
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        uint64_t entry = v->tasks[v->waiting[i]].entry;
        bool     again = entry <= f->tried && (v->reason & CLUSTER_SERVERS) == 0;
        bool     placed = place(f, v, v->waiting[i], again ? f->freed : f->all,
                            again ? f->n_freed : v->setup->n_servers);
        if (entry > f->tried) f->tried = entry;
        if (!placed && !f->cfg.backfill) break;
    }
    return plan_builder_write(&f->builder, out);
}

const ClusterPolicy cluster_policy_fgd = {
    .name = "fgd",
    .about = "each job where the free GPUs fragment least for jobs like those seen",
    .paper = "Fragmentation gradient descent (ATC 2023)",
    .knows = CLUSTER_BLIND,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(FgdSettings),
    .state_size = state_size,
    .init = init,
    .decide = decide,
};

static FgdShape shape_of(const ClusterSetup *s, const ClusterJob *j) {
    FgdShape x = {.gpus = j->gpus,
                  .gpu_milli = j->gpu_milli,
                  .gpu_types = j->gpu_types,
                  .cores_milli = j->cores_milli,
                  .memory_mib = j->memory_mib,
                  .servers = j->servers};
    if (j->gpus <= s->most_gpus) return x;
    x.gpus = s->most_gpus;
    x.cores_milli = (uint32_t)((uint64_t)j->cores_milli * x.gpus / j->gpus);
    x.memory_mib = (uint32_t)((uint64_t)j->memory_mib * x.gpus / j->gpus);
    return x;
}

static bool same_shape(const FgdShape *a, const FgdShape *b) {
    return a->gpus == b->gpus && a->gpu_milli == b->gpu_milli && a->gpu_types == b->gpu_types &&
           a->cores_milli == b->cores_milli && a->memory_mib == b->memory_mib &&
           a->servers == b->servers;
}

// With the table full, a new shape replaces the rarest one and inherits its count.
void fgd_mix_count(FgdMix *m, const ClusterSetup *s, const ClusterJob *j) {
    FgdShape x = shape_of(s, j);
    uint32_t i = 0, rarest = 0;
    if (x.gpus == 0) return;
    m->seen++;
    for (; i < m->n && !same_shape(&m->shapes[i], &x); i++)
        if (m->shapes[i].count < m->shapes[rarest].count) rarest = i;
    if (i == m->n && m->n == FGD_SHAPES) i = rarest;
    x.count = (i < m->n ? m->shapes[i].count : 0) + 1;
    if (i == m->n) m->n++;
    m->shapes[i] = x;
}

static void sort(FgdShape *x, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        FgdShape one = x[i];
        uint32_t at = i;
        for (; at > 0 && one.count > x[at - 1].count; at--) x[at] = x[at - 1];
        x[at] = one;
    }
}

bool fgd_mix_update(FgdMix *m, uint32_t most) {
    double all = 0;
    if (m->seen == m->weighted_at || m->seen < m->weighted_at + m->weighted_at / 20) return false;
    m->weighted_at = m->seen;
    memcpy(m->used, m->shapes, m->n * sizeof *m->used);
    sort(m->used, m->n);
    m->n_used = m->n < most ? m->n : most;
    for (uint32_t i = 0; i < m->n_used; i++) all += (double)m->used[i].count;
    for (uint32_t i = 0; i < m->n_used; i++) m->weight[i] = (double)m->used[i].count / all;
    return true;
}

// Free thousandths of GPUs that the shape cannot use.
static double unusable(const FgdShape *x, const FgdFree *r, uint32_t free) {
    uint32_t fit = 0, small = 0;
    bool     suits = x->gpu_types == 0 || (x->gpu_types >> r->type & 1) != 0;
    if (x->servers != NULL && (x->servers[r->server / 64] >> r->server % 64 & 1) == 0) return free;
    if (!suits || x->cores_milli > r->cores_milli || x->memory_mib > r->memory_mib) return free;
    for (uint32_t g = 0; g < r->n; g++) {
        fit += r->parts[g] >= x->gpu_milli;
        small += r->parts[g] < x->gpu_milli ? r->parts[g] : 0;
    }
    return fit >= x->gpus ? small : free;
}

double fgd_mix_fragmentation(const FgdMix *m, const FgdFree *r) {
    double   sum = 0;
    uint32_t free = 0;
    for (uint32_t g = 0; g < r->n; g++) free += r->parts[g];
    if (free == 0) return 0;
    for (uint32_t i = 0; i < m->n_used; i++) sum += m->weight[i] * unusable(&m->used[i], r, free);
    return sum;
}
