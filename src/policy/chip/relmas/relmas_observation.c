#include "policy/chip/relmas/relmas_observation.h"

#include <math.h>
#include <string.h>

static const char *const task_names[RELMAS_TASK_FEATURES] = {
    "slack/allowed", "slack/rest", "rest",  "work",    "ahead/left", "backlog",
    "demand/B",      "tasks",      "waits", "runs on", "rest's b/B", "lacks",
    "hit rate",      "progress",   "firm",  "period",  "slack",      "memory's price",
};
static const char *const unit_names[3 * RELMAS_UNIT_FEATURES] = {
    "fastest: time",  "fastest: b/B",  "fastest: price",  "fastest: free",  "fastest: free in",
    "cheapest: time", "cheapest: b/B", "cheapest: price", "cheapest: free", "cheapest: free in",
    "free: time",     "free: b/B",     "free: price",     "free: free",     "free: free in",
};

const char *relmas_feature_name(uint32_t feature) {
    if (feature < RELMAS_TASK_FEATURES) return task_names[feature];
    return feature < RELMAS_FEATURES ? unit_names[feature - RELMAS_TASK_FEATURES] : NULL;
}

// Shared by all rows.
typedef struct PackageState {
    const RelmasScorer *scorer;
    const ChipView     *view;
    float free[CHIP_KINDS], free_in[CHIP_KINDS];  // share of free units; ns until the first is free
    float backlog, demand;
} PackageState;

static float log_share(float x) { return relmas_clip(relmas_log2(x) * 0.25f, -1.0f, 1.0f); }

static void survey(PackageState *s) {
    const ChipSetup *setup = s->scorer->setup;
    for (uint32_t k = 0; k < setup->n_kinds; k++) s->free_in[k] = INFINITY;
    for (uint32_t u = 0; u < setup->n_units; u++) {
        const ChipUnit *unit = &s->view->units[u];
        uint32_t        k = setup->kind_of[u];
        float           ns = unit->task == CHIP_NONE ? 0 : (float)(unit->free_at - s->view->now);
        if (unit->task == CHIP_NONE) s->free[k] += 1.0f / (float)setup->kinds[k].n_units;
        if (ns < s->free_in[k]) s->free_in[k] = ns;
    }
    s->demand = s->view->demand / setup->bytes_ns;
}

// Keeps the most urgent tasks so far, by slack; of equal ones the earlier first.
static void take(RelmasObservation *o, uint32_t task, const RelmasTaskState *c) {
    if (o->n == RELMAS_WINDOW && o->at[o->n - 1].slack_ns <= c->slack_ns) return;
    uint32_t at = o->n < RELMAS_WINDOW ? o->n++ : o->n - 1;
    for (; at > 0 && o->at[at - 1].slack_ns > c->slack_ns; at--) {
        o->at[at] = o->at[at - 1];
        o->task[at] = o->task[at - 1];
    }
    o->at[at] = *c;
    o->task[at] = task;
}

// The cheapest kind, or the cheapest with a free unit; CHIP_NONE: none.
static uint32_t cheapest(const PackageState *s, const RelmasTaskState *c, bool free) {
    uint32_t best = CHIP_NONE;
    float    least = INFINITY;
    for (uint32_t k = 0; k < c->model->costs->n_kinds; k++) {
        float work = relmas_table_work(c->model, c->layer, k);
        if (work >= least || (free && s->free[k] <= 0)) continue;
        least = work;
        best = k;
    }
    return best;
}

static void fill_unit(const PackageState *s, const RelmasTaskState *c, uint32_t k, float *x) {
    const RelmasModel *m = c->model;
    if (k == CHIP_NONE) {
        x[0] = x[1] = x[2] = x[4] = 1.0f;
        x[3] = 0.0f;
        return;
    }
    float bytes_ns = chip_cost(m->costs, c->layer, k)->bytes_ns;
    x[0] = log_share(relmas_table_ns(m, c->layer, k) / m->least_ns[c->layer]);
    x[1] = relmas_squash(bytes_ns / s->scorer->setup->bytes_ns);
    x[2] = log_share(relmas_table_work(m, c->layer, k) / m->least[c->layer]);
    x[3] = s->free[k];
    x[4] = relmas_squash(s->free_in[k] / s->scorer->table->usual);
}

static void fill_row(const PackageState *s, const RelmasTaskState *c, const ChipTask *t,
                     float ahead, float *x) {
    const ChipSetup       *setup = s->scorer->setup;
    const ChipTenant      *tenant = &setup->tenants[t->request.tenant];
    const ChipTenantStats *tally = &s->view->tenant_stats[t->request.tenant];
    float                  usual = s->scorer->table->usual;
    float                  allowed = (float)(t->request.deadline - t->request.arrival);
    float                  left = (float)(t->request.deadline - s->view->now);
    float                  deficit = (float)tenant->target - tally->hit_rate;
    x[0] = relmas_clip(c->slack_ns / (allowed + 1.0f), -1.0f, 1.0f);
    x[1] = relmas_squash(c->slack_ns / (c->rest_ns + 1.0f));
    x[2] = log_share((c->rest_ns + 1.0f) / usual);
    x[3] = log_share(c->work / usual + 1e-3f);
    x[4] = relmas_squash(ahead / (left + 1.0f));
    x[5] = relmas_squash(s->backlog / (8.0f * usual));
    x[6] = relmas_squash(s->demand);
    x[7] = relmas_squash((float)s->view->n_tasks * 0.0625f);
    x[8] = t->unit == CHIP_NONE ? 1.0f : 0.0f;
    x[9] = t->unit == CHIP_NONE ? 0.0f : (1.0f + (float)setup->kind_of[t->unit]) / CHIP_KINDS;
    x[10] = relmas_squash(c->model->bytes[t->layer] / (c->rest_ns + 1.0f) / setup->bytes_ns);
    x[11] = relmas_clip(deficit, 0.0f, 1.0f);
    x[12] = tally->hit_rate;
    x[13] = (float)t->layer / (float)c->model->costs->n_layers;
    x[14] = setup->firm ? 1.0f : 0.0f;
    x[15] = relmas_squash((float)setup->period / usual);
    x[16] = relmas_squash(c->slack_ns / (4.0f * usual));
    x[17] = s->scorer->table->share[setup->n_kinds];
    x += RELMAS_TASK_FEATURES;
    fill_unit(s, c, c->model->costs->fastest[c->layer], x);
    fill_unit(s, c, cheapest(s, c, false), x + RELMAS_UNIT_FEATURES);
    fill_unit(s, c, cheapest(s, c, true), x + (size_t)2 * RELMAS_UNIT_FEATURES);
}

void relmas_observe(const RelmasScorer *r, const ChipView *v, RelmasObservation *out) {
    PackageState s = {.scorer = r, .view = v};
    float        ahead = 0;
    out->n = 0;
    survey(&s);
    for (uint32_t i = 0; i < v->n_tasks; i++) {
        RelmasTaskState c = relmas_task_state(r, v, &v->tasks[i]);
        if (!c.infeasible) take(out, i, &c);
    }
    for (uint32_t i = 0; i < out->n; i++) s.backlog += out->at[i].work;
    for (uint32_t i = 0; i < out->n; i++) {
        ahead += out->at[i].work;
        fill_row(&s, &out->at[i], &v->tasks[out->task[i]], ahead,
                 out->x + (size_t)i * RELMAS_FEATURES);
    }
}
