#include "kube/kube_view.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/profile/profiles.h"
#include "placement/placement.h"
#include "placement/tenant_quota.h"

void kube_view_init(KubeView *v) { *v = (KubeView){.open = false}; }

void kube_view_finish(KubeView *v) {
    if (v->open) arena_finish(&v->arena);
    free(v->residents);
    *v = (KubeView){.open = false};
}

static uint32_t floor_mib(int64_t bytes) { return bytes > 0 ? kube_amount(bytes >> 20) : 0; }

static int64_t left_of(const KubeNodeInfo *n, KubeResource r) {
    if (n->unschedulable || n->unsupported != NULL) return 0;
    int64_t left = n->allocatable.of[r] - n->used.of[r];
    return left > 0 ? left : 0;
}

// Wholly free ones. Where a GPU is advertised several times, the devices count, and what is left of
// those in use is known to kube_fit alone.
static uint32_t free_gpus(const KubeNodeInfo *n) {
    if (n->devices == 0 || n->unschedulable || n->unsupported != NULL)
        return kube_amount(left_of(n, KUBE_GPU));
    int64_t whole = (n->gpu_milli + CLUSTER_WHOLE_GPU - 1) / CLUSTER_WHOLE_GPU;
    return kube_amount((int64_t)n->devices - whole);
}

Err kube_view_servers(const KubeState *s, const KubeJobs *x, Arena *a, KubeServer **out,
                      uint32_t *n) {
    KubeNode *const *nodes;
    *n = kube_state_nodes(s, &nodes);
    KubeServer *to = arena_try_new(a, KubeServer, *n + 1);
    uint64_t   *held = arena_try_new(a, uint64_t, *n + 1);
    if (to == NULL || held == NULL) return err_set(ERR_LIMIT, "no memory for %u nodes", *n);
    for (uint32_t i = 0; i < *n; i++) {
        const KubeNodeInfo *k = kube_node_info(nodes[i]);
        to[i] = (KubeServer){.name = k->name,
                             .type = k->gpu_type,
                             .rack = k->rack,
                             .gpus = free_gpus(k),
                             .cores_milli = kube_amount(left_of(k, KUBE_CPU)),
                             .memory_mib = floor_mib(left_of(k, KUBE_MEMORY))};
    }
    for (uint32_t i = 0; i < x->n_running; i++) {
        const ClusterTask *t = &x->tasks[x->running[i]];
        for (uint32_t k = 0; k < t->n_slices; k++) {
            KubeServer *y = &to[t->slices[k].server];
            held[t->slices[k].server] |= t->slices[k].mask;
            y->cores_milli += t->slices[k].cores_milli;
            y->memory_mib += t->slices[k].memory_mib;
        }
    }
    for (uint32_t i = 0; i < *n; i++) {
        to[i].gpus += (uint32_t)__builtin_popcountll(held[i]);
        uint32_t last = held[i] != 0 ? 64 - (uint32_t)__builtin_clzll(held[i]) : 0;
        if (to[i].gpus < last) to[i].gpus = last;
        if (to[i].gpus > CLUSTER_GPUS) to[i].gpus = CLUSTER_GPUS;
    }
    *out = to;
    return ERR_OK;
}

static uint32_t index_of(const char *name, const char **names, uint32_t *n, uint32_t most) {
    for (uint32_t i = 0; i < *n; i++)
        if (strcmp(names[i], name) == 0) return i;
    if (*n == most) return most - 1;
    names[*n] = name;
    return (*n)++;
}

enum { TYPES = 32, SLOTS_LEAST = 256 };

static Err set_servers(KubeView *v, const KubePicture *p, ClusterSetup *s) {
    const char    *types[TYPES] = {0};
    const char   **racks = arena_try_new(&v->arena, const char *, p->n_servers + 1);
    ClusterServer *to = arena_try_new(&v->arena, ClusterServer, p->n_servers + 1);
    uint32_t      *known = arena_try_new(&v->arena, uint32_t, TYPES);
    if (racks == NULL || to == NULL || known == NULL)
        return err_set(ERR_LIMIT, "no memory for %u servers", p->n_servers);
    for (uint32_t i = 0; i < p->n_servers; i++) {
        const KubeServer *x = &p->servers[i];
        to[i] = (ClusterServer){.name = arena_str(&v->arena, x->name),
                                .gpus = x->gpus,
                                .cores_milli = x->cores_milli,
                                .memory_mib = x->memory_mib,
                                .rack = index_of(x->rack, racks, &s->n_racks, p->n_servers),
                                .type = index_of(x->type, types, &s->n_types, TYPES)};
        s->gpus += x->gpus;
        s->cores_milli += x->cores_milli;
        s->memory_mib += x->memory_mib;
        if (x->gpus > s->most_gpus) s->most_gpus = x->gpus;
    }
    for (uint32_t t = 0; t < s->n_types; t++)
        known[t] = types[t][0] != '\0' && s->profiles != NULL ? profile_type(s->profiles, types[t])
                                                              : PROFILE_NONE;
    s->servers = to;
    s->profile_type = known;
    return ERR_OK;
}

static Err set_tenants(KubeView *v, const KubePicture *p, const KubeRules *r, ClusterSetup *s) {
    ClusterTenant *to = arena_try_new(&v->arena, ClusterTenant, p->n_tenants + 1);
    if (to == NULL) return err_set(ERR_LIMIT, "no memory for %u tenants", p->n_tenants);
    for (uint32_t i = 0; i < p->n_tenants; i++)
        to[i] = (ClusterTenant){.name = arena_str(&v->arena, p->tenants[i]), .weight = 1};
    s->tenants = to;
    return tenant_shares_apply(r->shares, s->gpus, to, s->n_tenants, &s->quotas);
}

static Err make_setup(KubeView *v, const KubePicture *p, const KubeRules *r) {
    ClusterSetup s = {.n_servers = p->n_servers,
                      .n_tenants = p->n_tenants,
                      .n_slots = p->n_slots,
                      .profiles = p->profiles,
                      .restart = r->restart,
                      .restart_wide = r->restart_wide,
                      .restart_by_class = true,
                      .stops = r->stops,
                      .fractions = p->fractions,
                      .no_gpus = p->no_gpus,
                      .shares = true,
                      .rng = rng_fork((Rng){r->seed}, 1)};
    if (v->open) arena_finish(&v->arena);
    v->open = false;
    TRY(arena_init(&v->arena, (size_t)1 << 34));
    v->open = true;
    v->generation = p->generation;
    v->setups++;
    TRY(set_servers(v, p, &s));
    TRY(set_tenants(v, p, r, &s));
    v->servers = arena_try_new(&v->arena, ServerState, s.n_servers + 1);
    v->parts = arena_try_new(&v->arena, uint16_t, s.gpus + 1);
    if (v->servers == NULL || v->parts == NULL)
        return err_set(ERR_LIMIT, "no memory for %u servers", s.n_servers);
    v->setup = s;
    return ERR_OK;
}

static bool same_servers(const KubeView *v, const KubePicture *p) {
    for (uint32_t i = 0; i < p->n_servers; i++) {
        const ClusterServer *a = &v->setup.servers[i];
        const KubeServer    *b = &p->servers[i];
        if (a->gpus != b->gpus || a->cores_milli != b->cores_milli ||
            a->memory_mib != b->memory_mib || strcmp(a->name, b->name) != 0)
            return false;
    }
    return true;
}

static bool still_valid(const KubeView *v, const KubePicture *p) {
    const ClusterSetup *s = &v->setup;
    return v->open && s->n_servers == p->n_servers && s->n_tenants == p->n_tenants &&
           s->n_slots == p->n_slots && s->fractions == p->fractions && s->no_gpus == p->no_gpus &&
           v->generation == p->generation && same_servers(v, p);
}

static uint32_t less(uint32_t a, uint32_t by) { return a > by ? a - by : 0; }

static void take_slice(KubeView *v, const ClusterSlice *x) {
    ServerState *y = &v->servers[x->server];
    uint16_t    *parts = v->parts + (y->parts - v->parts);
    uint32_t     n = v->setup.servers[x->server].gpus;
    for (uint64_t m = x->mask; m != 0; m &= m - 1) {
        uint32_t g = (uint32_t)__builtin_ctzll(m);
        if (g >= n) continue;
        uint16_t take = (uint16_t)(parts[g] < x->gpu_milli ? parts[g] : x->gpu_milli);
        y->gpus -= parts[g] == CLUSTER_WHOLE_GPU && take > 0;
        y->gpu_milli -= take;
        parts[g] = (uint16_t)(parts[g] - take);
    }
    y->cores_milli = less(y->cores_milli, x->cores_milli);
    y->memory_mib = less(y->memory_mib, x->memory_mib);
}

static void free_all(KubeView *v) {
    uint16_t *parts = v->parts;
    for (uint32_t i = 0; i < v->setup.n_servers; i++) {
        const ClusterServer *x = &v->setup.servers[i];
        v->servers[i] = (ServerState){.gpus = x->gpus,
                                      .gpu_milli = x->gpus * CLUSTER_WHOLE_GPU,
                                      .cores_milli = x->cores_milli,
                                      .memory_mib = x->memory_mib,
                                      .parts = parts};
        for (uint32_t g = 0; g < x->gpus; g++) *parts++ = CLUSTER_WHOLE_GPU;
    }
}

// Residents by server: counted first, then written, in the order in which they began to run.
static Err set_residents(KubeView *v, const KubePicture *p) {
    uint32_t all = 0, at = 0;
    for (uint32_t i = 0; i < p->n_running; i++)
        for (uint32_t k = 0; k < p->tasks[p->running[i]].n_slices; k++, all++)
            v->servers[p->tasks[p->running[i]].slices[k].server].n_residents++;
    if (v->residents == NULL || v->residents_room < all) {
        uint32_t *more = realloc(v->residents, (all + (size_t)1) * sizeof *more);
        if (more == NULL) return err_set(ERR_LIMIT, "no memory for %u running tasks", p->n_running);
        v->residents = more;
        v->residents_room = all;
    }
    for (uint32_t i = 0; i < v->setup.n_servers; i++) {
        v->servers[i].residents = v->residents + at;
        at += v->servers[i].n_residents;
        v->servers[i].n_residents = 0;
    }
    for (uint32_t i = 0; i < p->n_running; i++)
        for (uint32_t k = 0; k < p->tasks[p->running[i]].n_slices; k++) {
            ServerState *y = &v->servers[p->tasks[p->running[i]].slices[k].server];
            v->residents[(y->residents - v->residents) + y->n_residents++] = p->running[i];
        }
    return ERR_OK;
}

static Err set_state(KubeView *v, const KubePicture *p) {
    free_all(v);
    for (uint32_t i = 0; i < p->n_running; i++) {
        const ClusterTask *t = &p->tasks[p->running[i]];
        for (uint32_t k = 0; k < t->n_slices; k++) take_slice(v, &t->slices[k]);
    }
    return set_residents(v, p);
}

Err kube_view_build(KubeView *v, const KubePicture *p, const KubeRules *r, bool *anew) {
    *anew = !still_valid(v, p);
    if (*anew) TRY(make_setup(v, p, r));
    TRY(set_state(v, p));
    TimeNs   ns = v->view.now > 0 && p->now > v->view.now ? p->now - v->view.now : 0;
    uint64_t alive = v->view.alive_ns + (uint64_t)ns * (v->view.n_waiting + v->view.n_running);
    uint64_t busy =
        v->view.busy_ns + (v->view.n_waiting + v->view.n_running > 0 ? (uint64_t)ns : 0);
    v->view = (ClusterView){.now = p->now,
                            .setup = &v->setup,
                            .tasks = p->tasks,
                            .waiting = p->waiting,
                            .running = p->running,
                            .servers = v->servers,
                            .n_waiting = p->n_waiting,
                            .n_running = p->n_running,
                            .reason = p->reason,
                            .alive_ns = alive,
                            .busy_ns = busy};
    return ERR_OK;
}
