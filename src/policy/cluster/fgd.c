// fgd: fragmentation gradient descent
//
// What is free on a server is of no use to a job that it cannot hold: too few cores, GPUs too small
// a part of which is left, another type. Of all places a job goes to the one where the part of free
// GPUs that is of no use to a job drawn from those seen so far grows least. Nobody is stopped.
#include "contract/profile.h"
#include "policy/cluster/draft.h"
#include "policy/cluster/fgd_mix.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(pass, bool, true, 0, 1, "who finds no place lets those behind it go first")                  \
    X(shapes, int, 100, 1, FGD_SHAPES, "shapes of jobs that count, those seen most often")

typedef struct FgdSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X)
#undef X
} FgdSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(FgdSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct FgdServer {
    uint32_t gpu_milli, cores_milli, memory_mib;  // free, when it was last looked at
    double   waste;                               // then
} FgdServer;

typedef struct Fgd {
    FgdMix      mix;
    FgdSettings with;
    Draft       draft;
    FgdServer  *servers;
    uint32_t   *all, *freed;  // servers: every one; those that have more than before
    uint32_t    n_freed;
    uint64_t    seen, tried;  // entries: of those that were counted, looked for a place
    uint32_t    most[32];     // GPUs of a server, by type
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
    draft_carve(&f->draft, s, from);
}

static size_t state_size(const ClusterSetup *s, const void *settings) {
    (void)settings;
    Fgd   f = {0};
    Carve c = {.used = sizeof f};
    lay_out(&f, s, &c);
    return c.used;
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    Fgd  *f = state;
    Carve c = {.base = state, .used = sizeof *f};
    lay_out(f, s, &c);
    draft_init(&f->draft, s);
    f->with = *(const FgdSettings *)settings;
    for (uint32_t i = 0; i < s->n_servers; i++) {
        uint32_t *most = &f->most[s->servers[i].type % 32];
        f->all[i] = i;
        f->servers[i].gpu_milli = UINT32_MAX;
        if (s->servers[i].gpus > *most) *most = s->servers[i].gpus;
    }
}

static FgdRoom room_of(const Fgd *f, uint32_t server) {
    const Floor         *x = &f->draft.floor;
    const ClusterServer *s = &x->view->setup->servers[server];
    FgdRoom              r = {.cores_milli = x->cores[server],
                              .memory_mib = x->memory[server],
                              .type = s->type,
                              .n = s->gpus};
    for (uint32_t g = 0; g < s->gpus; g++) r.parts[g] = x->parts[x->first[server] + g];
    return r;
}

static void note(Fgd *f, uint32_t server) {
    FgdRoom    r = room_of(f, server);
    FgdServer *x = &f->servers[server];
    *x = (FgdServer){.cores_milli = r.cores_milli,
                     .memory_mib = r.memory_mib,
                     .waste = fgd_mix_waste(&f->mix, &r)};
    for (uint32_t g = 0; g < r.n; g++) x->gpu_milli += r.parts[g];
}

// Counts those that came, and finds servers where somebody left.
static void look(Fgd *f, const ClusterView *v) {
    uint32_t from = v->n_waiting;
    while (from > 0 && v->tasks[v->waiting[from - 1]].entry > f->seen) from--;
    for (; from < v->n_waiting; from++) {
        fgd_mix_see(&f->mix, v->setup, &v->tasks[v->waiting[from]].job);
        f->seen = v->tasks[v->waiting[from]].entry;
    }
    bool anew = fgd_mix_settle(&f->mix, (uint32_t)f->with.shapes);
    f->n_freed = 0;
    for (uint32_t i = 0; i < v->setup->n_servers; i++) {
        const ServerState *s = &v->servers[i];
        const FgdServer   *x = &f->servers[i];
        bool changed = s->gpu_milli != x->gpu_milli || s->cores_milli != x->cores_milli ||
                       s->memory_mib != x->memory_mib;
        if (changed) f->freed[f->n_freed++] = i;
        if (changed || anew) note(f, i);
    }
}

static bool is_there(const ClusterSlice *s, uint32_t n, uint32_t server, uint64_t gpu) {
    for (uint32_t i = 0; i < n; i++)
        if (s[i].server == server && (s[i].mask & gpu) != 0) return true;
    return false;
}

// Whether all who have a part of that GPU fit into its memory together with the job.
static bool bears(const Fgd *f, const ClusterView *v, const ClusterJob *j, uint32_t server,
                  uint64_t gpu) {
    const ServerState *s = &v->servers[server];
    uint32_t           n, class = j->class;
    if (v->setup->profiles == NULL || class == CLUSTER_NONE) return true;
    for (uint32_t i = 0; i < s->n_residents + f->draft.n_touched; i++) {
        bool     resident = i < s->n_residents;
        uint32_t slot = resident ? s->residents[i] : f->draft.touched[i - s->n_residents];
        const ClusterSlice *has = draft_has(&f->draft, slot, &n);
        uint32_t            other = v->tasks[slot].job.class;
        if (other == CLUSTER_NONE || !is_there(has, n, server, gpu)) continue;
        if (!(profile_pair(v->setup->profiles, class, other) > 0)) return false;
        if (!(profile_pair(v->setup->profiles, other, class) > 0)) return false;
    }
    return true;
}

static void consider(const Fgd *f, const ClusterJob *j, FgdRoom r, uint32_t server, uint64_t mask,
                     FgdPlace *best) {
    const FgdServer *x = &f->servers[server];
    r.cores_milli -= j->cores_milli;
    r.memory_mib -= j->memory_mib;
    for (uint64_t m = mask; m != 0; m &= m - 1) {
        uint16_t *p = &r.parts[__builtin_ctzll(m)];
        *p = (uint16_t)(*p - j->gpu_milli);
    }
    double growth = fgd_mix_waste(&f->mix, &r) - x->waste, even = 1e-6;
    bool   less = growth < best->growth - even;
    if (!less && (growth > best->growth + even || x->gpu_milli >= best->free)) return;
    *best = (FgdPlace){server, mask, growth, x->gpu_milli};
}

static bool first_whole(const FgdRoom *r, uint32_t gpu) {
    for (uint32_t g = 0; g < gpu; g++)
        if (r->parts[g] == CLUSTER_WHOLE) return false;
    return true;
}

// Every GPU that suffices and bears it; wholly free ones are all the same.
static void try_parts(const Fgd *f, const ClusterView *v, const ClusterJob *j, uint32_t server,
                      FgdPlace *best) {
    FgdRoom r = room_of(f, server);
    for (uint32_t g = 0; g < r.n; g++) {
        uint64_t gpu = UINT64_C(1) << g;
        if (r.parts[g] < j->gpu_milli) continue;
        bool good = r.parts[g] == CLUSTER_WHOLE ? first_whole(&r, g) : bears(f, v, j, server, gpu);
        if (good) consider(f, j, r, server, gpu, best);
    }
}

static void try_whole(const Fgd *f, const ClusterJob *j, uint32_t server, FgdPlace *best) {
    FgdRoom  r = room_of(f, server);
    uint64_t mask = 0;
    uint32_t left = j->gpus;
    for (uint32_t g = 0; g < r.n && left > 0; g++) {
        if (r.parts[g] < CLUSTER_WHOLE) continue;
        mask |= UINT64_C(1) << g;
        left--;
    }
    if (left == 0) consider(f, j, r, server, mask, best);
}

static void try_server(const Fgd *f, const ClusterView *v, const ClusterJob *j, uint32_t server,
                       FgdPlace *best) {
    const Floor *x = &f->draft.floor;
    if (x->cores[server] < j->cores_milli || x->memory[server] < j->memory_mib) return;
    if (!cluster_suits(v->setup, j, server)) return;
    if (j->gpus == 1 && j->gpu_milli < CLUSTER_WHOLE)
        try_parts(f, v, j, server, best);
    else if (x->gpus[server] >= j->gpus)
        try_whole(f, j, server, best);
}

static bool is_wide(const Fgd *f, const ClusterView *v, const ClusterJob *j) {
    uint32_t most = j->gpu_types == 0 ? v->setup->most_gpus : 0;
    for (uint32_t t = 0; j->gpu_types != 0 && t < 32; t++)
        if ((j->gpu_types >> t & 1) != 0 && f->most[t] > most) most = f->most[t];
    return j->gpus > most;
}

static bool place_wide(Fgd *f, uint32_t slot) {
    uint32_t n;
    if (!draft_place(&f->draft, slot)) return false;
    const ClusterSlice *s = draft_has(&f->draft, slot, &n);
    for (uint32_t i = 0; i < n; i++) note(f, s[i].server);
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
    if (!draft_put(&f->draft, slot, &s, 1)) return false;
    note(f, best.server);
    return true;
}

// Who was looked for a place before can find one only where somebody left since.
static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Fgd *f = state;
    (void)max;
    if (v->n_waiting == 0) return 0;
    draft_open(&f->draft, v);
    look(f, v);
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        uint64_t entry = v->tasks[v->waiting[i]].entry;
        bool     again = entry <= f->tried;
        bool     placed = place(f, v, v->waiting[i], again ? f->freed : f->all,
                            again ? f->n_freed : v->setup->n_servers);
        if (!again) f->tried = entry;
        if (!placed && !f->with.pass) break;
    }
    return draft_write(&f->draft, out);
}

const ClusterPolicy cluster_policy_fgd = {
    .name = "fgd",
    .about = "where the least of the free GPUs becomes useless to jobs like those seen",
    .paper = "Fragmentation gradient descent (ATC 2023)",
    .knows = CLUSTER_BLIND,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(FgdSettings),
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
