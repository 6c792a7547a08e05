#include "policy/chip/relmas_serve.h"

#include <math.h>

#define HOPELESS (-1e6f)  // the worth of a task that comes after all that can be in time

void relmas_serve_carve(RelmasServe *s, const ChipSetup *setup, Carve *from) {
    s->notes = carve(from, RelmasNote, setup->n_slots);
    s->value = carve(from, float, setup->n_slots);
    s->pair = carve(from, float, (size_t)setup->n_slots * setup->n_kinds);
}

RelmasSays relmas_serve_says(const RelmasServe *s, const ChipTask *t) {
    const RelmasNote *n = &s->notes[t->slot];
    return n->id == t->request.id + 1 ? n->says : (RelmasSays){0};
}

// What happens in one call.
typedef struct Round {
    RelmasServe    *serve;
    const ChipView *view;
    ChipAction     *out;
    uint32_t        n, max;
    uint32_t        n_free[CHIP_KINDS], next[CHIP_KINDS];  // next: where to look in view->free
    uint32_t        runs[CHIP_UNITS];                      // task, with those just started
    float           demand;                                // of all that run
    bool            any;                                   // fit will do
} Round;

static const ChipCost *cost_on(const ChipSetup *s, const ChipTask *t, uint32_t kind) {
    return chip_cost(s->tenants[t->request.tenant].model, t->layer, kind);
}

static void open_round(Round *r) {
    const ChipView *v = r->view;
    for (uint32_t u = 0; u < v->setup->n_units; u++) {
        r->runs[u] = v->units[u].task;
        r->demand += v->units[u].bytes_ns;
    }
    for (uint32_t i = 0; i < v->n_free; i++) r->n_free[v->setup->kind_of[v->free[i]]]++;
}

static float value_of(const RelmasServe *s, const ChipView *v, const ChipTask *t,
                      const RelmasCase *c, const RelmasSays *says) {
    float parts[RELMAS_PARTS];
    return c->hopeless ? HOPELESS : relmas_rule_task(&s->rule, v, t, c, says, parts);
}

static void rate_pairs(Round *r, uint32_t task) {
    RelmasServe    *s = r->serve;
    const ChipTask *t = &r->view->tasks[task];
    RelmasCase      c = relmas_rule_case(&s->rule, r->view, t);
    RelmasSays      says = relmas_serve_says(s, t);
    float           parts[RELMAS_PARTS], value = value_of(s, r->view, t, &c, &says);
    uint32_t        n_kinds = r->view->setup->n_kinds;
    float          *pair = s->pair + (size_t)t->slot * n_kinds;
    bool            drop = c.hopeless && s->rule.with.drop && r->n < r->max;
    if (drop) r->out[r->n++] = (ChipAction){.verb = CHIP_DROP, .task = task};
    for (uint32_t k = 0; k < n_kinds; k++) {
        pair[k] = -INFINITY;
        if (drop || r->n_free[k] == 0) continue;
        float fit = relmas_rule_kind(&s->rule, &c, k, &says, parts);
        if (r->any || fit >= -(float)s->rule.with.patience) pair[k] = value + fit;
    }
}

// Whether a layer that asks for so much gets enough of it to start.
static bool flows(const Round *r, float bytes_ns) {
    float spare = r->view->setup->bytes_ns - r->demand;
    return r->demand <= 0 || spare >= (float)r->serve->rule.with.speed * bytes_ns;
}

static bool best_pair(const Round *r, uint32_t *task, uint32_t *kind) {
    const ChipView *v = r->view;
    uint32_t        n_kinds = v->setup->n_kinds;
    float           best = -INFINITY;
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        const float    *pair = r->serve->pair + (size_t)t->slot * n_kinds;
        for (uint32_t k = 0; k < n_kinds; k++) {
            if (r->n_free[k] == 0 || pair[k] <= best) continue;
            if (!flows(r, cost_on(v->setup, t, k)->bytes_ns)) continue;
            best = pair[k];
            *task = v->waiting[i];
            *kind = k;
        }
    }
    return best > -INFINITY;
}

static uint32_t take_unit(Round *r, uint32_t kind) {
    const ChipView *v = r->view;
    uint32_t       *at = &r->next[kind];
    while (v->setup->kind_of[v->free[*at]] != kind) (*at)++;
    r->n_free[kind]--;
    return v->free[(*at)++];
}

static void start(Round *r, uint32_t task, uint32_t kind) {
    const ChipTask *t = &r->view->tasks[task];
    uint32_t        n_kinds = r->view->setup->n_kinds, unit = take_unit(r, kind);
    for (uint32_t k = 0; k < n_kinds; k++)
        r->serve->pair[(size_t)t->slot * n_kinds + k] = -INFINITY;
    r->demand += cost_on(r->view->setup, t, kind)->bytes_ns;
    r->runs[unit] = task;
    r->out[r->n++] = (ChipAction){.verb = CHIP_START, .task = task, .unit = unit};
}

// Units that are busy, those whose bytes are worth most first.
static uint32_t rank_units(const Round *r, uint32_t *order, float *need) {
    const RelmasServe *s = r->serve;
    const ChipSetup   *setup = r->view->setup;
    float              key[CHIP_UNITS];
    uint32_t           n = 0;
    for (uint32_t u = 0; u < setup->n_units; u++) {
        if (r->runs[u] == CHIP_NONE) continue;
        const ChipTask *t = &r->view->tasks[r->runs[u]];
        RelmasCase      c = relmas_rule_case(&s->rule, r->view, t);
        RelmasSays      says = relmas_serve_says(s, t);
        uint32_t        k = setup->kind_of[u], at = n++;
        need[u] = cost_on(setup, t, k)->bytes_ns;
        float worth = s->rule.table->price.kind[k] / (need[u] + 1e-6f) + s->rule.table->price.byte;
        key[u] = value_of(s, r->view, t, &c, &says) + relmas_log2(worth);
        for (; at > 0 && key[order[at - 1]] < key[u]; at--) order[at] = order[at - 1];
        order[at] = u;
    }
    return n;
}

static bool differs(float cap, float has) {
    if (isinf(cap) || isinf(has)) return isinf(cap) != isinf(has);
    return fabsf(cap - has) > 0.02f * has;
}

static void share_memory(Round *r) {
    uint32_t order[CHIP_UNITS];
    float    need[CHIP_UNITS], left = r->view->setup->bytes_ns;
    uint32_t n = rank_units(r, order, need);
    for (uint32_t i = 0; i < n && r->n < r->max; i++) {
        uint32_t        u = order[i];
        const ChipUnit *unit = &r->view->units[u];
        float           cap = INFINITY, least = 0.02f * need[u];
        if (need[u] > left) cap = left > least ? left : least;
        left = need[u] > left ? 0 : left - need[u];
        if (differs(cap, unit->task == CHIP_NONE ? INFINITY : unit->cap))
            r->out[r->n++] = (ChipAction){.verb = CHIP_THROTTLE, .unit = u, .cap = cap};
    }
}

static void start_all(Round *r) {
    uint32_t task, kind;
    if (r->view->n_free == 0) return;
    for (uint32_t i = 0; i < r->view->n_waiting; i++) rate_pairs(r, r->view->waiting[i]);
    while (r->n < r->max && best_pair(r, &task, &kind)) start(r, task, kind);
}

uint32_t relmas_serve(RelmasServe *s, const ChipView *v, ChipAction *out, uint32_t max) {
    Round r = {.serve = s, .view = v, .out = out, .max = max};
    open_round(&r);
    start_all(&r);
    if (r.n == 0 && v->n_free == v->setup->n_units) {  // nothing else would ever happen
        r.any = true;
        start_all(&r);
    }
    if (s->rule.with.cap) share_memory(&r);
    return r.n;
}
