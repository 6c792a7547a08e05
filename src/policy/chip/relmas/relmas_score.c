#include "policy/chip/relmas/relmas_score.h"

#include <math.h>

const char *relmas_term_name(RelmasTerm p) {
    static const char *const names[RELMAS_TERMS] = {"size", "slack", "fair", "learned",
                                                    "fit",  "time",  "wait", "learned unit"};
    return names[p];
}

// What is left of the layer on a unit, had it all that the memory has.
static float left_ns(const ChipView *v, const ChipUnit *u) {
    float asks = u->bytes_ns, all = v->setup->bytes_ns;
    float speed = u->cap < asks ? u->cap / asks : 1.0f;
    if (v->demand > all) speed *= all / v->demand;
    float alone = (float)(u->free_at - v->now) * speed;
    return asks > all ? alone * (asks / all) : alone;
}

RelmasTaskState relmas_task_state(const RelmasScorer *r, const ChipView *v, const ChipTask *t) {
    const RelmasModel *m = &r->table->models[t->request.tenant];
    RelmasTaskState    c = {.model = m, .layer = t->layer, .work = m->rest[t->layer]};
    c.rest_ns = m->rest_ns[t->layer];
    if (t->unit != CHIP_NONE) {
        c.rest_ns = m->rest_ns[t->layer + 1] + left_ns(v, &v->units[t->unit]);
        if (t->layer + 1 < m->costs->n_layers) c.layer++;
    }
    c.slack_ns = (float)(t->request.deadline - v->now) - c.rest_ns;
    c.infeasible = c.slack_ns < (float)r->cfg.margin * c.rest_ns;
    return c;
}

static float lacks(const RelmasScorer *r, const ChipView *v, const ChipTask *t) {
    float target = (float)r->setup->tenants[t->request.tenant].target;
    float has = v->tenant_stats[t->request.tenant].hit_rate;
    return has < target ? target - has : 0;
}

float relmas_score_task(const RelmasScorer *r, const ChipView *v, const ChipTask *t,
                        const RelmasTaskState *c, const RelmasActorOutput *says,
                        float parts[RELMAS_TERMS]) {
    const RelmasSettings *w = &r->cfg;
    float                 usual = r->table->usual;
    parts[RELMAS_SIZE] = -relmas_size_weight(w, r) * relmas_log2(c->work / usual);
    parts[RELMAS_SLACK] = -(float)w->slack * c->slack_ns / usual;
    parts[RELMAS_FAIR] = (float)w->fair * lacks(r, v, t);
    parts[RELMAS_LEARNED] = (float)w->gain * says->priority;
    return parts[RELMAS_SIZE] + parts[RELMAS_SLACK] + parts[RELMAS_FAIR] + parts[RELMAS_LEARNED];
}

float relmas_score_unit(const RelmasScorer *r, const RelmasTaskState *c, uint32_t kind,
                        float wait_ns, const RelmasActorOutput *says, float parts[RELMAS_TERMS]) {
    const RelmasSettings *w = &r->cfg;
    const RelmasModel    *m = c->model;
    float                 ns = relmas_table_ns(m, c->layer, kind), least = m->least_ns[c->layer];
    float                 extra = ns - least;
    if (!isfinite(ns) || (!c->infeasible && extra + wait_ns > c->slack_ns)) return -INFINITY;
    float fit = relmas_log2(relmas_table_work(m, c->layer, kind) / m->least[c->layer]);
    float share =
        (c->slack_ns + 1.0f) * least / (c->rest_ns + 1.0f);  // of the slack, for this layer
    float time = c->infeasible ? 0 : extra / share, wait = c->infeasible ? 0 : wait_ns / share;
    float bytes = chip_cost(m->costs, c->layer, kind)->bytes_ns / r->setup->bytes_ns;
    float learned = says->fit * fit + says->time * (time + wait) + says->bytes * bytes;
    parts[RELMAS_FIT] = -(float)w->fit * fit;
    parts[RELMAS_TIME] = -(float)w->time * time;
    parts[RELMAS_WAIT] = -(float)w->time * wait - (wait_ns > 0 ? (float)w->patience : 0);
    parts[RELMAS_LEARNED_UNIT] = -(float)w->gain * learned;
    return parts[RELMAS_FIT] + parts[RELMAS_TIME] + parts[RELMAS_WAIT] + parts[RELMAS_LEARNED_UNIT];
}
