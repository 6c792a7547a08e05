#include "policy/chip/relmas/relmas_dispatch.h"

#include <math.h>

#define INFEASIBLE_VALUE (-1e6f)   // below the value of any feasible task
#define LATE_TASKS       16U       // infeasible tasks considered in one call, by arrival
#define TRICKLE          (0.001f)  // share of its demand that a layer always gets

void relmas_dispatch_carve(RelmasDispatch *s, const ChipSetup *setup, Carve *from) {
    s->notes = carve(from, RelmasTaskMemo, setup->n_slots);
    s->order = carve(from, uint32_t, setup->n_slots);
}

RelmasActorOutput relmas_dispatch_output(const RelmasDispatch *s, const ChipTask *t) {
    const RelmasTaskMemo *n = &s->notes[t->slot];
    return n->said == t->request.id + 1 ? n->output : (RelmasActorOutput){0};
}

bool relmas_dispatch_infeasible(const RelmasDispatch *s, const ChipTask *t) {
    return s->notes[t->slot].infeasible == t->request.id + 1;
}

typedef struct BusyUnit {
    uint32_t unit;
    float    key;   // priority for bandwidth
    float    need;  // bytes_ns
} BusyUnit;

// One call of the dispatcher.
typedef struct Call {
    RelmasDispatch            *dispatch;
    const ChipView            *view;
    const RelmasDecisionTrace *trace;
    ChipAction                *out;
    uint32_t                   n, max;
    float                      free_in[CHIP_UNITS];  // ns, reservations included; 0: free
    uint32_t                   n_free[CHIP_KINDS], all_free;
    BusyUnit                   busy[CHIP_UNITS];  // by key, the greatest first
    uint32_t                   n_busy;
} Call;

static float value_of(const RelmasDispatch *s, const ChipView *v, const ChipTask *t,
                      const RelmasTaskState *c) {
    RelmasActorOutput output = relmas_dispatch_output(s, t);
    float             terms[RELMAS_TERMS];
    return c->infeasible ? INFEASIBLE_VALUE
                         : relmas_score_task(&s->scorer, v, t, c, &output, terms);
}

// Priority of a layer for bandwidth: higher if its unit needs few bytes.
static float key_of(const Call *r, float value, float need, uint32_t kind) {
    const RelmasPrice *p = &r->dispatch->scorer.table->price;
    return value + relmas_log2(p->kind[kind] / (need + 1e-6f) + p->byte);
}

static void add_busy(Call *r, BusyUnit x) {
    uint32_t at = r->n_busy++;
    for (; at > 0 && r->busy[at - 1].key < x.key; at--) r->busy[at] = r->busy[at - 1];
    r->busy[at] = x;
}

static float need_of(const Call *r, const ChipTask *t, uint32_t kind) {
    return chip_cost(r->view->setup->tenants[t->request.tenant].model, t->layer, kind)->bytes_ns;
}

static void open_call(Call *r) {
    const ChipView *v = r->view;
    RelmasDispatch *s = r->dispatch;
    r->all_free = v->n_free;
    for (uint32_t u = 0; u < v->setup->n_units; u++) {
        uint32_t k = v->setup->kind_of[u];
        if (v->units[u].task == CHIP_NONE) {
            r->n_free[k]++;
            continue;
        }
        const ChipTask *t = &v->tasks[v->units[u].task];
        RelmasTaskState c = relmas_task_state(&s->scorer, v, t);
        float           need = need_of(r, t, k), value = value_of(s, v, t, &c);
        r->free_in[u] = (float)(v->units[u].free_at - v->now);
        add_busy(r, (BusyUnit){u, key_of(r, value, need, k) + (float)s->scorer.cfg.stay, need});
    }
}

static void add_task(RelmasDispatch *s, const ChipView *v, uint32_t n, uint32_t task, float value) {
    uint32_t at = n;
    s->notes[v->tasks[task].slot].value = value;
    for (; at > 0 && s->notes[v->tasks[s->order[at - 1]].slot].value < value; at--)
        s->order[at] = s->order[at - 1];
    s->order[at] = task;
}

// Waiting tasks by value, into s->order. Infeasible tasks are remembered and considered only when
// no other task waits.
static uint32_t rank_tasks(Call *r, bool late) {
    const ChipView *v = r->view;
    RelmasDispatch *s = r->dispatch;
    uint32_t        n = 0;
    for (uint32_t i = 0; i < v->n_waiting && n < (late ? LATE_TASKS : UINT32_MAX); i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        if (relmas_dispatch_infeasible(s, t) && !late) continue;
        RelmasTaskState c = relmas_task_state(&s->scorer, v, t);
        if (c.infeasible) s->notes[t->slot].infeasible = t->request.id + 1;
        if (c.infeasible && !late) continue;
        add_task(s, v, n++, v->waiting[i], value_of(s, v, t, &c));
    }
    return n;
}

static uint32_t first_unit(const Call *r, uint32_t kind) {
    const ChipSetup *s = r->view->setup;
    uint32_t         best = CHIP_NONE;
    for (uint32_t u = 0; u < s->n_units; u++)
        if (s->kind_of[u] == kind && (best == CHIP_NONE || r->free_in[u] < r->free_in[best]))
            best = u;
    return best;
}

// An infeasible task uses only the fastest kind, and half of its units unless all units are free.
static bool leaves_room(const Call *r, const RelmasTaskState *c, uint32_t kind) {
    const ChipSetup *s = r->view->setup;
    if (r->all_free == s->n_units) return r->n_free[kind] > 0;
    return kind == c->model->costs->fastest[c->layer] &&
           2 * r->n_free[kind] > s->kinds[kind].n_units;
}

static void trace_pair(const Call *r, const ChipTask *t, uint32_t unit, float fit,
                       const float *terms) {
    const RelmasDecisionTrace *w = r->trace;
    if (w != NULL && fit > -INFINITY)
        w->pair(w->self, (uint32_t)(t - r->view->tasks), unit, r->free_in[unit], fit, terms);
}

static void trace_decision(const Call *r, uint32_t task, uint32_t unit, RelmasDecision v) {
    if (r->trace != NULL) r->trace->verdict(r->trace->self, task, unit, v);
}

// The unit with the highest score for the task's layer, busy or free; CHIP_NONE: none is possible.
static uint32_t choose_unit(const Call *r, const ChipTask *t, const RelmasTaskState *c) {
    RelmasActorOutput output = relmas_dispatch_output(r->dispatch, t);
    float             terms[RELMAS_TERMS], best = -INFINITY;
    uint32_t          unit = CHIP_NONE;
    for (uint32_t k = 0; k < r->view->setup->n_kinds; k++) {
        uint32_t u = first_unit(r, k);
        if (u == CHIP_NONE || (c->infeasible && !leaves_room(r, c, k))) continue;
        float fit = relmas_score_unit(&r->dispatch->scorer, c, k, r->free_in[u], &output, terms);
        trace_pair(r, t, u, fit, terms);
        if (fit <= best) continue;
        best = fit;
        unit = u;
    }
    return unit;
}

// Whether a layer gets enough bandwidth to start: layers of a lower priority give way.
static bool has_bandwidth(const Call *r, float need, float key) {
    const RelmasSettings *w = &r->dispatch->scorer.cfg;
    const ChipSetup      *s = r->view->setup;
    float                 all = s->bytes_ns, left = all;
    if (r->n_busy == 0) return true;
    for (uint32_t i = 0; i < r->n_busy; i++)
        left -= r->busy[i].need * (!w->cap || r->busy[i].key >= key ? 1.0f : s->throttle_floor);
    return left > 0 && left >= (float)w->speed * (need < all ? need : all);
}

// A task that waits for a busy unit reserves it against tasks of a lower value.
static void place_task(Call *r, uint32_t task) {
    const ChipTask *t = &r->view->tasks[task];
    RelmasTaskState c = relmas_task_state(&r->dispatch->scorer, r->view, t);
    uint32_t        unit = choose_unit(r, t, &c);
    if (unit == CHIP_NONE) {
        trace_decision(r, task, unit, RELMAS_NO_UNIT);
        return;
    }
    uint32_t kind = r->view->setup->kind_of[unit];
    float    need = need_of(r, t, kind), ns = relmas_table_ns(c.model, c.layer, kind);
    float    key = key_of(r, r->dispatch->notes[t->slot].value, need, kind);
    bool     free = r->free_in[unit] <= 0, starts = free && has_bandwidth(r, need, key);
    trace_decision(r, task, unit,
                   starts ? RELMAS_START
                   : free ? RELMAS_AWAIT_BANDWIDTH
                          : RELMAS_AWAIT_UNIT);
    if (free && !starts) return;
    r->free_in[unit] += ns;
    if (!free) return;
    r->n_free[kind]--;
    r->all_free--;
    add_busy(r, (BusyUnit){unit, key, need});
    r->out[r->n++] = (ChipAction){.verb = CHIP_START, .task = task, .unit = unit};
}

static void start_all(Call *r) {
    RelmasDispatch *s = r->dispatch;
    if (r->all_free == 0) return;
    uint32_t n = rank_tasks(r, false);
    if (n == 0 && !s->scorer.cfg.drop) n = rank_tasks(r, true);
    for (uint32_t i = 0; i < n && r->all_free > 0 && r->n < r->max; i++) place_task(r, s->order[i]);
}

static void drop_all(Call *r) {
    const ChipView *v = r->view;
    for (uint32_t i = 0; i < v->n_waiting && r->n < r->max; i++)
        if (relmas_dispatch_infeasible(r->dispatch, &v->tasks[v->waiting[i]]))
            r->out[r->n++] = (ChipAction){.verb = CHIP_DROP, .task = v->waiting[i]};
}

static bool differs(float cap, float has) {
    if (isinf(cap) || isinf(has)) return isinf(cap) != isinf(has);
    return fabsf(cap - has) > 0.02f * has;
}

static void share_memory(Call *r) {
    float left = r->view->setup->bytes_ns;
    float kept = fmaxf(TRICKLE, r->view->setup->throttle_floor);
    for (uint32_t i = 0; i < r->n_busy && r->n < r->max; i++) {
        const BusyUnit *x = &r->busy[i];
        const ChipUnit *unit = &r->view->units[x->unit];
        float           cap = INFINITY, least = kept * x->need;
        if (x->need > left) cap = left > least ? left : least;
        left = fmaxf(left - fminf(x->need, cap), 0);
        if (differs(cap, unit->task == CHIP_NONE ? INFINITY : unit->cap))
            r->out[r->n++] = (ChipAction){.verb = CHIP_THROTTLE, .unit = x->unit, .cap = cap};
    }
}

uint32_t relmas_dispatch(RelmasDispatch *s, const ChipView *v, const RelmasDecisionTrace *trace,
                         ChipAction *out, uint32_t max) {
    Call r = {.dispatch = s, .view = v, .trace = trace, .out = out, .max = max};
    open_call(&r);
    start_all(&r);
    if (s->scorer.cfg.drop) drop_all(&r);
    if (s->scorer.cfg.cap) share_memory(&r);
    return r.n;
}
