// Resources of servers. Everything a plan takes is checked here for all policies: no GPU, core or
// byte is given twice.
#include <string.h>

#include "base/err.h"
#include "cluster/sim/cluster_sim_int.h"
#include "placement/placement.h"

enum { LEAST_SHIFT = 6 };  // smallest block: 64 bytes

static uint32_t shift_of(size_t bytes) {
    uint32_t s = LEAST_SHIFT;
    while (((size_t)1 << s) < bytes) s++;
    return s;
}

void *cluster_sim_borrow(ClusterSim *w, size_t bytes) {
    uint32_t s = shift_of(bytes);
    void    *p = w->spare[s];
    if (p == NULL) return arena_alloc(w->arena, (size_t)1 << s, 1, 64);
    memcpy(&w->spare[s], p, sizeof(void *));
    return p;
}

void cluster_sim_return(ClusterSim *w, void *p, size_t bytes) {
    uint32_t s = shift_of(bytes);
    memcpy(p, &w->spare[s], sizeof(void *));
    w->spare[s] = p;
}

static void add_resident(ClusterSim *w, uint32_t server, uint32_t slot) {
    ServerAlloc *y = &w->allocs[server];
    ServerState *v = &w->servers[server];
    if (v->n_residents == y->room) {
        uint32_t  room = y->room > 0 ? 2 * y->room : 16;
        uint32_t *more = cluster_sim_borrow(w, room * sizeof *more);
        if (y->room > 0) {
            memcpy(more, y->residents, y->room * sizeof *more);
            cluster_sim_return(w, y->residents, y->room * sizeof *more);
        }
        y->residents = more;
        y->room = room;
        v->residents = more;
    }
    y->residents[v->n_residents++] = slot;
}

static void remove_resident(ClusterSim *w, uint32_t server, uint32_t slot) {
    uint32_t    *r = w->allocs[server].residents;
    ServerState *v = &w->servers[server];
    uint32_t     i = 0;
    while (r[i] != slot) i++;
    v->n_residents--;
    memmove(r + i, r + i + 1, (v->n_residents - i) * sizeof *r);
}

static bool shared(const ClusterSlice *s) { return s->gpu_milli < CLUSTER_WHOLE_GPU; }

static bool overlaps(const ClusterTask *t, const ClusterSlice *s) {
    for (uint32_t i = 0; i < t->n_slices; i++)
        if (t->slices[i].server == s->server) return (t->slices[i].mask & s->mask) != 0;
    return false;
}

// The rates of all tasks on these GPUs change.
static void mark_corunners(ClusterSim *w, const ClusterSlice *s) {
    const ServerState *v = &w->servers[s->server];
    if (w->setup->profiles == NULL) return;
    for (uint32_t i = 0; i < v->n_residents; i++)
        if (overlaps(&w->tasks[v->residents[i]], s)) cluster_sim_rate_changed(w, v->residents[i]);
}

void cluster_sim_take(ClusterSim *w, uint32_t slot, ClusterSlice *s) {
    CHECK(s->server < w->setup->n_servers);
    ServerState *v = &w->servers[s->server];
    uint16_t    *parts = w->allocs[s->server].parts;
    uint32_t     n_gpus = w->setup->servers[s->server].gpus;
    if (s->mask == 0 && s->gpus > 0)
        s->mask = gpu_parts_lowest(parts, n_gpus, s->gpus, s->gpu_milli);
    uint32_t n = (uint32_t)__builtin_popcountll(s->mask);
    CHECK(n == s->gpus && gpu_parts_free(parts, n_gpus, s->mask, s->gpu_milli));
    v->gpus -= gpu_parts_take(parts, s->mask, s->gpu_milli);
    CHECK(v->cores_milli >= s->cores_milli && v->memory_mib >= s->memory_mib);
    v->gpu_milli -= n * s->gpu_milli;
    v->cores_milli -= s->cores_milli;
    v->memory_mib -= s->memory_mib;
    w->used_gpu_milli += (uint64_t)n * s->gpu_milli;
    w->used_cores += s->cores_milli;
    w->used_memory += s->memory_mib;
    add_resident(w, s->server, slot);
    if (shared(s)) mark_corunners(w, s);
}

void cluster_sim_give(ClusterSim *w, uint32_t slot, const ClusterSlice *s) {
    ServerState *v = &w->servers[s->server];
    v->gpus += gpu_parts_give(w->allocs[s->server].parts, s->mask, s->gpu_milli);
    v->gpu_milli += s->gpus * s->gpu_milli;
    v->cores_milli += s->cores_milli;
    v->memory_mib += s->memory_mib;
    w->used_gpu_milli -= (uint64_t)s->gpus * s->gpu_milli;
    w->used_cores -= s->cores_milli;
    w->used_memory -= s->memory_mib;
    remove_resident(w, s->server, slot);
    if (shared(s)) mark_corunners(w, s);
}

// The task's thousandths of its GPUs change, its GPUs do not.
static void reshare(ClusterSim *w, ClusterSlice *s, uint32_t milli) {
    ServerState *v = &w->servers[s->server];
    uint16_t    *parts = w->allocs[s->server].parts;
    for (uint64_t m = s->mask; m != 0; m &= m - 1) {
        uint32_t g = (uint32_t)__builtin_ctzll(m);
        CHECK(parts[g] + s->gpu_milli >= milli);
        parts[g] = (uint16_t)(parts[g] + s->gpu_milli - milli);
    }
    v->gpu_milli += s->gpus * s->gpu_milli;
    v->gpu_milli -= s->gpus * milli;
    w->used_gpu_milli += (uint64_t)s->gpus * milli;
    w->used_gpu_milli -= (uint64_t)s->gpus * s->gpu_milli;
    s->gpu_milli = milli;
    mark_corunners(w, s);
}

void cluster_sim_resize_slice(ClusterSim *w, ClusterSlice *s, const ClusterSlice *to) {
    ServerState *v = &w->servers[s->server];
    CHECK(v->cores_milli + s->cores_milli >= to->cores_milli);
    CHECK(v->memory_mib + s->memory_mib >= to->memory_mib);
    if (to->gpu_milli != 0 && to->gpu_milli != s->gpu_milli) reshare(w, s, to->gpu_milli);
    v->cores_milli += s->cores_milli - to->cores_milli;
    v->memory_mib += s->memory_mib - to->memory_mib;
    w->used_cores += to->cores_milli;
    w->used_cores -= s->cores_milli;
    w->used_memory += to->memory_mib;
    w->used_memory -= s->memory_mib;
    s->cores_milli = to->cores_milli;
    s->memory_mib = to->memory_mib;
}
