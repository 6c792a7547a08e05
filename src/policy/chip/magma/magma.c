// magma: a genetic search for the units and the order of the next layers, every period
//
// 1. A group of jobs, the next `depth` layers of tasks up to `jobs` in all, is scheduled together.
//    A genome has two genes per job: the kind of unit and a priority. The paper names a single
//    unit; units of a kind are alike here, so that the kind is enough.
// 2. A genome is decoded by simulation: every free unit takes the ready job of the highest priority
//    for its kind; all layers slow down alike when they demand more bandwidth than the memory has.
//    The paper's jobs are independent; here a layer waits for the one before it.
// 3. The cost of a genome is its makespan, in periods, plus `late` for every request that would
// miss
//    its deadline if the layers after the group took `safety_factor` times their best case. With
//    late = 0 it is the paper's cost.
// 4. The search starts from the last period's best genome, carried over job by job, and from a list
//    schedule by deadline; the rest of the first generation are mutants of these. Then crossovers
//    (one row from a point on; a range of both rows; all jobs of one kind), mutation, elite and
//    parents as in the paper, until `evaluations` are spent. Each simulated step is charged as one
//    operation of the package's controller.
// 5. When the tasks have not changed since the last search, there is none. Between two plans units
//    follow the genome; a request beyond its planned layers keeps its priority, new ones follow.
//
// depth, late, safety_factor, patience and mutation were chosen on traces of seeds 1 to 99 with
// bench/chip_tune.c; one layer per request, which are the paper's independent jobs, was best. From
// 20 to 100 evaluations the result is the same within half a point.
#include <math.h>

#include "policy/chip/common/feasibility.h"
#include "policy/chip/magma/magma_search.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(jobs, int, 64, 8, MAGMA_JOBS, "jobs of a group, at most")                                    \
    X(depth, int, 1, 1, LAYER_PLAN_DEPTH, "layers of a request in a group")                        \
    X(population, int, 20, 4, MAGMA_POPULATION, "genomes of a generation")                         \
    X(evaluations, int, 40, 2, 1000000, "genomes evaluated every period")                          \
    X(elite, double, 0.05, 0.0, 1.0, "share of a generation that is kept")                         \
    X(parents, double, 0.1, 0.0, 1.0, "share of a generation that is bred from")                   \
    X(single, double, 0.9, 0.0, 1.0, "probability of a crossover of one row")                      \
    X(range, double, 0.1, 0.0, 1.0, "probability of a crossover of a range")                       \
    X(whole, double, 0.1, 0.0, 1.0, "probability of a crossover of all jobs of a kind")            \
    X(mutation, double, 0.05, 0.0, 1.0, "probability of a gene to change")                         \
    X(late, double, 0.15, 0.0, 1000.0, "cost of a late request, in periods of makespan")           \
    FEASIBILITY_SETTINGS(X, LATE_DROP, 9.3)                                                        \
    PATIENCE_SETTING(X, 1.3)

typedef struct MagmaSettings {
    SETTINGS(SETTING_FIELD)
} MagmaSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(MagmaSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Magma {
    MagmaSettings cfg;
    LayerPlan     layer_plan;
    MagmaGroup    group;
    MagmaSearch   search;
    UnitTimeline  timeline;
    uint64_t      known;  // hash of the tasks at the last search
    bool          fresh;  // the last plan() has written a draft
} Magma;

static void *carve_all(const ChipSetup *s, const void *settings, Carve *from) {
    const MagmaSettings *cfg = settings;
    LayerPlan            layer_plan;
    MagmaSearch          search;
    Magma               *m = carve(from, Magma, 1);
    layer_plan_carve(&layer_plan, s->n_slots, from);
    magma_search_carve(&search, (uint32_t)cfg->population, from);
    if (m != NULL) {
        m->layer_plan = layer_plan;
        m->search = search;
    }
    return m;
}

static size_t size(const ChipSetup *setup, const void *settings) {
    return state_size(carve_all, setup, settings);
}

static void init(void *state, const ChipSetup *setup, const void *settings, const void *loaded) {
    (void)loaded;
    const MagmaSettings *cfg = settings;
    Magma               *m = state_place(carve_all, setup, settings, state);
    m->cfg = *cfg;
    m->search.rng = setup->rng;
    m->search.cfg = (MagmaParams){.population = (uint32_t)cfg->population,
                                  .evaluations = (uint32_t)cfg->evaluations,
                                  .elite = cfg->elite,
                                  .parents = cfg->parents,
                                  .single = cfg->single,
                                  .range = cfg->range,
                                  .whole = cfg->whole,
                                  .mutation = cfg->mutation,
                                  .late = cfg->late};
}

// By deadline, infeasible tasks last.
static double key_of(const void *self, const ChipView *v, const ChipTask *t, bool late) {
    (void)self;
    (void)v;
    const double last = 1e18;
    return (double)t->request.deadline + (late ? last : 0);
}

static Feasibility feasibility(const Magma *m) {
    return (Feasibility){m->cfg.late_action, m->cfg.safety_factor};
}

static float until_free(const ChipView *v, uint32_t unit) {
    return v->units[unit].task == CHIP_NONE ? 0.0F : (float)(v->units[unit].free_at - v->now);
}

// Step 4: chain after chain, each job where it ends first; earlier starts have higher priorities.
static void list_schedule(Magma *m, const ChipView *v, MagmaGenome *x) {
    const MagmaGroup *g = &m->group;
    unit_timeline_open(&m->timeline, v);
    for (uint32_t i = 0; i < g->n_chains; i++) {
        const MagmaChain *c = &g->chains[i];
        const ChipTask   *t = &v->tasks[c->task];
        float             ready = t->unit != CHIP_NONE ? until_free(v, t->unit) : 0.0F;
        for (uint32_t job = c->first; job < c->first + c->n; job++) {
            float    best = INFINITY, start = ready;
            uint32_t kind = 0;
            for (uint32_t k = 0; k < v->setup->n_kinds; k++) {
                if (m->timeline.next[k] == CHIP_NONE) continue;
                float at = fmaxf(ready, m->timeline.at[m->timeline.next[k]]);
                if (at + g->costs[job][k].ns >= best) continue;
                best = at + g->costs[job][k].ns;
                kind = k, start = at;
            }
            unit_timeline_occupy(&m->timeline, m->timeline.next[kind], best);
            x->kind[job] = (uint8_t)kind;
            x->priority[job] = 1.0F / (1.0F + start / (float)v->setup->period);
            ready = best;
        }
    }
}

// Copies genes from the last plan, where it has the job.
static void carry_over(const Magma *m, const ChipView *v, MagmaGenome *x) {
    for (uint32_t i = 0; i < m->group.n_chains; i++) {
        const MagmaChain *c = &m->group.chains[i];
        for (uint32_t j = 0; j < c->n; j++) {
            const PlannedLayer *old =
                layer_plan_find(&m->layer_plan, &v->tasks[c->task], c->layer + j);
            if (old == NULL) continue;
            x->kind[c->first + j] = old->kind;
            x->priority[c->first + j] = -old->rank;
        }
    }
}

// A hash of all requests, their layers and whether they run.
static uint64_t hash_tasks(const ChipView *v) {
    uint64_t x = v->n_tasks;
    for (uint32_t i = 0; i < v->n_tasks; i++) {
        const ChipTask *t = &v->tasks[i];
        uint64_t one = t->request.id << 20 ^ (uint64_t)t->layer << 8 ^ (t->unit != CHIP_NONE);
        x += (one + 1) * 0x9E3779B97F4A7C15ULL;
        x ^= x >> 29;
    }
    return x;
}

static void plan(void *state, const ChipView *v, ChipPlanCost *cost) {
    Magma   *m = state;
    uint64_t now = hash_tasks(v);
    m->fresh = now != m->known;
    m->known = now;
    cost->ops += v->n_tasks;
    if (!m->fresh) return;
    Feasibility f = feasibility(m);
    (void)task_queue_fill(&m->layer_plan.queue, v, &f, key_of, NULL, NULL, 0);
    MagmaGroupLimits limits = {(uint32_t)m->cfg.jobs, (uint32_t)m->cfg.depth, m->cfg.safety_factor};
    magma_group_fill(&m->group, v, &m->layer_plan.queue, &limits);
    MagmaGenome *listed = magma_search_known(&m->search), *before = magma_search_known(&m->search);
    list_schedule(m, v, listed);
    list_schedule(m, v, before);
    carry_over(m, v, before);
    cost->ops += 3.0 * m->group.n_jobs * v->setup->n_kinds;
    const MagmaGenome *best = magma_search_run(&m->search, &m->group, &cost->ops);
    layer_plan_begin(&m->layer_plan);
    for (uint32_t i = 0; i < m->group.n_chains; i++) {
        const MagmaChain *c = &m->group.chains[i];
        for (uint32_t j = 0; j < c->n; j++)
            layer_plan_put(&m->layer_plan, &v->tasks[c->task], c->layer + j,
                           (PlannedLayer){-best->priority[c->first + j], best->kind[c->first + j]});
    }
}

static void commit(void *state) {
    Magma *m = state;
    if (m->fresh) layer_plan_commit(&m->layer_plan);
}

static uint32_t decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Magma *m = state;
    if (v->n_waiting == 0) return 0;
    LayerPlanParams cfg = {m->cfg.patience, feasibility(m)};
    unit_timeline_open(&m->timeline, v);
    return layer_plan_dispatch(&m->layer_plan, &m->timeline, &cfg, out, max);
}

const ChipPolicy chip_policy_magma = {
    .name = "magma",
    .about = "a genetic search for units and order of the next layers, every period",
    .paper = "HPCA 2022",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(MagmaSettings),
    .state_size = size,
    .init = init,
    .plan = plan,
    .commit = commit,
    .decide = decide,
};
