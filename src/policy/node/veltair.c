// veltair: blocks of layers whose length follows the load, versions that follow the interference
//
// 1. Layer by layer, a request asks for other cores all the time and pays a dispatch for each; as
//    a whole, it holds the cores that its hungriest layer needs. Blocks lie between. cut.c forms
//    them ahead of time, for eight thresholds and every level of interference.
// 2. The threshold follows the load: cores wanted by what runs and what waits, over all cores. An
//    idle machine gets fine blocks (cores return soon), a crowded one coarse blocks (few
//    conflicts).
// 3. A block asks for the least cores that keep it within its share of the QoS, of a smaller part
//    of the QoS as long as the machine is idle. Requests that fell behind, because they waited or
//    ran on less, share out the time they have left instead.
// 4. Blocks start in the order of their requests' deadlines. A conflict is a block that finds
//    fewer cores free than it wants: it starts when at least a part of them is there, and gets
//    the others at its next layer when they become free. Otherwise it keeps its place at the
//    front, and only who finds enough cores passes it.
// 5. Versions are those that are fastest at the present level on the cores given. A level changes
//    only when the pressure is clearly beyond the middle between two.
//
// There is no admission, no priority and no notion of which cores share a cache: see slack.c.
#include "policy/node/veltair.h"

#include "policy/node/ahead.h"
#include "policy/node/cut.h"
#include "policy/node/line.h"
#include "policy/node/setup.h"
#include "policy/node/steady.h"
#include "policy/policies.h"

typedef struct Veltair {
    const NodeSetup *setup;
    VeltairSettings  with;
    uint32_t         level, theta;
    bool             best;
    uint16_t        *flat;   // [tenant] at the present level
    uint8_t         *solo;   // version 0 of every layer
    Cut             *cuts;   // [tenant]
    Ahead           *ahead;  // [tenant]
    Queue            queue;
} Veltair;

static CutRule rule_of(const NodeSetup *s, const VeltairSettings *with, bool best) {
    return (CutRule){.lo = with->idle,
                     .hi = with->safety,
                     .th_lo = with->th_lo,
                     .th_hi = with->th_hi,
                     .min_ns = with->min_dispatches * (double)s->machine->dispatch_ns,
                     .max_ns = with->max_qos * (double)setup_least_qos(s),
                     .fixed = (uint32_t)with->fixed,
                     .best = best};
}

static Veltair *carve_all(const NodeSetup *s, const CutRule *rule, Carve *from) {
    Veltair *v = carve(from, Veltair, 1);
    Cut     *cuts = carve(from, Cut, s->n_tenants), no_cut;
    Ahead   *ahead = carve(from, Ahead, s->n_tenants), no_ahead;
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        const NodeTenant *t = &s->tenants[i];
        cut_carve(v == NULL ? &no_cut : &cuts[i], rule, t, from);
        ahead_carve(v == NULL ? &no_ahead : &ahead[i], t->model, NODE_LEVELS, from);
    }
    uint16_t *flat = carve(from, uint16_t, s->n_tenants);
    uint8_t  *solo = setup_carve_solo(s, from);
    if (v != NULL)
        *v = (Veltair){.setup = s, .flat = flat, .solo = solo, .cuts = cuts, .ahead = ahead};
    return v;
}

size_t veltair_size(const NodeSetup *setup, const void *settings) {
    CutRule rule = rule_of(setup, settings, true);
    Carve   c = {0};
    carve_all(setup, &rule, &c);
    return c.used;
}

static void set_level(Veltair *v, uint32_t level) {
    v->level = level;
    for (uint32_t i = 0; i < v->setup->n_tenants; i++)
        v->flat[i] = v->cuts[i].flat[cut_list(&v->cuts[i], CUT_THETAS - 1, level)];
}

static void prepare(void *state, const NodeSetup *setup, const void *settings, bool best) {
    CutRule  rule = rule_of(setup, settings, best);
    Carve    c = {.base = state};
    Veltair *v = carve_all(setup, &rule, &c);
    v->with = *(const VeltairSettings *)settings;
    v->best = best;
    for (uint32_t i = 0; i < setup->n_tenants; i++) {
        cut_init(&v->cuts[i], &rule, &setup->tenants[i]);
        ahead_init(&v->ahead[i], best ? setup->tenants[i].model->picks : NULL);
    }
    set_level(v, 0);
}

void veltair_init(void *state, const NodeSetup *setup, const void *settings) {
    prepare(state, setup, settings, true);
}

void veltair_init_as(void *state, const NodeSetup *setup, const void *settings) {
    prepare(state, setup, settings, false);
}

// Step 3: more than the plan says when the time left no longer allows for the plan.
static uint32_t recover(const Veltair *v, const NodeView *view, const NodeRequest *r,
                        CutBlock block) {
    const NodeTenant *t = &v->setup->tenants[r->tenant];
    const Cut        *cut = &v->cuts[r->tenant];
    uint32_t          list = cut_list(cut, v->theta, v->level);
    const float      *share = cut->share + (size_t)list * (t->model->n_layers + 1);
    double            left = (double)(r->deadline - view->now), rest = (double)share[r->next];
    if (left >= (double)t->qos_ns * rest) return block.cores;
    double   part = rest - (double)share[r->next + block.n_layers];
    double   ns = v->with.safety * left * part / rest;
    uint32_t end = r->next + block.n_layers;
    uint32_t k = ahead_least(&v->ahead[r->tenant], v->level, r->next, end, ns);
    if (k == t->model->n_counts) k = ahead_fastest(&v->ahead[r->tenant], v->level, r->next, end);
    return t->model->counts[k] > block.cores ? t->model->counts[k] : block.cores;
}

static LineAsk ask(const void *policy, const NodeView *view, const NodeRequest *r) {
    const Veltair *v = policy;
    const Cut     *cut = &v->cuts[r->tenant];
    CutBlock       block = cut_at(cut, cut_list(cut, v->theta, v->level), r->next);
    uint32_t       cores = v->with.recover ? recover(v, view, r, block) : block.cores;
    return (LineAsk){block.n_layers,
                     line_quanta(v->setup->machine, cores, (uint32_t)v->with.quantum)};
}

uint32_t veltair_decide(void *state, const NodeView *view, NodeAction *out, uint32_t max) {
    Veltair *v = state;
    if (view->n_free == 0) return 0;
    uint32_t level = steady_level(v->level, view->pressure, v->with.hold);
    if (level != v->level) set_level(v, level);
    v->theta = cut_theta(line_load(view, v->flat));
    Line line = {.view = view,
                 .queue = v->with.urgent ? &v->queue : NULL,
                 .versions = v->best ? NULL : v->solo,
                 .level = v->level,
                 .start = v->with.start,
                 .grow = v->with.grow,
                 .overtake = v->with.overtake,
                 .yield = v->with.yield,
                 .ask = ask,
                 .policy = v};
    return line_serve(&line, out, max);
}

static const Setting rows[] = {
#define X(...) SETTING_ROW(VeltairSettings, __VA_ARGS__)
    VELTAIR_SETTINGS(X, 0, true, 0.2)
#undef X
};

const NodePolicy policy_veltair = {
    .name = "veltair",
    .about = "blocks of layers that follow the load, versions that follow the interference",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(VeltairSettings),
    .state_size = veltair_size,
    .init = veltair_init,
    .decide = veltair_decide,
};
