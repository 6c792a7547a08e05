#include "policy/chip/relmas_serve.h"

#include <math.h>

#define HOPELESS (-1e6f)   // the worth of a task that comes after all that can be in time
#define TRICKLE  (0.001f)  // part of what it asks for that a layer gets in any case

void relmas_serve_carve(RelmasServe *s, const ChipSetup *setup, Carve *from) {
    s->notes = carve(from, RelmasNote, setup->n_slots);
    s->pair = carve(from, float, (size_t)setup->n_slots * setup->n_kinds);
}

RelmasSays relmas_serve_says(const RelmasServe *s, const ChipTask *t) {
    const RelmasNote *n = &s->notes[t->slot];
    return n->said == t->request.id + 1 ? n->says : (RelmasSays){0};
}

bool relmas_serve_lost(const RelmasServe *s, const ChipTask *t) {
    return s->notes[t->slot].lost == t->request.id + 1;
}

typedef struct Runner {  // a busy unit
    uint32_t unit;
    float    key;   // what its bytes are worth
    float    need;  // bytes_ns
} Runner;

// What happens in one call.
typedef struct Round {
    RelmasServe    *serve;
    const ChipView *view;
    ChipAction     *out;
    uint32_t        n, max;
    uint32_t        n_free[CHIP_KINDS], next[CHIP_KINDS];  // next: where to look in view->free
    Runner          runners[CHIP_UNITS];                   // by key, the greatest first
    uint32_t        n_runners, n_good;                     // good: waiting, and not without hope
    bool            any;                                   // fit will do
} Round;

static float value_of(const RelmasServe *s, const ChipView *v, const ChipTask *t,
                      const RelmasCase *c) {
    RelmasSays says = relmas_serve_says(s, t);
    float      parts[RELMAS_PARTS];
    return c->hopeless ? HOPELESS : relmas_rule_task(&s->rule, v, t, c, &says, parts);
}

// What a byte for this layer is worth: more when the unit waits for few of them.
static float key_of(const Round *r, float value, float need, uint32_t kind) {
    const RelmasPrice *p = &r->serve->rule.table->price;
    return value + relmas_log2(p->kind[kind] / (need + 1e-6f) + p->byte);
}

static void add_runner(Round *r, Runner x) {
    uint32_t at = r->n_runners++;
    for (; at > 0 && r->runners[at - 1].key < x.key; at--) r->runners[at] = r->runners[at - 1];
    r->runners[at] = x;
}

static float need_of(const Round *r, const ChipTask *t, uint32_t kind) {
    return chip_cost(r->view->setup->tenants[t->request.tenant].model, t->layer, kind)->bytes_ns;
}

static void open_round(Round *r) {
    const ChipView *v = r->view;
    RelmasServe    *s = r->serve;
    for (uint32_t u = 0; u < v->setup->n_units; u++) {
        uint32_t k = v->setup->kind_of[u];
        if (v->units[u].task == CHIP_NONE) {
            r->n_free[k]++;
            continue;
        }
        const ChipTask *t = &v->tasks[v->units[u].task];
        RelmasCase      c = relmas_rule_case(&s->rule, v, t);
        float           need = need_of(r, t, k), value = value_of(s, v, t, &c);
        add_runner(r, (Runner){u, key_of(r, value, need, k) + (float)s->rule.with.stay, need});
    }
}

// A hopeless task keeps to the fastest units, and to half of those.
static bool may_use(const Round *r, const RelmasCase *c, uint32_t kind) {
    const ChipModel *m = c->model->costs;
    if (r->n_free[kind] == 0) return false;
    if (!c->hopeless || r->any) return true;
    return kind == m->fastest[c->layer] &&
           2 * r->n_free[kind] > r->view->setup->kinds[kind].n_units;
}

static void rate_pairs(Round *r, const ChipTask *t, const RelmasCase *c) {
    RelmasServe *s = r->serve;
    RelmasSays   says = relmas_serve_says(s, t);
    uint32_t     n_kinds = r->view->setup->n_kinds;
    float       *pair = s->pair + (size_t)t->slot * n_kinds;
    float        parts[RELMAS_PARTS], value = value_of(s, r->view, t, c);
    s->notes[t->slot].value = value;
    for (uint32_t k = 0; k < n_kinds; k++) {
        pair[k] = -INFINITY;
        if (!may_use(r, c, k)) continue;
        float fit = relmas_rule_kind(&s->rule, c, k, &says, parts);
        if (r->any || fit >= -(float)s->rule.with.patience) pair[k] = value + fit;
    }
}

// Those without hope are found out once, and rated only when nobody else waits.
static void rate_all(Round *r) {
    const ChipView *v = r->view;
    RelmasServe    *s = r->serve;
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        if (relmas_serve_lost(s, t)) continue;
        RelmasCase c = relmas_rule_case(&s->rule, v, t);
        if (c.hopeless) {
            s->notes[t->slot].lost = t->request.id + 1;
            continue;
        }
        r->n_good++;
        rate_pairs(r, t, &c);
    }
    if (r->n_good > 0 || s->rule.with.drop) return;
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        RelmasCase      c = relmas_rule_case(&s->rule, v, t);
        rate_pairs(r, t, &c);
    }
}

// Whether a layer gets enough of the bandwidth to start: whoever is worth less makes room.
static bool flows(const Round *r, const ChipTask *t, uint32_t kind) {
    const RelmasSettings *w = &r->serve->rule.with;
    float                 all = r->view->setup->bytes_ns, left = all;
    float                 need = need_of(r, t, kind);
    float                 key = key_of(r, r->serve->notes[t->slot].value, need, kind);
    if (r->n_runners == 0) return true;
    for (uint32_t i = 0; i < r->n_runners; i++)
        if (!w->cap || r->runners[i].key >= key) left -= r->runners[i].need;
    if (need > all) need = all;
    return left > 0 && left >= (float)w->speed * need;
}

static bool best_pair(const Round *r, uint32_t *task, uint32_t *kind) {
    const ChipView *v = r->view;
    uint32_t        n_kinds = v->setup->n_kinds;
    float           best = -INFINITY;
    bool            late = r->n_good == 0 && !r->serve->rule.with.drop;  // they are rated
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        const float    *pair = r->serve->pair + (size_t)t->slot * n_kinds;
        if (!late && relmas_serve_lost(r->serve, t)) continue;
        for (uint32_t k = 0; k < n_kinds; k++) {
            if (r->n_free[k] == 0 || pair[k] <= best || !flows(r, t, k)) continue;
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
    float           need = need_of(r, t, kind);
    for (uint32_t k = 0; k < n_kinds; k++)
        r->serve->pair[(size_t)t->slot * n_kinds + k] = -INFINITY;
    add_runner(r, (Runner){unit, key_of(r, r->serve->notes[t->slot].value, need, kind), need});
    r->out[r->n++] = (ChipAction){.verb = CHIP_START, .task = task, .unit = unit};
}

static void start_all(Round *r) {
    uint32_t task, kind;
    if (r->view->n_free == 0) return;
    r->n_good = 0;
    rate_all(r);
    while (r->n < r->max && best_pair(r, &task, &kind)) start(r, task, kind);
}

static void drop_all(Round *r) {
    const ChipView *v = r->view;
    for (uint32_t i = 0; i < v->n_waiting && r->n < r->max; i++)
        if (relmas_serve_lost(r->serve, &v->tasks[v->waiting[i]]))
            r->out[r->n++] = (ChipAction){.verb = CHIP_DROP, .task = v->waiting[i]};
}

static bool differs(float cap, float has) {
    if (isinf(cap) || isinf(has)) return isinf(cap) != isinf(has);
    return fabsf(cap - has) > 0.02f * has;
}

static void share_memory(Round *r) {
    float left = r->view->setup->bytes_ns;
    for (uint32_t i = 0; i < r->n_runners && r->n < r->max; i++) {
        const Runner   *x = &r->runners[i];
        const ChipUnit *unit = &r->view->units[x->unit];
        float           cap = INFINITY, least = TRICKLE * x->need;
        if (x->need > left) cap = left > least ? left : least;
        left = x->need > left ? 0 : left - x->need;
        if (differs(cap, unit->task == CHIP_NONE ? INFINITY : unit->cap))
            r->out[r->n++] = (ChipAction){.verb = CHIP_THROTTLE, .unit = x->unit, .cap = cap};
    }
}

uint32_t relmas_serve(RelmasServe *s, const ChipView *v, ChipAction *out, uint32_t max) {
    Round r = {.serve = s, .view = v, .out = out, .max = max};
    open_round(&r);
    start_all(&r);
    if (r.n == 0 && v->n_free == v->setup->n_units && !s->rule.with.drop) {
        r.any = true;  // or nothing would ever happen
        start_all(&r);
    }
    if (s->rule.with.drop) drop_all(&r);
    if (s->rule.with.cap) share_memory(&r);
    return r.n;
}
