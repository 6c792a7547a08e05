#include "policy/cluster/maifs/offer.h"

#include <math.h>

#include "policy/cluster/maifs/server_plan.h"

typedef struct Eviction {  // victims and headroom for tasks of one size
    VictimSet evicted;
    Headroom  headroom;
    uint64_t  mask;
    float     lost, restart_cost;  // utility of the victims; of their restart time
    float     elsewhere;           // utility of the victims' slices on other servers
    uint32_t  gpus, victims;
    bool      fits, has_headroom;
} Eviction;

static bool server_fits(const OfferContext *d, const ServerPlan *plan, const TaskUtility *w) {
    uint32_t i = plan->server;
    if (w->servers != NULL && (w->servers[i / 64] >> i % 64 & 1) == 0) return false;
    return w->types == 0 || (w->types >> d->setup->servers[i].type & 1) != 0;
}

static uint64_t free_of(const ServerPlan *plan, const VictimSet *evicted) {
    uint64_t used = 0;
    for (uint32_t i = 0; i < plan->n; i++)
        if (!victim_set_has(evicted, i)) used |= plan->at[i].mask;
    return gpu_mask_all(plan->gpus) & ~used;
}

bool offer_victims(const OfferContext *d, const ServerPlan *plan, const TaskUtility *w,
                   uint32_t gpus, VictimSet *out, uint64_t *mask) {
    VictimOrder r;
    victim_order_init(&r, plan, d->utilities);
    return victim_order_pick(&r, plan, w, gpus, d->params.evict, out, mask);
}

static void plan_eviction(const OfferContext *d, const ServerPlan *plan, const VictimOrder *by,
                          const TaskUtility *w, uint32_t gpus, Eviction *r) {
    r->gpus = gpus;
    r->victims = 0;
    r->lost = r->restart_cost = r->elsewhere = 0;
    r->has_headroom = false;
    r->fits = victim_order_pick(by, plan, w, gpus, d->params.evict, &r->evicted, &r->mask);
    if (!r->fits) return;
    for (uint32_t i = 0; i < plan->n; i++) {
        const Resident    *g = &plan->at[i];
        const TaskUtility *x = &d->utilities[g->task];
        if (!victim_set_has(&r->evicted, i)) continue;
        r->victims++;
        r->lost += resident_utility(g, x) * resident_fraction(g, x);
        r->elsewhere += resident_utility(g, x) * (1 - resident_fraction(g, x));
        r->restart_cost += x->value * x->restart_s * resident_fraction(g, x);
    }
}

// Utility of the other residents with the task at a level; -1: it does not fit. With
// ignore_levels the residents keep their current utility.
static double utility_after(const OfferContext *d, const ServerPlan *plan, const Eviction *r,
                            const TaskUtility *w, uint32_t units, uint32_t level) {
    int64_t cores = r->headroom.cores_milli - (int64_t)units * w->levels[level].cores_milli;
    int64_t memory = r->headroom.memory_mib - (int64_t)units * w->levels[level].memory_mib;
    if (cores < 0 || memory < 0) return -1;
    if (d->params.ignore_levels) {
        double utility = plan->utility;
        for (uint32_t i = 0; i < plan->n; i++)
            if (victim_set_has(&r->evicted, i))
                utility -= resident_utility(&plan->at[i], &d->utilities[plan->at[i].task]) *
                           resident_fraction(&plan->at[i], &d->utilities[plan->at[i].task]);
        return utility;
    }
    return headroom_utility(&r->headroom, cores, memory);
}

// Rate factor of a gang in slices of this size.
static float slices_factor(const OfferContext *d, const TaskUtility *w, uint32_t gpus) {
    if (gpus == 0 || gpus >= w->gpus) return 1;
    return server_plan_spread(d->setup, w, (w->gpus + gpus - 1) / gpus);
}

static uint32_t offers_exclusive(const OfferContext *d, const ServerPlan *plan,
                                 const TaskUtility *w, uint32_t task, const Eviction *r,
                                 Offer *out) {
    uint32_t n = 0, units = task_utility_units(w, r->gpus);
    float    part = w->gpus > 0 ? (float)r->gpus / (float)w->gpus : 1;
    float factor = server_plan_type_rate(d->setup, w, plan->server) * slices_factor(d, w, r->gpus);
    bool  slice = r->gpus < w->gpus, cut = slice && !w->wide;
    uint32_t first = d->params.ignore_levels ? w->default_level : 0;
    uint32_t last = d->params.ignore_levels ? w->default_level + 1 : w->n_levels;
    for (uint32_t l = first; l < last; l++) {
        double rest = utility_after(d, plan, r, w, units, l);
        if (rest < 0) break;
        if (cut && w->levels[l].rate * factor < 1) continue;
        float own = w->value * w->levels[l].rate * part * factor;
        float restart_cost = d->params.restart_weight * r->restart_cost / w->left_s;
        out[n++] = (Offer){.mask = r->mask,
                           .task = task,
                           .give = (uint16_t)units,
                           .level = (uint8_t)l,
                           .victims = (uint8_t)r->victims,
                           .gain = own + (float)(rest - plan->utility) - restart_cost -
                                   (slice ? 0 : r->elsewhere) - d->params.evict_margin * r->lost,
                           .own = own,
                           .lost = r->lost + r->elsewhere,
                           .rate = w->levels[l].rate * factor};
    }
    return n;
}

// Tasks with at most this much left may join one that shares no GPU.
static const float short_s = 600;

// Utility that residents on the GPUs lose to a joining task; below 0: it cannot join.
static float harm(const OfferContext *d, const ServerPlan *plan, uint64_t mask, uint32_t task,
                  uint32_t *corunners) {
    float lost = 0;
    *corunners = 0;
    for (uint32_t i = 0; i < plan->n; i++) {
        const Resident    *g = &plan->at[i];
        const TaskUtility *x = &d->utilities[g->task];
        if ((g->mask & mask) == 0) continue;
        if (mask != (mask & -mask) && g->mask != mask) return -1;
        if (g->incoming || x->class == CLUSTER_NONE) return -1;
        if (x->settled && d->utilities[task].left_s > short_s) return -1;
        float by = (float)profile_pair(d->setup->profiles, x->class, d->utilities[task].class);
        if (!(by > 0) || ++*corunners >= d->params.gpu_tasks) return -1;
        lost += resident_utility(g, x) * (1 - by);
    }
    return lost;
}

// Residents with room for one more task on their first GPU; each such GPU once.
static void find_shareable(const OfferContext *d, const ServerPlan *plan, VictimSet *out) {
    uint64_t seen = 0;
    *out = (VictimSet){{0}};
    for (uint32_t i = 0; i < plan->n; i++) {
        uint64_t gpu = plan->at[i].mask & -plan->at[i].mask;
        uint32_t corunners = 0;
        if (gpu == 0 || (seen & gpu) != 0) continue;
        seen |= gpu;
        for (uint32_t k = 0; k < plan->n && corunners < d->params.gpu_tasks; k++) {
            const Resident *g = &plan->at[k];
            if ((g->mask & gpu) == 0) continue;
            bool can = !g->incoming && d->utilities[g->task].class != CLUSTER_NONE;
            corunners = can ? corunners + 1 : d->params.gpu_tasks;
        }
        if (corunners < d->params.gpu_tasks) victim_set_put(out, i, true);
    }
}

typedef struct SharedGpu {
    uint64_t mask;
    float    rate_factor, lost;
    uint32_t corunners;
} SharedGpu;

typedef struct SharedGpus {  // GPUs that tasks of one class and size may join
    uint32_t class, gpus, n;
    SharedGpu at[SERVER_PLAN_RESIDENTS];
} SharedGpus;

static void find_shared(const OfferContext *d, const ServerPlan *plan, const VictimSet *open,
                        uint32_t task, SharedGpus *out) {
    const TaskUtility *w = &d->utilities[task];
    float              factor = server_plan_type_rate(d->setup, w, plan->server);
    out->class = w->class;
    out->gpus = w->gpus;
    out->n = 0;
    for (uint32_t i = 0; i < plan->n; i++) {
        SharedGpu s = {.mask = plan->at[i].mask};
        if (w->gpus == 1 && !victim_set_has(open, i)) continue;
        if (w->gpus == 1) s.mask &= -s.mask;
        if (s.mask == 0 || (w->gpus > 1 && (plan->at[i].gpus != w->gpus || plan->at[i].sliced)))
            continue;
        s.lost = harm(d, plan, s.mask, task, &s.corunners);
        if (s.lost < 0) continue;
        s.rate_factor =
            factor * server_plan_corun(plan, d->setup, d->utilities, s.mask, task, CLUSTER_NONE);
        if (s.rate_factor > 0) out->at[out->n++] = s;
    }
}

static const SharedGpu *best_shared(const SharedGpus *from, const TaskUtility *w) {
    float            most = w->value * w->levels[w->n_levels - 1].rate, best = 0;
    const SharedGpu *at = NULL;
    for (uint32_t i = 0; i < from->n; i++) {
        const SharedGpu *s = &from->at[i];
        float            gain = w->value * s->rate_factor - s->lost;
        if (s->lost >= most || (at != NULL && !(gain > best))) continue;
        best = gain;
        at = s;
    }
    return at;
}

static uint32_t offers_shared(const ServerPlan *plan, const TaskUtility *w, uint32_t task,
                              const Headroom *f, const SharedGpus *shared, Offer *out) {
    uint32_t         n = 0;
    const SharedGpu *gpu = best_shared(shared, w);
    if (gpu == NULL) return 0;
    for (uint32_t l = 0; l < w->n_levels; l++) {
        int64_t cores = f->cores_milli - (int64_t)w->gpus * w->levels[l].cores_milli;
        int64_t memory = f->memory_mib - (int64_t)w->gpus * w->levels[l].memory_mib;
        if (cores < 0 || memory < 0) break;
        float  own = w->value * w->levels[l].rate * gpu->rate_factor;
        double rest = headroom_utility(f, cores, memory);
        out[n++] = (Offer){.mask = gpu->mask,
                           .task = task,
                           .give = (uint16_t)w->gpus,
                           .level = (uint8_t)l,
                           .corunners = (uint8_t)gpu->corunners,
                           .gain = own - gpu->lost + (float)(rest - plan->utility),
                           .own = own,
                           .lost = gpu->lost,
                           .rate = w->levels[l].rate * gpu->rate_factor};
    }
    return n;
}

typedef struct EvictionKey {  // tasks with equal needs share an Eviction
    uint32_t gpus, cores_milli, memory_mib;
} EvictionKey;

enum { EVICTIONS = 16, SHARED = 16 };

struct OfferSpace {     // what the requests to one server share
    Eviction    as_is;  // without victims
    float       least;  // utility of the least useful resident
    float       harm;   // least harm that any co-runner does
    VictimOrder rank;
    VictimSet   open;             // see find_shareable
    EvictionKey keys[EVICTIONS];  // the latest ones
    Eviction    evictions[EVICTIONS];
    SharedGpus  shared[SHARED];
    uint32_t    n_evictions, n_shared;  // made so far
    bool        ranked;
};

static bool same_key(const EvictionKey *a, const EvictionKey *b) {
    return a->gpus == b->gpus && a->cores_milli == b->cores_milli && a->memory_mib == b->memory_mib;
}

static Eviction *eviction_for(const OfferContext *d, const ServerPlan *plan, OfferSpace *p,
                              const TaskUtility *w, uint32_t gpus) {
    uint32_t units = task_utility_units(w, gpus),
             n = p->n_evictions < EVICTIONS ? p->n_evictions : EVICTIONS;
    EvictionKey key = {gpus, units * w->levels[0].cores_milli, units * w->levels[0].memory_mib};
    for (uint32_t i = 0; i < n; i++)
        if (same_key(&p->keys[i], &key)) return &p->evictions[i];
    if (!p->ranked) victim_order_init(&p->rank, plan, d->utilities);
    p->ranked = true;
    uint32_t at = p->n_evictions++ % EVICTIONS;
    p->keys[at] = key;
    plan_eviction(d, plan, &p->rank, w, gpus, &p->evictions[at]);
    return &p->evictions[at];
}

static void prepare(const OfferContext *d, const ServerPlan *plan, OfferSpace *p) {
    p->as_is.fits = p->as_is.has_headroom = true;
    p->as_is.evicted = (VictimSet){{0}};
    p->as_is.lost = p->as_is.restart_cost = p->as_is.elsewhere = 0;
    p->as_is.victims = p->n_evictions = p->n_shared = 0;
    p->ranked = false;
    p->as_is.mask = free_of(plan, &p->as_is.evicted);
    p->as_is.gpus = (uint32_t)__builtin_popcountll(p->as_is.mask);
    p->least = p->harm = INFINITY;
    server_plan_headroom(plan, &p->as_is.evicted, d->utilities, &p->as_is.headroom);
    find_shareable(d, plan, &p->open);
    for (uint32_t i = 0; i < plan->n; i++) {
        const TaskUtility *w = &d->utilities[plan->at[i].task];
        float              utility = resident_utility(&plan->at[i], w);
        if (plan->at[i].gpus == 0) continue;
        if (!plan->at[i].firm) p->least = fminf(p->least, utility);
        if (w->class != CLUSTER_NONE) p->harm = fminf(p->harm, utility * d->harm[w->class]);
    }
}

static bool fits_as_is(const OfferSpace *p, const ServerPlan *plan, const TaskUtility *w,
                       uint32_t gpus) {
    const Headroom *f = &p->as_is.headroom;
    uint32_t        n = task_utility_units(w, gpus);
    return p->as_is.gpus >= gpus && plan->n + 1 < SERVER_PLAN_RESIDENTS &&
           f->cores_milli >= (int64_t)n * w->levels[0].cores_milli &&
           f->memory_mib >= (int64_t)n * w->levels[0].memory_mib;
}

static bool is_resident(const ServerPlan *plan, uint32_t task) {
    for (uint32_t i = 0; i < plan->n; i++)
        if (plan->at[i].task == task) return true;
    return false;
}

static const SharedGpus *shared_for(const OfferContext *d, const ServerPlan *plan, OfferSpace *p,
                                    uint32_t task) {
    const TaskUtility *w = &d->utilities[task];
    uint32_t           n = p->n_shared < SHARED ? p->n_shared : SHARED;
    for (uint32_t i = 0; i < n; i++)
        if (p->shared[i].class == w->class && p->shared[i].gpus == w->gpus) return &p->shared[i];
    SharedGpus *to = &p->shared[p->n_shared++ % SHARED];
    find_shared(d, plan, &p->open, task, to);
    return to;
}

static bool may_share(const OfferContext *d, const ServerPlan *plan, const TaskUtility *w) {
    return d->params.gpu_tasks > 1 && !w->settles && w->class != CLUSTER_NONE && w->gpus > 0 &&
           plan->n + 1 < SERVER_PLAN_RESIDENTS;
}

static uint32_t offers_to(const OfferContext *d, const ServerPlan *plan, OfferSpace *p,
                          const OfferRequest *request, Offer *out) {
    const TaskUtility *w = &d->utilities[request->task];
    uint32_t           task = request->task, made = 0;
    bool               cut = w->wide || request->gpus < w->gpus;
    uint32_t           gpus = cut && plan->gpus < request->gpus ? plan->gpus : request->gpus;
    float              most = w->value * w->levels[w->n_levels - 1].rate;
    bool               fits = fits_as_is(p, plan, w, gpus);
    bool               shares = gpus == w->gpus && most > p->harm && may_share(d, plan, w);
    if (!fits && !shares && !(most > p->least)) return 0;
    if (is_resident(plan, task)) return 0;
    if (fits) {
        uint64_t all = p->as_is.mask;
        uint32_t free = p->as_is.gpus;
        p->as_is.mask = gpu_mask_lowest(all, gpus);
        p->as_is.gpus = gpus;
        made = offers_exclusive(d, plan, w, task, &p->as_is, out);
        p->as_is.mask = all;
        p->as_is.gpus = free;
    } else if (most > p->least) {
        Eviction *eviction = eviction_for(d, plan, p, w, gpus);
        if (eviction->fits && most > eviction->lost + (gpus < w->gpus ? 0 : eviction->elsewhere)) {
            if (!eviction->has_headroom)
                server_plan_headroom(plan, &eviction->evicted, d->utilities, &eviction->headroom);
            eviction->has_headroom = true;
            made = offers_exclusive(d, plan, w, task, eviction, out);
        }
    }
    if (shares)
        made += offers_shared(plan, w, task, &p->as_is.headroom, shared_for(d, plan, p, task),
                              out + made);
    return made;
}

uint32_t offer_make(const OfferContext *d, const ServerPlan *plan, const OfferRequest *requests,
                    uint32_t n, Offer *out) {
    OfferSpace *p = d->space;
    uint32_t    made = 0;
    if (plan->full) return 0;
    prepare(d, plan, p);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t first = made;
        if (server_fits(d, plan, &d->utilities[requests[k].task]))
            made += offers_to(d, plan, p, &requests[k], out + made);
        for (uint32_t i = first; i < made; i++) {
            out[i].request = k;
            out[i].holder = CLUSTER_NONE;
        }
    }
    return made;
}

OfferSpace *offer_carve(Carve *from) { return carve(from, OfferSpace, 1); }

void offer_context_init(OfferContext *d) {
    const ClusterProfiles *p = d->setup->profiles;
    for (uint32_t a = 0; p != NULL && a < p->n; a++) {
        double gentlest = 0;
        for (uint32_t b = 0; b < p->n; b++) gentlest = fmax(gentlest, profile_pair(p, a, b));
        d->harm[a] = (float)(1 - gentlest);
    }
}
