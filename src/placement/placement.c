#include "placement/placement.h"

#include <string.h>

#define EVERY_KIND UINT64_MAX

uint64_t gpu_parts_lowest(const uint16_t *parts, uint32_t n_gpus, uint32_t gpus, uint32_t milli) {
    uint64_t mask = 0;
    for (uint32_t g = 0; g < n_gpus && gpus > 0; g++) {
        if (parts[g] < milli) continue;
        mask |= UINT64_C(1) << g;
        gpus--;
    }
    return mask;
}

bool gpu_parts_free(const uint16_t *parts, uint32_t n_gpus, uint64_t mask, uint32_t milli) {
    for (uint64_t m = mask; m != 0; m &= m - 1) {
        uint32_t g = (uint32_t)__builtin_ctzll(m);
        if (g >= n_gpus || parts[g] < milli) return false;
    }
    return true;
}

uint32_t gpu_parts_take(uint16_t *parts, uint64_t mask, uint32_t milli) {
    uint32_t whole = 0;
    for (uint64_t m = mask; m != 0; m &= m - 1) {
        uint16_t *p = &parts[__builtin_ctzll(m)];
        whole += *p == CLUSTER_WHOLE_GPU && milli > 0;
        *p = (uint16_t)(*p - milli);
    }
    return whole;
}

uint32_t gpu_parts_give(uint16_t *parts, uint64_t mask, uint32_t milli) {
    uint32_t whole = 0;
    for (uint64_t m = mask; m != 0; m &= m - 1) {
        uint16_t *p = &parts[__builtin_ctzll(m)];
        *p = (uint16_t)(*p + milli);
        CHECK(*p <= CLUSTER_WHOLE_GPU);
        whole += *p == CLUSTER_WHOLE_GPU && milli > 0;
    }
    return whole;
}

// Jobs with a GPU fraction may meet co-runners that do not fit into the GPU's memory with them.
static bool by_kinds(const ClusterSetup *s) { return s->fractions && s->profiles != NULL; }

static void index_gpus(FreeResources *f, const ClusterSetup *s) {
    uint32_t first = 0;
    for (uint32_t i = 0; i < s->n_servers; i++) {
        f->first[i] = first;
        first += s->servers[i].gpus;
    }
}

void placement_carve(FreeResources *f, const ClusterSetup *s, Carve *from) {
    f->gpus = carve(from, uint32_t, s->n_servers);
    f->cores = carve(from, uint32_t, s->n_servers);
    f->memory = carve(from, uint32_t, s->n_servers);
    f->first = carve(from, uint32_t, s->n_servers);
    f->track_parts = f->track_parts || s->shares;
    f->room = s->gpus * (f->track_parts ? 4 : 1) + s->n_slots;  // a task shares a GPU with three
    f->parts = carve(from, uint16_t, f->track_parts ? s->gpus : 0);
    f->closed = carve(from, uint8_t, s->fractions ? s->gpus : 0);
    f->kinds = carve(from, uint64_t, by_kinds(s) ? s->gpus : 0);
    f->slices = carve(from, ClusterSlice, f->room);
    tenant_quota_carve(&f->tenants, s, from);
    if (f->first != NULL) index_gpus(f, s);
}

Err placement_alloc(FreeResources *f, const ClusterSetup *s, Arena *a) {
    Carve c = {0};
    *f = (FreeResources){.track_parts = true};
    placement_carve(f, s, &c);
    c = (Carve){.base = arena_try(a, c.used, 1, 64)};
    if (c.base == NULL)
        return err_set(ERR_LIMIT, "no memory to place jobs on %u servers", s->n_servers);
    placement_carve(f, s, &c);
    return ERR_OK;
}

static uint64_t kind_of(const ClusterJob *j) {
    return j->class < PROFILE_CLASSES ? UINT64_C(1) << j->class : 0;
}

static void find_kinds(FreeResources *f, const ClusterView *v) {
    memset(f->kinds, 0, v->setup->gpus * sizeof *f->kinds);
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        for (uint32_t k = 0; k < t->n_slices; k++)
            for (uint64_t m = t->slices[k].mask; m != 0; m &= m - 1)
                f->kinds[f->first[t->slices[k].server] + (uint32_t)__builtin_ctzll(m)] |=
                    kind_of(&t->job);
    }
}

void placement_open(FreeResources *f, const ClusterView *v) {
    const ClusterSetup *s = v->setup;
    f->view = v;
    f->n_slices = f->n_free = 0;
    for (uint32_t i = 0; i < s->n_servers; i++) {
        const ServerState *x = &v->servers[i];
        f->gpus[i] = x->gpus;
        f->cores[i] = x->cores_milli;
        f->memory[i] = x->memory_mib;
        f->n_free += x->gpus;
        if (f->track_parts)
            memcpy(f->parts + f->first[i], x->parts, s->servers[i].gpus * sizeof *f->parts);
    }
    tenant_quota_open(&f->tenants, v);
    if (by_kinds(s)) find_kinds(f, v);
}

// A GPU that became whole again has no co-runners.
static void forget_kinds(FreeResources *f, const ClusterSlice *s) {
    if (!by_kinds(f->view->setup)) return;
    for (uint64_t m = s->mask; m != 0; m &= m - 1) {
        uint32_t gpu = f->first[s->server] + (uint32_t)__builtin_ctzll(m);
        if (f->parts[gpu] == CLUSTER_WHOLE_GPU) f->kinds[gpu] = 0;
    }
}

void placement_give(FreeResources *f, const ClusterSlice *s) {
    f->cores[s->server] += s->cores_milli;
    f->memory[s->server] += s->memory_mib;
    if (!f->track_parts) {
        f->gpus[s->server] += s->gpus;
        f->n_free += s->gpus;
        return;
    }
    uint32_t whole = gpu_parts_give(f->parts + f->first[s->server], s->mask, s->gpu_milli);
    f->gpus[s->server] += whole;
    f->n_free += whole;
    forget_kinds(f, s);
}

void placement_release(FreeResources *f, const ClusterTask *t) {
    ClusterJob as = cluster_job_as(&t->job, t->slices, t->n_slices);
    for (uint32_t i = 0; i < t->n_slices; i++) placement_give(f, &t->slices[i]);
    tenant_quota_give(&f->tenants, &as);
}

static bool server_fits(const FreeResources *f, const ClusterJob *j, uint32_t server) {
    return cluster_server_fits(f->view->setup, j, server);
}

// `gpus` of the job's GPUs with their share of its cores and memory.
static ClusterSlice slice_of(const ClusterJob *j, uint32_t server, uint32_t gpus) {
    uint64_t all = j->gpus > 0 ? j->gpus : 1, here = j->gpus > 0 ? gpus : 1;
    return (ClusterSlice){.server = server,
                          .gpus = gpus,
                          .gpu_milli = j->gpu_milli,
                          .cores_milli = (uint32_t)(j->cores_milli * here / all),
                          .memory_mib = (uint32_t)(j->memory_mib * here / all)};
}

static bool fits(const FreeResources *f, const ClusterSlice *s) {
    return f->gpus[s->server] >= s->gpus && f->cores[s->server] >= s->cores_milli &&
           f->memory[s->server] >= s->memory_mib;
}

static void take_gpus(FreeResources *f, ClusterSlice *s) {
    if (!f->track_parts) {
        f->gpus[s->server] -= s->gpus;
        f->n_free -= s->gpus;
        return;
    }
    uint16_t *parts = f->parts + f->first[s->server];
    uint32_t  n_gpus = f->view->setup->servers[s->server].gpus;
    if (s->mask == 0) s->mask = gpu_parts_lowest(parts, n_gpus, s->gpus, CLUSTER_WHOLE_GPU);
    uint32_t whole = gpu_parts_take(parts, s->mask, s->gpu_milli);
    f->gpus[s->server] -= whole;
    f->n_free -= whole;
}

static void take(FreeResources *f, ClusterSlice s) {
    take_gpus(f, &s);
    f->cores[s.server] -= s.cores_milli;
    f->memory[s.server] -= s.memory_mib;
    f->slices[f->n_slices++] = s;
}

static bool parts_free(const FreeResources *f, const ClusterSlice *s) {
    if (!f->track_parts) return f->gpus[s->server] >= s->gpus;
    return gpu_parts_free(f->parts + f->first[s->server], f->view->setup->servers[s->server].gpus,
                          s->mask, s->gpu_milli);
}

// The slice's class is unknown, so no other job gets a part of these GPUs until the next open.
static void close_kinds(FreeResources *f, const ClusterSlice *s) {
    if (!by_kinds(f->view->setup)) return;
    for (uint64_t m = s->mask; m != 0; m &= m - 1)
        f->kinds[f->first[s->server] + (uint32_t)__builtin_ctzll(m)] = EVERY_KIND;
}

bool placement_take(FreeResources *f, const ClusterSlice *s) {
    ClusterSlice x = *s;
    if (f->cores[s->server] < s->cores_milli || f->memory[s->server] < s->memory_mib) return false;
    if (!parts_free(f, s)) return false;
    take_gpus(f, &x);
    close_kinds(f, &x);
    f->cores[s->server] -= s->cores_milli;
    f->memory[s->server] -= s->memory_mib;
    return true;
}

static uint32_t most_cores_free(const FreeResources *f, const ClusterJob *j) {
    uint32_t     best = CLUSTER_NONE;
    ClusterSlice s = slice_of(j, 0, j->gpus);
    for (s.server = 0; s.server < f->view->setup->n_servers; s.server++) {
        if (best != CLUSTER_NONE && f->cores[s.server] <= f->cores[best]) continue;
        if (fits(f, &s) && server_fits(f, j, s.server)) best = s.server;
    }
    return best;
}

static uint32_t best_fit(const FreeResources *f, const ClusterJob *j) {
    uint32_t     best = CLUSTER_NONE, least = UINT32_MAX;
    ClusterSlice s = slice_of(j, 0, j->gpus);
    for (s.server = 0; s.server < f->view->setup->n_servers; s.server++) {
        if (f->gpus[s.server] >= least || !fits(f, &s) || !server_fits(f, j, s.server)) continue;
        best = s.server;
        least = f->gpus[best];
        if (least == j->gpus) break;
    }
    return best;
}

// The GPU's memory holds the job beside its co-runners.
static bool memory_fits(const FreeResources *f, const ClusterJob *j, uint32_t gpu) {
    const ClusterProfiles *p = f->view->setup->profiles;
    uint64_t               there = by_kinds(f->view->setup) ? f->kinds[gpu] : 0;
    if (there == EVERY_KIND) return false;
    if (kind_of(j) == 0) return true;
    for (; there != 0; there &= there - 1) {
        uint32_t other = (uint32_t)__builtin_ctzll(there);
        if (!(profile_pair(p, j->class, other) > 0) || !(profile_pair(p, other, j->class) > 0))
            return false;
    }
    return true;
}

static bool is_fraction(const ClusterJob *j) {
    return j->gpus == 1 && j->gpu_milli < CLUSTER_WHOLE_GPU;
}

// The GPU with the smallest free part that suffices, so that whole GPUs stay whole.
static ClusterSlice find_part(const FreeResources *f, const ClusterJob *j) {
    ClusterSlice best = {.server = CLUSTER_NONE}, s = slice_of(j, 0, 1);
    uint32_t     least = CLUSTER_WHOLE_GPU + 1;
    for (s.server = 0; s.server < f->view->setup->n_servers; s.server++) {
        if (f->cores[s.server] < s.cores_milli || f->memory[s.server] < s.memory_mib) continue;
        if (!server_fits(f, j, s.server)) continue;
        for (uint32_t g = 0; g < f->view->setup->servers[s.server].gpus; g++) {
            uint32_t part = f->parts[f->first[s.server] + g];
            if (part < j->gpu_milli || part >= least || f->closed[f->first[s.server] + g]) continue;
            if (!memory_fits(f, j, f->first[s.server] + g)) continue;
            best = s;
            best.mask = UINT64_C(1) << g;
            least = part;
        }
    }
    return best;
}

static bool place_part(FreeResources *f, const ClusterJob *j) {
    ClusterSlice s = find_part(f, j);
    if (s.server == CLUSTER_NONE) return false;
    take(f, s);
    if (by_kinds(f->view->setup))
        f->kinds[f->first[s.server] + (uint32_t)__builtin_ctzll(s.mask)] |= kind_of(j);
    return true;
}

static bool has_slice(const FreeResources *f, uint32_t first, uint32_t server) {
    for (uint32_t i = first; i < f->n_slices; i++)
        if (f->slices[i].server == server) return true;
    return false;
}

// The server with the most free GPUs among those without a slice of this gang.
static uint32_t most_gpus_free(const FreeResources *f, const ClusterJob *j, uint32_t first,
                               uint32_t gpus) {
    uint32_t best = CLUSTER_NONE, most = 0;
    for (uint32_t i = 0; i < f->view->setup->n_servers; i++) {
        if (f->gpus[i] <= most || !server_fits(f, j, i) || has_slice(f, first, i)) continue;
        ClusterSlice s = slice_of(j, i, gpus < f->gpus[i] ? gpus : f->gpus[i]);
        if (!fits(f, &s)) continue;
        best = i;
        most = f->gpus[i];
    }
    return best;
}

static bool place_wide(FreeResources *f, const ClusterJob *j) {
    uint32_t first = f->n_slices, left = j->gpus;
    if (j->gpus > f->n_free) return false;
    while (left > 0) {
        uint32_t i = most_gpus_free(f, j, first, left);
        if (i == CLUSTER_NONE) return false;
        bool whole = f->gpus[i] == f->view->setup->servers[i].gpus;
        if (f->gpus[i] < left && !whole) return false;
        uint32_t here = f->gpus[i] < left ? f->gpus[i] : left;
        take(f, slice_of(j, i, here));
        left -= here;
    }
    return true;
}

static void undo(FreeResources *f, uint32_t first) {
    while (f->n_slices > first) placement_give(f, &f->slices[--f->n_slices]);
}

static bool place_one(FreeResources *f, const ClusterJob *j) {
    uint32_t i = j->gpus > f->n_free ? CLUSTER_NONE
                 : f->worst_fit      ? most_cores_free(f, j)
                                     : best_fit(f, j);
    if (i != CLUSTER_NONE) take(f, slice_of(j, i, j->gpus));
    return i != CLUSTER_NONE;
}

static bool place(FreeResources *f, const ClusterJob *j) {
    uint32_t first = f->n_slices;
    if (first + (j->gpus > 0 ? j->gpus : 1) > f->room) return false;
    if (is_fraction(j)) return place_part(f, j);
    if (j->gpus <= cluster_largest(f->view->setup, j)) return place_one(f, j);
    bool placed = place_wide(f, j);
    if (!placed) undo(f, first);
    return placed;
}

bool placement_fits(FreeResources *f, const ClusterJob *j) {
    uint32_t first = f->n_slices;
    if (!tenant_quota_fits(&f->tenants, j)) return false;
    if (is_fraction(j)) return find_part(f, j).server != CLUSTER_NONE;
    bool fits = place(f, j);
    undo(f, first);
    return fits;
}

bool placement_place(FreeResources *f, uint32_t task, ClusterAction *out) {
    return placement_place_as(f, task, &f->view->tasks[task].job, out);
}

bool placement_place_as(FreeResources *f, uint32_t task, const ClusterJob *j, ClusterAction *out) {
    uint32_t first = f->n_slices;
    if (!tenant_quota_fits(&f->tenants, j) || !place(f, j)) return false;
    tenant_quota_take(&f->tenants, j);
    *out = (ClusterAction){.verb = CLUSTER_START,
                           .task = task,
                           .slices = f->slices + first,
                           .n_slices = f->n_slices - first};
    return true;
}

static uint64_t free_milli(const FreeResources *f, const ClusterJob *j, uint32_t server) {
    uint64_t sum = 0;
    if (j->gpu_milli >= CLUSTER_WHOLE_GPU) return (uint64_t)f->gpus[server] * CLUSTER_WHOLE_GPU;
    for (uint32_t g = 0; g < f->view->setup->servers[server].gpus; g++)
        sum += f->parts[f->first[server] + g];
    return sum;
}

int64_t placement_short_gpus(const FreeResources *f, const ClusterJob *j) {
    uint64_t sum = 0, want = cluster_gpu_milli(j);
    for (uint32_t i = 0; i < f->view->setup->n_servers; i++)
        if (server_fits(f, j, i)) sum += free_milli(f, j, i);
    return sum < want ? (int64_t)(want - sum) : 0;
}

int64_t placement_short_together(const FreeResources *f, const ClusterJob *j) {
    uint32_t most = 0, want = cluster_largest(f->view->setup, j);
    want = j->gpus < want ? j->gpus : want;
    for (uint32_t i = 0; i < f->view->setup->n_servers; i++)
        if (server_fits(f, j, i) && f->gpus[i] > most) most = f->gpus[i];
    return most < want ? (int64_t)(want - most) * CLUSTER_WHOLE_GPU : -1;
}

static bool has_gpus(const FreeResources *f, const ClusterJob *j, uint32_t server) {
    if (!server_fits(f, j, server)) return false;
    if (j->gpu_milli >= CLUSTER_WHOLE_GPU || j->gpus == 0) return f->gpus[server] >= j->gpus;
    for (uint32_t g = 0; g < f->view->setup->servers[server].gpus; g++)
        if (f->parts[f->first[server] + g] >= j->gpu_milli) return true;
    return false;
}

static int64_t least_short(const FreeResources *f, const ClusterJob *j, const uint32_t *has,
                           uint32_t want) {
    int64_t least = -1;
    for (uint32_t i = 0; i < f->view->setup->n_servers; i++) {
        if (!has_gpus(f, j, i) || has[i] >= want) continue;
        if (least < 0 || want - has[i] < least) least = want - has[i];
    }
    return least;
}

int64_t placement_short_cores(const FreeResources *f, const ClusterJob *j) {
    return least_short(f, j, f->cores, j->cores_milli);
}

int64_t placement_short_memory(const FreeResources *f, const ClusterJob *j) {
    return least_short(f, j, f->memory, j->memory_mib);
}
