#include <string.h>

#include "base/err.h"
#include "contract/rate.h"
#include "learn/activation.h"
#include "policy/cluster/maifs/server_plan.h"

float resident_rate(const Resident *g, const TaskUtility *w) {
    return g->rate_factor * w->levels[g->level].rate;
}
float resident_utility(const Resident *g, const TaskUtility *w) {
    return w->value * resident_rate(g, w);
}

float server_plan_type_rate(const ClusterSetup *s, const TaskUtility *w, uint32_t server) {
    ClusterJob j = {.class = w->class};
    return w->class == CLUSTER_NONE ? 1 : (float)rate_gpu_type(s, &j, server);
}

float resident_fraction(const Resident *g, const TaskUtility *w) {
    return g->sliced ? (float)g->gpus / (float)w->gpus : 1;
}

static bool has_levels(const Resident *g, const TaskUtility *w) {
    return w->class != CLUSTER_NONE && !g->pinned;
}

static uint8_t rung_of(const TaskUtility *w, const ClusterSlice *s) {
    uint32_t n = task_utility_units(w, s->gpus), level = 0;
    for (uint32_t i = 1; i < w->n_levels; i++)
        if (w->levels[i].cores_milli * n <= s->cores_milli &&
            w->levels[i].memory_mib * n <= s->memory_mib)
            level = i;
    return (uint8_t)level;
}

float server_plan_corun(const ServerPlan *plan, const ClusterSetup *s, const TaskUtility *utilities,
                        uint64_t mask, uint32_t task, uint32_t besides) {
    uint32_t classes[SERVER_PLAN_RESIDENTS];
    float    least = 1;
    if (s->profiles == NULL || utilities[task].class == CLUSTER_NONE) return 1;
    for (uint64_t m = mask & plan->used; m != 0; m &= m - 1) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < plan->n; i++) {
            const Resident *g = &plan->at[i];
            if ((g->mask & m & -m) == 0 || g->task == task || g->task == besides) continue;
            if (utilities[g->task].class != CLUSTER_NONE) classes[n++] = utilities[g->task].class;
        }
        double x = profile_share(s->profiles, utilities[task].class, classes, n);
        if (x < least) least = (float)x;
    }
    return least;
}

float server_plan_spread(const ClusterSetup *s, const TaskUtility *w, uint32_t servers) {
    if (servers < 2 || w->class == CLUSTER_NONE) return 1;
    const ClusterProfile *p = &s->profiles->at[w->class];
    uint32_t              fewest = (w->gpus + s->most_gpus - 1) / s->most_gpus;
    double                default_level = profile_spread(p, w->gpus, fewest);
    return default_level > 0 ? (float)(profile_spread(p, w->gpus, servers) / default_level) : 1;
}

void server_plan_total(ServerPlan *plan, const TaskUtility *utilities) {
    plan->used = 0;
    plan->utility = 0;
    for (uint32_t i = 0; i < plan->n; i++) {
        plan->used |= plan->at[i].mask;
        const Resident *g = &plan->at[i];
        plan->utility +=
            resident_utility(g, &utilities[g->task]) * resident_fraction(g, &utilities[g->task]);
    }
}

static float rate_factor_of(const ServerPlan *plan, const ClusterSetup *s,
                            const TaskUtility *utilities, const Resident *g) {
    return g->spread_factor * server_plan_type_rate(s, &utilities[g->task], plan->server) *
           server_plan_corun(plan, s, utilities, g->mask, g->task, CLUSTER_NONE);
}

static void add_running(ServerPlan *plan, const ClusterView *v, uint32_t task,
                        const TaskUtility *utilities) {
    const ClusterTask *t = &v->tasks[task];
    for (uint32_t i = 0; i < t->n_slices; i++) {
        const ClusterSlice *s = &t->slices[i];
        if (s->server != plan->server) continue;
        Resident g = {.mask = s->mask,
                      .task = task,
                      .cores_milli = s->cores_milli,
                      .memory_mib = s->memory_mib,
                      .milli = (uint16_t)s->gpu_milli,
                      .gpus = (uint8_t)s->gpus,
                      .level = rung_of(&utilities[task], s),
                      .firm = !cluster_may_preempt(v->setup, t, v->now) || utilities[task].paced,
                      .sliced = t->n_slices > 1,
                      .cap = UTILITY_LEVELS,
                      .spread_factor = server_plan_spread(v->setup, &utilities[task], t->n_slices)};
        plan->at[plan->n++] = g;
    }
}

static bool below_lowest(const Resident *g, const TaskUtility *w) {
    uint32_t n = task_utility_units(w, g->gpus);
    return g->cores_milli < n * w->levels[0].cores_milli ||
           g->memory_mib < n * w->levels[0].memory_mib;
}

// Residents started with other beliefs, or by another policy, may have less than their lowest
// level. If the server cannot raise all of them, they keep what they have.
static void pin_below(ServerPlan *plan, const TaskUtility *utilities) {
    int64_t cores = plan->cores_milli, memory = plan->memory_mib;
    for (uint32_t i = 0; i < plan->n; i++) {
        const Resident    *g = &plan->at[i];
        const TaskUtility *w = &utilities[g->task];
        uint32_t           n = task_utility_units(w, g->gpus);
        bool               level = has_levels(g, w);
        cores -= level ? n * w->levels[0].cores_milli : g->cores_milli;
        memory -= level ? n * w->levels[0].memory_mib : g->memory_mib;
    }
    if (cores >= 0 && memory >= 0) return;
    for (uint32_t i = 0; i < plan->n; i++)
        plan->at[i].pinned = below_lowest(&plan->at[i], &utilities[plan->at[i].task]);
}

void server_plan_init(ServerPlan *plan, const ClusterView *v, uint32_t server,
                      const TaskUtility *utilities) {
    const ClusterServer *x = &v->setup->servers[server];
    const ServerState   *now = &v->servers[server];
    plan->server = server;
    plan->n = 0;
    plan->tilt = 0;
    plan->gpus = x->gpus;
    plan->cores_milli = x->cores_milli;
    plan->memory_mib = x->memory_mib;
    plan->full = now->n_residents >= SERVER_PLAN_RESIDENTS;
    for (uint32_t i = 0; i < now->n_residents && !plan->full; i++)
        add_running(plan, v, now->residents[i], utilities);
    pin_below(plan, utilities);
    server_plan_total(plan, utilities);
    for (uint32_t i = 0; i < plan->n; i++)
        plan->at[i].rate_factor = rate_factor_of(plan, v->setup, utilities, &plan->at[i]);
    server_plan_total(plan, utilities);
}

static void sort_steps(LevelStep *at, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        LevelStep x = at[i];
        uint32_t  k = i;
        for (; k > 0 && at[k - 1].density < x.density; k--) at[k] = at[k - 1];
        at[k] = x;
    }
}

static void add_steps(const ServerPlan *plan, uint32_t resident, const TaskUtility *w,
                      Headroom *f) {
    const Resident *g = &plan->at[resident];
    uint32_t        n = task_utility_units(w, g->gpus);
    float           value = w->value * g->rate_factor * resident_fraction(g, w);
    float           sharp = 1;
    if (plan->tilt != 0 && value > 0) sharp = repro_exp(plan->tilt * repro_log(value));
    for (uint32_t r = 1; r < w->n_levels && r <= g->cap; r++) {
        LevelStep s = {.utility = value * (w->levels[r].rate - w->levels[r - 1].rate),
                       .cores_milli = n * (w->levels[r].cores_milli - w->levels[r - 1].cores_milli),
                       .memory_mib = n * (w->levels[r].memory_mib - w->levels[r - 1].memory_mib),
                       .resident = (uint8_t)resident,
                       .level = (uint8_t)r};
        float     cost = (float)s.cores_milli / (float)(plan->cores_milli + 1) +
                     (float)s.memory_mib / (float)(plan->memory_mib + 1) + 1e-9f;
        s.density = s.utility / cost * sharp;
        if (r > 1 && s.density > f->at[f->n - 1].density)  // against rounding: levels stay in order
            s.density = f->at[f->n - 1].density;
        f->at[f->n++] = s;
    }
}

void server_plan_headroom(const ServerPlan *plan, const VictimSet *victims,
                          const TaskUtility *utilities, Headroom *f) {
    f->utility = 0;
    f->cores_milli = plan->cores_milli;
    f->memory_mib = plan->memory_mib;
    f->n = 0;
    for (uint32_t i = 0; i < plan->n; i++) {
        const Resident    *g = &plan->at[i];
        const TaskUtility *w = &utilities[g->task];
        if (victims != NULL && victim_set_has(victims, i)) continue;
        if (!has_levels(g, w)) {
            f->cores_milli -= g->cores_milli;
            f->memory_mib -= g->memory_mib;
            f->utility += resident_utility(g, w) * resident_fraction(g, w);
            continue;
        }
        f->cores_milli -= (int64_t)task_utility_units(w, g->gpus) * w->levels[0].cores_milli;
        f->memory_mib -= (int64_t)task_utility_units(w, g->gpus) * w->levels[0].memory_mib;
        f->utility += w->value * g->rate_factor * w->levels[0].rate * resident_fraction(g, w);
        add_steps(plan, i, w, f);
    }
    sort_steps(f->at, f->n);
}

// If its next level does not fit, a resident keeps its level; others may still go up.
static double take_steps(const Headroom *f, int64_t cores, int64_t memory, ServerPlan *plan) {
    double    utility = f->utility;
    VictimSet stuck = {{0}};
    for (uint32_t i = 0; i < f->n; i++) {
        const LevelStep *s = &f->at[i];
        if (victim_set_has(&stuck, s->resident)) continue;
        if (s->cores_milli > cores || s->memory_mib > memory) {
            victim_set_put(&stuck, s->resident, true);
            continue;
        }
        cores -= s->cores_milli;
        memory -= s->memory_mib;
        utility += s->utility;
        if (plan != NULL) plan->at[s->resident].level = s->level;
    }
    return utility;
}

double headroom_utility(const Headroom *f, int64_t cores_milli, int64_t memory_mib) {
    return take_steps(f, cores_milli, memory_mib, NULL);
}

void server_plan_remove(ServerPlan *plan, uint32_t task) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n; i++)
        if (plan->at[i].task != task) plan->at[n++] = plan->at[i];
    plan->n = n;
}

void server_plan_add(ServerPlan *plan, const Resident *g) {
    plan->at[plan->n++] = *g;
    plan->used |= g->mask;
}

// Thousandths of a GPU: as requested, or equal parts if the requests exceed the GPU.
static uint32_t milli_of(const ServerPlan *plan, const TaskUtility *utilities, const Resident *g) {
    uint32_t milli = utilities[g->task].milli;
    for (uint64_t m = g->mask; m != 0; m &= m - 1) {
        uint32_t n = 0, asked = 0;
        for (uint32_t i = 0; i < plan->n; i++) {
            if ((plan->at[i].mask & m & -m) == 0) continue;
            asked += utilities[plan->at[i].task].milli;
            n++;
        }
        if (asked > CLUSTER_WHOLE_GPU && CLUSTER_WHOLE_GPU / n < milli)
            milli = CLUSTER_WHOLE_GPU / n;
    }
    return milli;
}

static void share_gpus(ServerPlan *plan, const ClusterSetup *s, const TaskUtility *utilities) {
    for (uint32_t i = 0; i < plan->n; i++) {
        Resident *g = &plan->at[i];
        g->milli = (uint16_t)milli_of(plan, utilities, g);
        g->rate_factor = rate_factor_of(plan, s, utilities, g);
    }
}

void server_plan_allocate(ServerPlan *plan, const ClusterSetup *s, const TaskUtility *utilities) {
    Headroom f;
    server_plan_total(plan, utilities);
    share_gpus(plan, s, utilities);
    server_plan_headroom(plan, NULL, utilities, &f);
    CHECK(f.cores_milli >= 0 && f.memory_mib >= 0);
    for (uint32_t i = 0; i < plan->n; i++)
        if (has_levels(&plan->at[i], &utilities[plan->at[i].task])) plan->at[i].level = 0;
    take_steps(&f, f.cores_milli, f.memory_mib, plan);
    for (uint32_t i = 0; i < plan->n; i++) {
        Resident          *g = &plan->at[i];
        const TaskUtility *w = &utilities[g->task];
        if (!has_levels(g, w)) continue;
        g->cores_milli = task_utility_units(w, g->gpus) * w->levels[g->level].cores_milli;
        g->memory_mib = task_utility_units(w, g->gpus) * w->levels[g->level].memory_mib;
    }
    server_plan_total(plan, utilities);
}

uint64_t gpu_mask_all(uint32_t gpus) { return gpus >= 64 ? UINT64_MAX : (UINT64_C(1) << gpus) - 1; }

uint64_t gpu_mask_lowest(uint64_t mask, uint32_t n) {
    uint64_t out = 0;
    for (; n > 0; n--) {
        out |= mask & -mask;
        mask &= mask - 1;
    }
    return out;
}

static void sort_victims(const ServerPlan *plan, const TaskUtility *utilities, VictimOrder *r) {
    r->n_order = 0;
    for (uint32_t i = 0; i < plan->n; i++) {
        const Resident    *g = &plan->at[i];
        const TaskUtility *w = &utilities[g->task];
        if (g->incoming || g->firm || g->gpus == 0) continue;
        VictimRank x = {resident_utility(g, w) / (float)w->gpus, (uint8_t)i};
        uint32_t   k = r->n_order++;
        for (; k > 0 && r->order[k - 1].density > x.density; k--) r->order[k] = r->order[k - 1];
        r->order[k] = x;
    }
}

void victim_order_init(VictimOrder *r, const ServerPlan *plan, const TaskUtility *utilities) {
    r->n = plan->n;
    r->cores_left = plan->cores_milli;
    r->memory_left = plan->memory_mib;
    for (uint32_t i = 0; i < plan->n; i++) {
        const Resident    *g = &plan->at[i];
        const TaskUtility *w = &utilities[g->task];
        bool               level = has_levels(g, w);
        uint32_t           units = task_utility_units(w, g->gpus);
        r->mask[i] = g->mask;
        r->cores_milli[i] = level ? units * w->levels[0].cores_milli : g->cores_milli;
        r->memory_mib[i] = level ? units * w->levels[0].memory_mib : g->memory_mib;
        r->cores_left -= r->cores_milli[i];
        r->memory_left -= r->memory_mib[i];
    }
    sort_victims(plan, utilities, r);
}

typedef struct VictimSearch {
    const VictimOrder *order;
    VictimSet          victims;
    int64_t            cores_left, memory_left;  // after the evictions and with the new task
    uint64_t           all;                      // GPUs
    uint32_t           gpus;
} VictimSearch;

static void set_victim(VictimSearch *x, uint32_t resident, bool elsewhere) {
    int64_t cores = x->order->cores_milli[resident], memory = x->order->memory_mib[resident];
    victim_set_put(&x->victims, resident, elsewhere);
    x->cores_left += elsewhere ? cores : -cores;
    x->memory_left += elsewhere ? memory : -memory;
}

static uint64_t free_then(const VictimSearch *x) {
    uint64_t used = 0;
    for (uint32_t i = 0; i < x->order->n; i++)
        if (!victim_set_has(&x->victims, i)) used |= x->order->mask[i];
    return x->all & ~used;
}

static bool enough(const VictimSearch *x) {
    return x->cores_left >= 0 && x->memory_left >= 0 &&
           (uint32_t)__builtin_popcountll(free_then(x)) >= x->gpus;
}

bool victim_order_pick(const VictimOrder *r, const ServerPlan *plan, const TaskUtility *w,
                       uint32_t gpus, bool evict, VictimSet *out, uint64_t *mask) {
    uint32_t     n_victims = 0, units = task_utility_units(w, gpus);
    VictimSearch x = {.order = r, .all = gpu_mask_all(plan->gpus), .gpus = gpus};
    if (gpus > plan->gpus || plan->n + 1 >= SERVER_PLAN_RESIDENTS || plan->full) return false;
    x.cores_left = r->cores_left - (int64_t)units * w->levels[0].cores_milli;
    x.memory_left = r->memory_left - (int64_t)units * w->levels[0].memory_mib;
    bool fits = enough(&x);
    if (!fits && (!evict || gpus == 0)) return false;
    while (!fits && n_victims < r->n_order) {
        set_victim(&x, r->order[n_victims++].resident, true);
        fits = enough(&x);
    }
    if (!fits) return false;
    for (uint32_t i = n_victims; i-- > 0;) {
        set_victim(&x, r->order[i].resident, false);
        if (!enough(&x)) set_victim(&x, r->order[i].resident, true);
    }
    *out = x.victims;
    *mask = gpu_mask_lowest(free_then(&x), gpus);
    return true;
}
