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

// What all rows have in common.
typedef struct Scene {
    const RelmasScorer *rule;
    const ChipView     *view;
    float free[CHIP_KINDS], free_in[CHIP_KINDS];  // share of units; until the first is
    float backlog, demand;
} Scene;

static float log_share(float x) { return relmas_clip(relmas_log2(x) * 0.25f, -1.0f, 1.0f); }

static void survey(Scene *s) {
    const ChipSetup *setup = s->rule->setup;
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

// Keeps the most urgent of all tasks seen so far, in order; earlier tasks first among equals.
static void take(RelmasObservation *l, uint32_t task, const RelmasTaskState *c) {
    if (l->n == RELMAS_WINDOW && l->at[l->n - 1].slack_ns <= c->slack_ns) return;
    uint32_t at = l->n < RELMAS_WINDOW ? l->n++ : l->n - 1;
    for (; at > 0 && l->at[at - 1].slack_ns > c->slack_ns; at--) {
        l->at[at] = l->at[at - 1];
        l->task[at] = l->task[at - 1];
    }
    l->at[at] = *c;
    l->task[at] = task;
}

// Of those with a free unit, or of all; CHIP_NONE: there is none.
static uint32_t cheapest(const Scene *s, const RelmasTaskState *c, bool free) {
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

static void fill_unit(const Scene *s, const RelmasTaskState *c, uint32_t k, float *x) {
    const RelmasModel *m = c->model;
    if (k == CHIP_NONE) {
        x[0] = x[1] = x[2] = x[4] = 1.0f;
        x[3] = 0.0f;
        return;
    }
    float bytes_ns = chip_cost(m->costs, c->layer, k)->bytes_ns;
    x[0] = log_share(relmas_table_ns(m, c->layer, k) / m->least_ns[c->layer]);
    x[1] = relmas_squash(bytes_ns / s->rule->setup->bytes_ns);
    x[2] = log_share(relmas_table_work(m, c->layer, k) / m->least[c->layer]);
    x[3] = s->free[k];
    x[4] = relmas_squash(s->free_in[k] / s->rule->table->usual);
}

static void fill_row(const Scene *s, const RelmasTaskState *c, const ChipTask *t, float ahead,
                     float *x) {
    const ChipSetup       *setup = s->rule->setup;
    const ChipTenant      *tenant = &setup->tenants[t->request.tenant];
    const ChipTenantStats *tally = &s->view->tenant_stats[t->request.tenant];
    float                  usual = s->rule->table->usual;
    float                  allowed = (float)(t->request.deadline - t->request.arrival);
    float                  left = (float)(t->request.deadline - s->view->now);
    float                  lacks = (float)tenant->target - tally->hit_rate;
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
    x[11] = relmas_clip(lacks, 0.0f, 1.0f);
    x[12] = tally->hit_rate;
    x[13] = (float)t->layer / (float)c->model->costs->n_layers;
    x[14] = setup->firm ? 1.0f : 0.0f;
    x[15] = relmas_squash((float)setup->period / usual);
    x[16] = relmas_squash(c->slack_ns / (4.0f * usual));
    x[17] = s->rule->table->share[setup->n_kinds];
    x += RELMAS_TASK_FEATURES;
    fill_unit(s, c, c->model->costs->fastest[c->layer], x);
    fill_unit(s, c, cheapest(s, c, false), x + RELMAS_UNIT_FEATURES);
    fill_unit(s, c, cheapest(s, c, true), x + (size_t)2 * RELMAS_UNIT_FEATURES);
}

void relmas_observe(const RelmasScorer *r, const ChipView *v, RelmasObservation *out) {
    Scene s = {.rule = r, .view = v};
    float ahead = 0;
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
