#include "cluster/sim/placement_probe.h"

#include <string.h>

#include "contract/cluster_profile.h"

Err placement_probe_init(PlacementProbe *s, const ClusterSetup *setup, Arena *a) {
    uint32_t n = setup->n_servers, first = 0;
    *s = (PlacementProbe){.setup = setup,
                          .gpus = arena_try_new(a, uint32_t, n),
                          .cores = arena_try_new(a, uint32_t, n),
                          .memory = arena_try_new(a, uint32_t, n),
                          .parts = arena_try_new(a, uint16_t, setup->gpus + 1),
                          .first = arena_try_new(a, uint32_t, n),
                          .order = arena_try_new(a, uint32_t, n)};
    if (s->gpus == NULL || s->cores == NULL || s->memory == NULL || s->parts == NULL ||
        s->first == NULL || s->order == NULL)
        return err_set(ERR_LIMIT, "no memory to look at %u servers", n);
    for (uint32_t i = 0; i < n; i++) {
        s->first[i] = first;
        first += setup->servers[i].gpus;
    }
    return ERR_OK;
}

void placement_probe_open(PlacementProbe *s, const ClusterView *v) {
    for (uint32_t i = 0; i < s->setup->n_servers; i++) {
        const ServerState *x = &v->servers[i];
        s->gpus[i] = x->gpus;
        s->cores[i] = x->cores_milli;
        s->memory[i] = x->memory_mib;
        memcpy(s->parts + s->first[i], x->parts, s->setup->servers[i].gpus * sizeof *s->parts);
    }
}

void placement_probe_give(PlacementProbe *s, const ClusterTask *t) {
    for (uint32_t i = 0; i < t->n_slices; i++) {
        const ClusterSlice *x = &t->slices[i];
        s->cores[x->server] += x->cores_milli;
        s->memory[x->server] += x->memory_mib;
        for (uint64_t m = x->mask; m != 0; m &= m - 1) {
            uint16_t *part = &s->parts[s->first[x->server] + (uint32_t)__builtin_ctzll(m)];
            *part = (uint16_t)(*part + x->gpu_milli);
            if (*part == CLUSTER_WHOLE_GPU) s->gpus[x->server]++;
        }
    }
}

static bool suits(const PlacementProbe *s, const ClusterJob *j, uint32_t server, bool any_type) {
    return any_type || cluster_type_fits(s->setup, j, server);
}

// Cores and memory that go with so many of its GPUs.
static bool feeds(const PlacementProbe *s, const ClusterJob *j, uint32_t server, uint32_t gpus,
                  PlacementRelax ask) {
    uint64_t all = j->gpus > 0 ? j->gpus : 1, here = j->gpus > 0 ? gpus : 1;
    bool     cores = s->cores[server] >= j->cores_milli * here / all;
    bool     memory = s->memory[server] >= j->memory_mib * here / all;
    return (cores || ask.no_cores) && (memory || ask.no_memory);
}

// Whether it may share a GPU with those who have parts of it.
static bool bears(const ClusterView *v, const ClusterJob *j, uint32_t server, uint32_t gpu) {
    const ServerState     *x = &v->servers[server];
    const ClusterProfiles *p = v->setup->profiles;
    for (uint32_t r = 0; r < x->n_residents && p != NULL && j->class != CLUSTER_NONE; r++) {
        const ClusterTask *t = &v->tasks[x->residents[r]];
        if (t->job.class == CLUSTER_NONE) continue;
        for (uint32_t i = 0; i < t->n_slices; i++) {
            const ClusterSlice *y = &t->slices[i];
            if (y->server != server || (y->mask >> gpu & 1) == 0) continue;
            if (!(profile_pair(p, j->class, t->job.class) > 0)) return false;
            if (!(profile_pair(p, t->job.class, j->class) > 0)) return false;
        }
    }
    return true;
}

static bool fits_part(const PlacementProbe *s, const ClusterView *v, const ClusterJob *j,
                      PlacementRelax ask) {
    for (uint32_t i = 0; i < s->setup->n_servers; i++) {
        if (!suits(s, j, i, ask.any_type) || !feeds(s, j, i, 1, ask)) continue;
        for (uint32_t g = 0; g < s->setup->servers[i].gpus; g++) {
            uint16_t part = s->parts[s->first[i] + g];
            if (part < j->gpu_milli) continue;
            if (ask.any_company || part == CLUSTER_WHOLE_GPU || bears(v, j, i, g)) return true;
        }
    }
    return false;
}

static bool fits_one(const PlacementProbe *s, const ClusterJob *j, PlacementRelax ask) {
    for (uint32_t i = 0; i < s->setup->n_servers; i++)
        if (s->gpus[i] >= j->gpus && suits(s, j, i, ask.any_type) && feeds(s, j, i, j->gpus, ask))
            return true;
    return false;
}

// Whole servers, the widest first, then one that has the rest.
static bool fits_wide(PlacementProbe *s, const ClusterJob *j, PlacementRelax ask) {
    uint32_t left = j->gpus, n = 0;
    for (uint32_t i = 0; i < s->setup->n_servers; i++)
        if (suits(s, j, i, ask.any_type) && s->gpus[i] > 0) s->order[n++] = i;
    while (left > 0) {
        uint32_t best = n;
        for (uint32_t x = 0; x < n; x++) {
            uint32_t i = s->order[x], here = s->gpus[i] < left ? s->gpus[i] : left;
            bool     enough = s->gpus[i] >= left || s->gpus[i] == s->setup->servers[i].gpus;
            if (!enough || !feeds(s, j, i, here, ask)) continue;
            if (best == n || s->gpus[i] > s->gpus[s->order[best]]) best = x;
        }
        if (best == n) return false;
        uint32_t here = s->gpus[s->order[best]];
        left -= here < left ? here : left;
        s->order[best] = s->order[--n];
    }
    return true;
}

static uint32_t widest(const PlacementProbe *s, const ClusterJob *j, bool any_type) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->setup->n_servers; i++)
        if (suits(s, j, i, any_type) && s->setup->servers[i].gpus > most)
            most = s->setup->servers[i].gpus;
    return most;
}

bool placement_probe_fits(PlacementProbe *s, const ClusterView *v, const ClusterJob *j,
                          PlacementRelax ask) {
    if (j->gpus == 1 && j->gpu_milli < CLUSTER_WHOLE_GPU) return fits_part(s, v, j, ask);
    if (j->gpus <= widest(s, j, ask.any_type)) return fits_one(s, j, ask);
    return fits_wide(s, j, ask);
}

static uint64_t free_milli(const PlacementProbe *s, const ClusterJob *j, uint32_t server) {
    uint64_t sum = 0;
    if (j->gpu_milli >= CLUSTER_WHOLE_GPU) return (uint64_t)s->gpus[server] * CLUSTER_WHOLE_GPU;
    for (uint32_t g = 0; g < s->setup->servers[server].gpus; g++)
        sum += s->parts[s->first[server] + g];
    return sum;
}

int64_t placement_probe_lacks_gpus(const PlacementProbe *s, const ClusterJob *j) {
    uint64_t sum = 0, want = cluster_gpu_milli(j);
    for (uint32_t i = 0; i < s->setup->n_servers; i++)
        if (suits(s, j, i, false)) sum += free_milli(s, j, i);
    return sum < want ? (int64_t)(want - sum) : 0;
}

int64_t placement_probe_lacks_together(const PlacementProbe *s, const ClusterJob *j) {
    uint32_t most = 0, want = widest(s, j, false);
    want = j->gpus < want ? j->gpus : want;
    for (uint32_t i = 0; i < s->setup->n_servers; i++)
        if (suits(s, j, i, false) && s->gpus[i] > most) most = s->gpus[i];
    return most < want ? (int64_t)(want - most) * CLUSTER_WHOLE_GPU : -1;
}

static bool has_gpus(const PlacementProbe *s, const ClusterJob *j, uint32_t server) {
    if (!suits(s, j, server, false)) return false;
    if (j->gpu_milli >= CLUSTER_WHOLE_GPU || j->gpus == 0) return s->gpus[server] >= j->gpus;
    for (uint32_t g = 0; g < s->setup->servers[server].gpus; g++)
        if (s->parts[s->first[server] + g] >= j->gpu_milli) return true;
    return false;
}

static int64_t lacks(const PlacementProbe *s, const ClusterJob *j, const uint32_t *has,
                     uint32_t want) {
    int64_t least = -1;
    for (uint32_t i = 0; i < s->setup->n_servers; i++) {
        if (!has_gpus(s, j, i) || has[i] >= want) continue;
        if (least < 0 || want - has[i] < least) least = want - has[i];
    }
    return least;
}

int64_t placement_probe_lacks_cores(const PlacementProbe *s, const ClusterJob *j) {
    return lacks(s, j, s->cores, j->cores_milli);
}

int64_t placement_probe_lacks_memory(const PlacementProbe *s, const ClusterJob *j) {
    return lacks(s, j, s->memory, j->memory_mib);
}
