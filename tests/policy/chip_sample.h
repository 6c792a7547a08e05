// ChipSample: tenants with random costs and random states of a package, for tests and benchmarks of
// policies.
#pragma once

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "policy/policies.h"

enum { CHIP_SAMPLE_TENANTS = 4, CHIP_SAMPLE_SLOTS = 256 };

typedef struct ChipSample {
    ChipTenant tenants[CHIP_SAMPLE_TENANTS];
    ChipKind   kinds[CHIP_KINDS];
    ChipSetup  setup;
} ChipSample;

typedef struct ChipSampleView {
    ChipView  view;
    ChipTask *tasks;
    ChipUnit *units;
} ChipSampleView;

// Kind 0 is fast with a high demand, later ones are slower and lean; some layers run only on kind
// 0.
static inline void chip_sample_costs(ChipCost *at, Rng *rng, uint32_t n_kinds) {
    float work = 2e4F * (0.1F + rng_unit(rng)), bytes = 8e4F * rng_unit(rng);
    bool  picky = rng_below(rng, 4) == 0;
    for (uint32_t k = 0; k < n_kinds; k++) {
        float ns = work * (1.0F + (float)k * 4.0F * rng_unit(rng));
        at[k] = (ChipCost){ns, bytes / ns, 500.0F * work * (0.5F + rng_unit(rng))};
        if (picky && k > 0) at[k] = (ChipCost){INFINITY, 0, INFINITY};
    }
}

// costs: [layer][kind]
static inline ChipModel *chip_sample_chain(Arena *a, uint32_t n_layers, uint32_t n_kinds,
                                           const ChipCost *costs) {
    ChipModel   *m = arena_new(a, ChipModel, 1);
    const char **names = arena_new(a, const char *, n_layers);
    float       *rest = arena_new(a, float, n_layers + 1);
    uint8_t     *fastest = arena_new(a, uint8_t, n_layers);
    for (uint32_t l = n_layers; l-- > 0;) {
        const ChipCost *c = costs + (size_t)l * n_kinds;
        names[l] = "layer";
        for (uint32_t k = 1; k < n_kinds; k++)
            if (c[k].ns < c[fastest[l]].ns) fastest[l] = (uint8_t)k;
        rest[l] = rest[l + 1] + c[fastest[l]].ns;
    }
    *m = (ChipModel){"sample", n_layers, n_kinds, names, costs, rest, fastest};
    return m;
}

static inline ChipModel *chip_sample_model(Arena *a, Rng *rng, uint32_t n_layers,
                                           uint32_t n_kinds) {
    ChipCost *costs = arena_new(a, ChipCost, (size_t)n_layers * n_kinds);
    for (uint32_t l = 0; l < n_layers; l++)
        chip_sample_costs(costs + (size_t)l * n_kinds, rng, n_kinds);
    return chip_sample_chain(a, n_layers, n_kinds, costs);
}

// n_kinds kinds of n_each units; models of 5, 20, 53 and 101 layers.
static inline void chip_sample_init(ChipSample *s, Arena *a, Rng *rng, uint32_t n_kinds,
                                    uint32_t n_each) {
    static const uint32_t layers[CHIP_SAMPLE_TENANTS] = {5, 20, 53, 101};
    uint8_t              *kind_of = arena_new(a, uint8_t, (size_t)n_kinds * n_each);
    for (uint32_t u = 0; u < n_kinds * n_each; u++) kind_of[u] = (uint8_t)(u / n_each);
    for (uint32_t k = 0; k < n_kinds; k++) s->kinds[k] = (ChipKind){"kind", n_each};
    for (uint32_t i = 0; i < CHIP_SAMPLE_TENANTS; i++)
        s->tenants[i] = (ChipTenant){chip_sample_model(a, rng, layers[i], n_kinds), "tenant",
                                     i == 3 ? 3.0 : 1.0, i == 2 ? 0.9 : 0.0};
    s->setup = (ChipSetup){.tenants = s->tenants,
                           .kinds = s->kinds,
                           .kind_of = kind_of,
                           .n_tenants = CHIP_SAMPLE_TENANTS,
                           .n_kinds = n_kinds,
                           .n_units = n_kinds * n_each,
                           .n_slots = CHIP_SAMPLE_SLOTS,
                           .bytes_ns = 16.0F,
                           .period = 500000,
                           .rng = {rng_u64(rng)}};
}

static inline ChipTask chip_sample_task(const ChipSample *s, Rng *rng, TimeNs now, uint32_t id) {
    uint32_t         tenant = (uint32_t)rng_below(rng, CHIP_SAMPLE_TENANTS);
    const ChipModel *m = s->tenants[tenant].model;
    double           time = 3.0 * (double)m->rest_ns[0];
    ChipTask         t = {.slot = id, .unit = CHIP_NONE, .since = now};
    t.request = (ChipRequest){.id = id, .tenant = tenant, .level = id % CHIP_LEVELS};
    t.request.arrival = now - (TimeNs)(1.2 * time * rng_unit64(rng));
    t.request.deadline = t.request.arrival + (TimeNs)time;
    if (rng_below(rng, 2) == 0) t.layer = (uint32_t)rng_below(rng, m->n_layers);
    t.ran = (TimeNs)((double)(m->rest_ns[0] - m->rest_ns[t.layer]));
    t.since = now - (TimeNs)(0.1 * (double)(now - t.request.arrival));
    return t;
}

static inline void chip_sample_run(const ChipSample *s, Rng *rng, ChipSampleView *out, uint32_t i,
                                   uint32_t unit) {
    ChipTask       *t = &out->tasks[i];
    const ChipCost *c =
        chip_cost(s->tenants[t->request.tenant].model, t->layer, s->setup.kind_of[unit]);
    t->unit = unit;
    TimeNs left = (TimeNs)((double)c->ns * rng_unit64(rng));
    out->units[unit] = (ChipUnit){i, out->view.now + left, c->bytes_ns, INFINITY};
    out->view.demand += c->bytes_ns;
}

// A state with n_waiting waiting and at most n_running running tasks.
static inline ChipSampleView chip_sample_view(const ChipSample *s, Arena *a, Rng *rng,
                                              uint32_t n_waiting, uint32_t n_running) {
    ChipSampleView   out = {0};
    uint32_t         n = n_waiting + n_running, n_units = s->setup.n_units, running = 0;
    uint32_t        *waiting = arena_new(a, uint32_t, n), *free = arena_new(a, uint32_t, n_units);
    ChipTenantStats *tenant_stats = arena_new(a, ChipTenantStats, CHIP_SAMPLE_TENANTS);
    CHECK(n <= CHIP_SAMPLE_SLOTS);
    out.tasks = arena_new(a, ChipTask, n);
    out.units = arena_new(a, ChipUnit, n_units);
    for (uint32_t i = 0; i < CHIP_SAMPLE_TENANTS; i++)
        tenant_stats[i] = (ChipTenantStats){rng_unit(rng), 10.0F * rng_unit(rng)};
    ChipView *v = &out.view;
    *v = (ChipView){.now = 1000000000,
                    .setup = &s->setup,
                    .tasks = out.tasks,
                    .waiting = waiting,
                    .units = out.units,
                    .free = free,
                    .n_tasks = n,
                    .tenant_stats = tenant_stats};
    for (uint32_t u = 0; u < n_units; u++)
        out.units[u] = (ChipUnit){CHIP_NONE, v->now, 0.0F, INFINITY};
    for (uint32_t i = 0; i < n; i++) {
        out.tasks[i] = chip_sample_task(s, rng, v->now, i);
        const ChipTask  *t = &out.tasks[i];
        const ChipModel *m = s->tenants[t->request.tenant].model;
        uint32_t         u = (uint32_t)rng_below(rng, n_units);
        bool             can = out.units[u].task == CHIP_NONE && running < n_running &&
                   !isinf(chip_cost(m, t->layer, s->setup.kind_of[u])->ns);
        if (can) chip_sample_run(s, rng, &out, i, u), running++;
        if (!can) waiting[v->n_waiting++] = i;
    }
    for (uint32_t u = 0; u < n_units; u++)
        if (out.units[u].task == CHIP_NONE) free[v->n_free++] = u;
    return out;
}

typedef struct ChipSamplePolicy {
    const ChipPolicy *policy;
    void             *settings, *state;
} ChipSamplePolicy;

static inline ChipSamplePolicy chip_sample_policy(const ChipSample *s, Arena *a,
                                                  const ChipPolicy *policy) {
    ChipSamplePolicy out = {.policy = policy};
    out.settings = arena_alloc(a, 1, policy->settings_size + 1, 64);
    Settings with = {policy->rows, policy->n_rows, out.settings, a};
    settings_default(&with);
    size_t bytes = policy->state_size != NULL ? policy->state_size(&s->setup, out.settings) : 0;
    out.state = arena_alloc(a, 1, bytes + 1, 64);
    const void *loaded = NULL;
    CHECK(policy->load == NULL || policy->load(&s->setup, out.settings, a, &loaded) == ERR_OK);
    if (policy->init != NULL) policy->init(out.state, &s->setup, out.settings, loaded);
    return out;
}
