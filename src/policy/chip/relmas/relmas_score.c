#include "policy/chip/relmas/relmas_score.h"

#include <math.h>

const char *relmas_term_name(RelmasTerm p) {
    static const char *const names[RELMAS_TERMS] = {"size", "slack", "fair", "learned",
                                                    "fit",  "time",  "wait", "learned unit"};
    return names[p];
}

// Remaining time of the layer on a unit with the whole bandwidth of the memory.
static float left_ns(const ChipView *v, const ChipUnit *u) {
    float demand = u->bytes_ns, all = v->setup->bytes_ns;
    float speed = u->cap < demand ? u->cap / demand : 1.0f;
    if (v->demand > all) speed *= all / v->demand;
    float alone = (float)(u->free_at - v->now) * speed;
    return demand > all ? alone * (demand / all) : alone;
}

RelmasTaskState relmas_task_state(const RelmasScorer *r, const ChipView *v, const ChipTask *t) {
    const RelmasModel *m = &r->table->models[t->request.tenant];
    RelmasTaskState    s = {.model = m, .layer = t->layer, .work = m->rest[t->layer]};
    s.rest_ns = m->rest_ns[t->layer];
    if (t->unit != CHIP_NONE) {
        s.rest_ns = m->rest_ns[t->layer + 1] + left_ns(v, &v->units[t->unit]);
        if (t->layer + 1 < m->costs->n_layers) s.layer++;
    }
    s.slack_ns = (float)(t->request.deadline - v->now) - s.rest_ns;
    s.infeasible = s.slack_ns < (float)r->cfg.margin * s.rest_ns;
    return s;
}

static float deficit(const RelmasScorer *r, const ChipView *v, const ChipTask *t) {
    float target = (float)r->setup->tenants[t->request.tenant].target;
    float has = v->tenant_stats[t->request.tenant].hit_rate;
    return has < target ? target - has : 0;
}

float relmas_score_task(const RelmasScorer *r, const ChipView *v, const ChipTask *t,
                        const RelmasTaskState *s, const RelmasActorOutput *output,
                        float terms[RELMAS_TERMS]) {
    const RelmasSettings *w = &r->cfg;
    float                 usual = r->table->usual;
    terms[RELMAS_SIZE] = -relmas_size_weight(w, r) * relmas_log2(s->work / usual);
    terms[RELMAS_SLACK] = -(float)w->slack * s->slack_ns / usual;
    terms[RELMAS_FAIR] = (float)w->fair * deficit(r, v, t);
    terms[RELMAS_LEARNED] = (float)w->gain * output->priority;
    return terms[RELMAS_SIZE] + terms[RELMAS_SLACK] + terms[RELMAS_FAIR] + terms[RELMAS_LEARNED];
}

float relmas_score_unit(const RelmasScorer *r, const RelmasTaskState *s, uint32_t kind,
                        float wait_ns, const RelmasActorOutput *output, float terms[RELMAS_TERMS]) {
    const RelmasSettings *w = &r->cfg;
    const RelmasModel    *m = s->model;
    float                 ns = relmas_table_ns(m, s->layer, kind), least = m->least_ns[s->layer];
    float                 extra = ns - least, slack = fmaxf(s->slack_ns, 0);
    if (!isfinite(ns) || (!s->infeasible && extra + wait_ns > slack)) return -INFINITY;
    float fit = relmas_log2(relmas_table_work(m, s->layer, kind) / m->least[s->layer]);
    float share =
        (slack + 1.0f) * least / (s->rest_ns + 1.0f);  // of this layer, in proportion to its time
    float time = s->infeasible ? 0 : extra / share, wait = s->infeasible ? 0 : wait_ns / share;
    float bytes = chip_cost(m->costs, s->layer, kind)->bytes_ns / r->setup->bytes_ns;
    float learned = output->fit * fit + output->time * (time + wait) + output->bytes * bytes;
    terms[RELMAS_FIT] = -(float)w->fit * fit;
    terms[RELMAS_TIME] = -(float)w->time * time;
    terms[RELMAS_WAIT] = -(float)w->time * wait - (wait_ns > 0 ? (float)w->patience : 0);
    terms[RELMAS_LEARNED_UNIT] = -(float)w->gain * learned;
    return terms[RELMAS_FIT] + terms[RELMAS_TIME] + terms[RELMAS_WAIT] + terms[RELMAS_LEARNED_UNIT];
}
