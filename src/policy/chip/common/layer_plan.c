#include "policy/chip/common/layer_plan.h"

void layer_plan_carve(LayerPlan *a, uint32_t n_slots, Carve *from) {
    *a = (LayerPlan){.draft_version = 1};
    a->committed = carve(from, PlannedTask, n_slots);
    a->draft = carve(from, PlannedTask, n_slots);
    task_queue_carve(&a->order, n_slots, from);
}

void layer_plan_begin(LayerPlan *a) { a->draft_version++; }

void layer_plan_put(LayerPlan *a, const ChipTask *t, uint32_t layer, PlannedLayer x) {
    PlannedTask *on = &a->draft[t->slot];
    if (on->version != a->draft_version || on->request != t->request.id)
        *on = (PlannedTask){.request = t->request.id, .version = a->draft_version, .first = layer};
    if (on->n < LAYER_PLAN_DEPTH && on->first + on->n == layer) on->at[on->n++] = x;
}

void layer_plan_commit(LayerPlan *a) {
    PlannedTask *was = a->committed;
    a->committed = a->draft;
    a->draft = was;
    a->committed_version = a->draft_version;
}

static const PlannedTask *named(const LayerPlan *a, const ChipTask *t) {
    const PlannedTask *on = &a->committed[t->slot];
    bool               is = on->version == a->committed_version && on->version > 0 && on->n > 0;
    return is && on->request == t->request.id ? on : NULL;
}

const PlannedLayer *layer_plan_find(const LayerPlan *a, const ChipTask *t, uint32_t layer) {
    const PlannedTask *on = named(a, t);
    if (on == NULL || layer < on->first || layer - on->first >= on->n) return NULL;
    return &on->at[layer - on->first];
}

// Who has run ahead of the plan keeps the rank of the last layer in it.
static double rank_of(const LayerPlan *a, const ChipTask *t) {
    const double       unnamed = 1e30;
    const PlannedTask *on = named(a, t);
    if (on == NULL || t->layer < on->first) return unnamed;
    uint32_t at = t->layer - on->first;
    return (double)on->at[at < on->n ? at : on->n - 1].rank;
}

static UnitPick pick(const UnitTimeline *f, const ChipTask *t, const PlannedLayer *x,
                     float patience) {
    UnitPick soonest = unit_timeline_first_to_end(f, t, patience);
    if (x == NULL) return soonest;
    UnitPick named = unit_timeline_of_kind(f, t, x->kind);
    if (named.unit == CHIP_NONE) return soonest;
    if (named.wait == 0 || soonest.wait > 0) return named;
    return named.wait + named.ns < patience * soonest.ns ? named : soonest;
}

static uint32_t line_up(LayerPlan *a, const ChipView *v, const LayerPlanParams *rules,
                        ChipAction *out, uint32_t max) {
    const double last = 1e35;
    uint32_t     n = 0;
    task_queue_clear(&a->order);
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        bool            lost = infeasible(v, t, rules->late_action, rules->safety_factor);
        if (lost && rules->late_action == LATE_DROP && n < max)
            out[n++] = (ChipAction){.verb = CHIP_DROP, .task = v->waiting[i]};
        else
            task_queue_add(&a->order, lost ? last : rank_of(a, t), v->waiting[i]);
    }
    return n;
}

uint32_t layer_plan_dispatch(LayerPlan *a, UnitTimeline *f, const LayerPlanParams *rules,
                             ChipAction *out, uint32_t max) {
    const ChipView *v = f->view;
    uint32_t        n = line_up(a, v, rules, out, max);
    while (a->order.n > 0 && f->n_free > 0 && n < max) {
        uint32_t        task = task_queue_pop(&a->order).task;
        const ChipTask *t = &v->tasks[task];
        UnitPick        p = pick(f, t, layer_plan_find(a, t, t->layer), (float)rules->patience);
        if (p.unit == CHIP_NONE) continue;
        if (p.wait == 0) out[n++] = (ChipAction){.verb = CHIP_START, .task = task, .unit = p.unit};
        unit_timeline_reserve(f, t, p);
    }
    return n;
}
