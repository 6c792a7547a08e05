#include "policy/chip/common/layer_plan.h"

void layer_plan_carve(LayerPlan *p, uint32_t n_slots, Carve *from) {
    *p = (LayerPlan){.draft_version = 1};
    p->committed = carve(from, PlannedTask, n_slots);
    p->draft = carve(from, PlannedTask, n_slots);
    task_queue_carve(&p->queue, n_slots, from);
}

void layer_plan_begin(LayerPlan *p) { p->draft_version++; }

void layer_plan_put(LayerPlan *p, const ChipTask *t, uint32_t layer, PlannedLayer x) {
    PlannedTask *to = &p->draft[t->slot];
    if (to->version != p->draft_version || to->request != t->request.id)
        *to = (PlannedTask){.request = t->request.id, .version = p->draft_version, .first = layer};
    if (to->n < LAYER_PLAN_DEPTH && to->first + to->n == layer) to->at[to->n++] = x;
}

void layer_plan_commit(LayerPlan *p) {
    PlannedTask *old = p->committed;
    p->committed = p->draft;
    p->draft = old;
    p->committed_version = p->draft_version;
}

static const PlannedTask *planned(const LayerPlan *p, const ChipTask *t) {
    const PlannedTask *x = &p->committed[t->slot];
    bool               current = x->version == p->committed_version && x->version > 0 && x->n > 0;
    return current && x->request == t->request.id ? x : NULL;
}

const PlannedLayer *layer_plan_find(const LayerPlan *p, const ChipTask *t, uint32_t layer) {
    const PlannedTask *x = planned(p, t);
    if (x == NULL || layer < x->first || layer - x->first >= x->n) return NULL;
    return &x->at[layer - x->first];
}

static double rank_of(const void *self, const ChipView *v, const ChipTask *t, bool late) {
    (void)v;
    const double       unplanned = 1e30, last = 1e35;
    const PlannedTask *x = planned(self, t);
    if (late) return last;
    if (x == NULL || t->layer < x->first) return unplanned;
    uint32_t at = t->layer - x->first;
    return (double)x->at[at < x->n ? at : x->n - 1].rank;
}

static UnitPick choose(const UnitTimeline *t, const ChipTask *task, const PlannedLayer *x,
                       float patience) {
    UnitPick first = unit_timeline_first_to_end(t, task, patience);
    if (x == NULL) return first;
    UnitPick planned_kind = unit_timeline_of_kind(t, task, x->kind);
    if (planned_kind.unit == CHIP_NONE) return first;
    if (planned_kind.wait == 0 || first.wait > 0) return planned_kind;
    return planned_kind.wait + planned_kind.ns < patience * first.ns ? planned_kind : first;
}

uint32_t layer_plan_dispatch(LayerPlan *p, UnitTimeline *t, const LayerPlanParams *cfg,
                             ChipAction *out, uint32_t max) {
    const ChipView *v = t->view;
    uint32_t        n = task_queue_fill(&p->queue, v, &cfg->feasibility, rank_of, p, out, max);
    while (!task_queue_empty(&p->queue) && t->n_free > 0 && n < max) {
        uint32_t            i = task_queue_pop(&p->queue).task;
        const ChipTask     *task = &v->tasks[i];
        const PlannedLayer *x = layer_plan_find(p, task, task->layer);
        UnitPick            pick = choose(t, task, x, (float)cfg->patience);
        if (pick.unit == CHIP_NONE) continue;
        if (pick.wait == 0)
            out[n++] = (ChipAction){.verb = CHIP_START, .task = i, .unit = pick.unit};
        unit_timeline_reserve(t, task, pick);
    }
    return n;
}
