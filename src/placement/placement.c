#include "placement/placement.h"

#include <string.h>

#define EVERY_KIND UINT64_MAX

// Whether jobs that ask for a part of a GPU may find others there that they do not fit beside.
static bool by_kinds(const ClusterSetup *s) { return s->fractions && s->profiles != NULL; }

void placement_carve(FreeResources *f, const ClusterSetup *s, Carve *from) {
    f->gpus = carve(from, uint32_t, s->n_servers);
    f->cores = carve(from, uint32_t, s->n_servers);
    f->memory = carve(from, uint32_t, s->n_servers);
    f->first = carve(from, uint32_t, s->n_servers);
    f->by_parts = f->by_parts || s->shares;
    f->room = s->gpus * (f->by_parts ? 4 : 1) + s->n_slots;  // parts of GPUs are of one slice each
    f->parts = carve(from, uint16_t, f->by_parts ? s->gpus : 0);
    f->closed = carve(from, uint8_t, s->fractions ? s->gpus : 0);
    f->kinds = carve(from, uint64_t, by_kinds(s) ? s->gpus : 0);
    f->slices = carve(from, ClusterSlice, f->room);
}

void placement_init(FreeResources *f, const ClusterSetup *s) {
    uint32_t first = 0;
    for (uint32_t i = 0; i < s->n_servers; i++) {
        f->first[i] = first;
        first += s->servers[i].gpus;
    }
}

static uint64_t kind_of(const ClusterJob *j) {
    return j->class < PROFILE_CLASSES ? UINT64_C(1) << j->class : 0;
}

static void see_kinds(FreeResources *f, const ClusterView *v) {
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
        if (f->by_parts)
            memcpy(f->parts + f->first[i], x->parts, s->servers[i].gpus * sizeof *f->parts);
    }
    if (by_kinds(s)) see_kinds(f, v);
}

static void set_part(FreeResources *f, uint32_t server, uint32_t gpu, uint32_t milli) {
    uint16_t *p = &f->parts[f->first[server] + gpu];
    bool      was = *p == CLUSTER_WHOLE_GPU, is = milli == CLUSTER_WHOLE_GPU;
    *p = (uint16_t)milli;
    if (is && by_kinds(f->view->setup)) f->kinds[f->first[server] + gpu] = 0;
    f->gpus[server] += (uint32_t)is - (uint32_t)was;
    f->n_free += (uint32_t)is - (uint32_t)was;
}

void placement_give(FreeResources *f, const ClusterSlice *s) {
    f->cores[s->server] += s->cores_milli;
    f->memory[s->server] += s->memory_mib;
    if (!f->by_parts) {
        f->gpus[s->server] += s->gpus;
        f->n_free += s->gpus;
        return;
    }
    for (uint64_t m = s->mask; m != 0; m &= m - 1) {
        uint32_t g = (uint32_t)__builtin_ctzll(m);
        set_part(f, s->server, g, f->parts[f->first[s->server] + g] + s->gpu_milli);
    }
}

void placement_leave(FreeResources *f, const ClusterTask *t) {
    for (uint32_t i = 0; i < t->n_slices; i++) placement_give(f, &t->slices[i]);
}

static bool suits(const FreeResources *f, const ClusterJob *j, uint32_t server) {
    return cluster_type_fits(f->view->setup, j, server);
}

// So many of the job's GPUs with their part of its demand.
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
    if (!f->by_parts) {
        f->gpus[s->server] -= s->gpus;
        f->n_free -= s->gpus;
        return;
    }
    uint32_t left = s->mask == 0 ? s->gpus : 0;
    for (uint32_t g = 0; left > 0; g++)
        if (f->parts[f->first[s->server] + g] == CLUSTER_WHOLE_GPU) {
            s->mask |= UINT64_C(1) << g;
            left--;
        }
    for (uint64_t m = s->mask; m != 0; m &= m - 1) {
        uint32_t g = (uint32_t)__builtin_ctzll(m);
        set_part(f, s->server, g, f->parts[f->first[s->server] + g] - s->gpu_milli);
    }
}

static void take(FreeResources *f, ClusterSlice s) {
    take_gpus(f, &s);
    f->cores[s.server] -= s.cores_milli;
    f->memory[s.server] -= s.memory_mib;
    f->slices[f->n_slices++] = s;
}

static bool parts_free(const FreeResources *f, const ClusterSlice *s) {
    if (!f->by_parts) return f->gpus[s->server] >= s->gpus;
    for (uint64_t m = s->mask; m != 0; m &= m - 1)
        if (f->parts[f->first[s->server] + (uint32_t)__builtin_ctzll(m)] < s->gpu_milli)
            return false;
    return true;
}

// Whose slice it is is not said, so that nobody else may have a part of these GPUs in this plan.
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

static uint32_t roomiest(const FreeResources *f, const ClusterJob *j) {
    uint32_t     best = CLUSTER_NONE;
    ClusterSlice s = slice_of(j, 0, j->gpus);
    for (s.server = 0; s.server < f->view->setup->n_servers; s.server++) {
        if (best != CLUSTER_NONE && f->cores[s.server] <= f->cores[best]) continue;
        if (fits(f, &s) && suits(f, j, s.server)) best = s.server;
    }
    return best;
}

static uint32_t tightest(const FreeResources *f, const ClusterJob *j) {
    uint32_t     best = CLUSTER_NONE, least = UINT32_MAX;
    ClusterSlice s = slice_of(j, 0, j->gpus);
    for (s.server = 0; s.server < f->view->setup->n_servers; s.server++) {
        if (f->gpus[s.server] >= least || !fits(f, &s) || !suits(f, j, s.server)) continue;
        best = s.server;
        least = f->gpus[best];
        if (least == j->gpus) break;
    }
    return best;
}

// Whether the memory of a GPU holds a job beside those that are there.
static bool bears(const FreeResources *f, const ClusterJob *j, uint32_t gpu) {
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

// The GPU with the least left that suffices, so that whole ones stay whole.
static bool place_part(FreeResources *f, const ClusterJob *j) {
    ClusterSlice best = {.server = CLUSTER_NONE}, s = slice_of(j, 0, 1);
    uint32_t     least = CLUSTER_WHOLE_GPU + 1;
    for (s.server = 0; s.server < f->view->setup->n_servers; s.server++) {
        if (f->cores[s.server] < s.cores_milli || f->memory[s.server] < s.memory_mib) continue;
        if (!suits(f, j, s.server)) continue;
        for (uint32_t g = 0; g < f->view->setup->servers[s.server].gpus; g++) {
            uint32_t part = f->parts[f->first[s.server] + g];
            if (part < j->gpu_milli || part >= least || f->closed[f->first[s.server] + g]) continue;
            if (!bears(f, j, f->first[s.server] + g)) continue;
            best = s;
            best.mask = UINT64_C(1) << g;
            least = part;
        }
    }
    if (best.server == CLUSTER_NONE) return false;
    take(f, best);
    if (by_kinds(f->view->setup))
        f->kinds[f->first[best.server] + (uint32_t)__builtin_ctzll(best.mask)] |= kind_of(j);
    return true;
}

static bool holds(const FreeResources *f, uint32_t first, uint32_t server) {
    for (uint32_t i = first; i < f->n_slices; i++)
        if (f->slices[i].server == server) return true;
    return false;
}

// The server with the most GPUs free of those that the gang has none of yet; whole: all of its own.
static uint32_t widest(const FreeResources *f, const ClusterJob *j, uint32_t first, uint32_t gpus) {
    uint32_t best = CLUSTER_NONE, most = 0;
    for (uint32_t i = 0; i < f->view->setup->n_servers; i++) {
        if (f->gpus[i] <= most || !suits(f, j, i) || holds(f, first, i)) continue;
        ClusterSlice s = slice_of(j, i, gpus < f->gpus[i] ? gpus : f->gpus[i]);
        if (!fits(f, &s)) continue;
        best = i;
        most = f->gpus[i];
    }
    return best;
}

static uint32_t largest(const FreeResources *f, const ClusterJob *j) {
    const ClusterSetup *s = f->view->setup;
    uint32_t            most = 0;
    if (j->gpu_types == 0) return s->most_gpus;
    for (uint32_t i = 0; i < s->n_servers; i++)
        if (suits(f, j, i) && s->servers[i].gpus > most) most = s->servers[i].gpus;
    return most;
}

static bool place_wide(FreeResources *f, const ClusterJob *j) {
    uint32_t first = f->n_slices, left = j->gpus;
    if (j->gpus > f->n_free) return false;
    while (left > 0) {
        uint32_t i = widest(f, j, first, left);
        if (i == CLUSTER_NONE) return false;
        bool whole = f->gpus[i] == f->view->setup->servers[i].gpus;
        if (f->gpus[i] < left && !whole) return false;
        uint32_t here = f->gpus[i] < left ? f->gpus[i] : left;
        take(f, slice_of(j, i, here));
        left -= here;
    }
    return true;
}

// Puts back what a gang that did not fit took.
static void undo(FreeResources *f, uint32_t first) {
    while (f->n_slices > first) placement_give(f, &f->slices[--f->n_slices]);
}

bool placement_place(FreeResources *f, uint32_t task, ClusterAction *out) {
    return placement_place_as(f, task, &f->view->tasks[task].job, out);
}

bool placement_place_as(FreeResources *f, uint32_t task, const ClusterJob *j, ClusterAction *out) {
    uint32_t first = f->n_slices;
    bool     placed;
    if (first + (j->gpus > 0 ? j->gpus : 1) > f->room) return false;
    if (j->gpus == 1 && j->gpu_milli < CLUSTER_WHOLE_GPU) {
        placed = place_part(f, j);
    } else if (j->gpus <= largest(f, j)) {
        uint32_t i = j->gpus > f->n_free ? CLUSTER_NONE
                     : f->roomy          ? roomiest(f, j)
                                         : tightest(f, j);
        placed = i != CLUSTER_NONE;
        if (placed) take(f, slice_of(j, i, j->gpus));
    } else {
        placed = place_wide(f, j);
    }
    if (!placed) undo(f, first);
    if (placed)
        *out = (ClusterAction){.verb = CLUSTER_START,
                               .task = task,
                               .slices = f->slices + first,
                               .n_slices = f->n_slices - first};
    return placed;
}
