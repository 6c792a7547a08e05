// PolicyInstance: a policy's state for the current tenants. A new one is built beside the old and
// swapped in atomically; the old one is freed when no request uses its versions.
#include <string.h>

#include "node/live/live_int.h"

enum { PAGE = 4096, HOLE_NS = 1000000000 };
enum { QUANTUM_LEAST_NS = 1000000, QUANTUM_MOST_NS = 4000000, QUANTUM_PARTS = 10 };

static const NodeLayer hole_layer = {.name = "", .n_versions = 1};
#define TEN_ONES 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
static const float hole_times[NODE_VERSIONS * NODE_LEVELS] = {TEN_ONES, TEN_ONES, TEN_ONES,
                                                              TEN_ONES, TEN_ONES};
static const float hole_rest[2 * NODE_LEVELS] = {TEN_ONES};
_Static_assert(NODE_LEVELS == 10 && NODE_VERSIONS == 5, "tables of an empty slot are written out");
static const uint8_t hole_picks[NODE_LEVELS];

// Placeholder model for an empty slot.
static const NodeModel hole = {.name = "",
                               .n_layers = 1,
                               .n_counts = 1,
                               .counts = {1},
                               .layers = &hole_layer,
                               .times = hole_times,
                               .rest_best = hole_rest,
                               .rest_solo = hole_rest,
                               .picks = hole_picks};

void live_free_retired(NodeLive *l) {
    PolicyInstance *r = atomic_exchange(&l->retired, NULL);
    while (r != NULL) {
        Arena a = r->arena;
        r = r->next;
        arena_finish(&a);
    }
}

static void retire(NodeLive *l, PolicyInstance *r) {
    r->next = atomic_load(&l->retired);
    while (!atomic_compare_exchange_weak(&l->retired, &r->next, r)) continue;
}

void policy_instance_release(NodeLive *l, PolicyInstance *r) {
    if (r != NULL && --r->held == 0 && r != l->rule) retire(l, r);
}

static Err check_setup(const NodeLive *l, const NodeMachine *m) {
    if (m->n_cores <= l->o.cores) return ERR_OK;
    return err_set(ERR_ARG, "the machine has %u cores, the engine %u", m->n_cores, l->o.cores);
}

static Err make_state(PolicyInstance *r, const void *settings, size_t bytes) {
    r->state = arena_try(&r->arena, bytes, 1, 64);
    if (r->state == NULL) return err_set(ERR_LIMIT, "no memory for policy %s", r->policy->name);
    if (r->policy->init != NULL) r->policy->init(r->state, &r->setup, settings);
    return ERR_OK;
}

// A tenth of the least target: what a policy would choose, within limits.
static TimeNs quantum_of(const NodeSetup *setup) {
    TimeNs least = QUANTUM_MOST_NS * QUANTUM_PARTS;
    for (uint32_t i = 0; i < setup->n_tenants; i++)
        if (setup->tenants[i].qos_ns < least) least = setup->tenants[i].qos_ns;
    return least / QUANTUM_PARTS > QUANTUM_LEAST_NS ? least / QUANTUM_PARTS : QUANTUM_LEAST_NS;
}

static Err make_rule(const NodePolicy *policy, const void *settings, const NodeSetup *setup,
                     PolicyInstance **out) {
    size_t bytes = policy->state_size != NULL ? policy->state_size(setup, settings) : 0;
    size_t tenants = setup->n_tenants * sizeof(NodeTenant);
    Arena  a;
    TRY(arena_init(&a, sizeof(PolicyInstance) + tenants + bytes + PAGE));
    PolicyInstance *r = arena_try_new(&a, PolicyInstance, 1);
    NodeTenant     *own = arena_try_new(&a, NodeTenant, setup->n_tenants);
    Err             e = ERR_OK;
    if (r == NULL || own == NULL) {
        arena_finish(&a);
        return err_set(ERR_LIMIT, "no memory for %u tenants", setup->n_tenants);
    }
    memcpy(own, setup->tenants, tenants);
    *r = (PolicyInstance){.arena = a, .policy = policy, .setup = *setup};
    r->setup.tenants = own;
    r->quantum_ns = quantum_of(setup);
    e = make_state(r, settings, bytes);
    if (e == ERR_OK) {
        *out = r;
        return ERR_OK;
    }
    arena_finish(&a);
    return e;
}

// The interference monitor is kept while the machine is the same.
static void take_over(NodeLive *l, PolicyInstance *r, bool learned) {
    PolicyInstance     *old = NULL;
    InterferenceMonitor watch;
    interference_init(&watch, &(InterferenceOptions){0}, r->setup.machine);
    sched_lock(l);
    old = l->rule;
    watch.running = l->watch.running;
    if (!learned || old == NULL || old->setup.machine != r->setup.machine) l->watch = watch;
    r->number = ++l->rules;
    l->rule = r;
    for (uint32_t i = 0; i < l->n_models; i++)
        l->models[i].served = i < r->setup.n_tenants && l->models[i].program != NULL;
    if (old != NULL && old->held == 0) retire(l, old);
    sched_unlock(l);
    live_free_retired(l);
}

Err node_live_use(NodeLive *l, const NodePolicy *policy, const void *settings,
                  const NodeSetup *setup) {
    PolicyInstance *r = NULL;
    if (setup->n_tenants > l->n_models)
        return err_set(ERR_ARG, "%u tenants, and %u were added", setup->n_tenants, l->n_models);
    TRY(check_setup(l, setup->machine));
    TRY(make_rule(policy, settings, setup, &r));
    take_over(l, r, false);
    return ERR_OK;
}

// Joined tenants by number. An empty slot takes a neighbour's target, so that it is neither
// the smallest nor the largest.
static void list_tenants(const NodeLive *l, NodeTenant *out, uint32_t n) {
    TimeNs usual = HOLE_NS;
    for (uint32_t i = 0; i < l->n_models; i++)
        if (l->models[i].program != NULL) usual = l->models[i].tenant.qos_ns;
    for (uint32_t i = 0; i < n; i++) {
        const LiveModel *m = &l->models[i];
        bool             here = i < l->n_models && m->program != NULL;
        out[i] = here ? m->tenant : (NodeTenant){.model = &hole, .name = "", .qos_ns = usual};
        if (out[i].priority == 0) out[i].priority = 1;
    }
}

Err node_live_set_policy(NodeLive *l, const NodePolicy *p, const void *settings,
                         const NodeMachine *m) {
    uint32_t        n = l->n_models > 0 ? l->n_models : 1;
    Arena           a;
    PolicyInstance *r = NULL;
    TRY(check_setup(l, m));
    TRY(arena_init(&a, n * sizeof(NodeTenant) + PAGE));
    NodeTenant *tenants = arena_try_new(&a, NodeTenant, n);
    Err         e = tenants != NULL ? ERR_OK : err_set(ERR_LIMIT, "no memory for %u tenants", n);
    if (e == ERR_OK) {
        list_tenants(l, tenants, n);
        e = make_rule(p, settings, &(NodeSetup){m, tenants, n}, &r);
    }
    arena_finish(&a);
    if (e == ERR_OK) take_over(l, r, true);
    return e;
}
