// relmas: a network adjusts the scores by which a dispatcher chooses tasks and units
//
// 1. Prices. The price of a nanosecond on each kind of unit and of a byte of memory traffic follows
//    from the tenants' networks: the dual prices of the best packing (relmas_price.c). With them
//    the work of any layer on any unit is one number, in nanoseconds of the whole package.
// 2. Score of a task (relmas_score.c): less remaining work first, less slack first, tenants below
//    their target hit rate more. Infeasible tasks come after all others, or are dropped.
// 3. Score of a unit: its price over the cheapest unit's, and the share of the task's slack that it
//    uses. A task with a bad match waits for a better unit.
// 4. Pairs start by score while the memory has enough bandwidth left for them. When it has not, the
//    layers with the highest scores get their whole demand and the others what is left
//    (relmas_dispatch.c).
// 5. Every period the network reads the most urgent tasks, one row each, by ascending slack
//    (relmas_observation.c). For each it returns how much sooner or later the task should start and
//    how much more or less price, time and bandwidth should count in the choice of its unit
//    (learn/actor_critic.h). The answer takes effect once the package's controller has computed it;
//    tasks that the network has not seen yet are scored by the heuristic alone. With weights=none
//    all are.
//
// The network is trained to increase the share of requests in time, see docs/chip-training.md.
#include "policy/chip/relmas/relmas.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "learn/actor_critic.h"
#include "policy/chip/common/dispatch.h"
#include "policy/embedded_weights.h"
#include "policy/policies.h"

static Err load(const ChipSetup *s, const void *settings, Arena *a, const void **loaded) {
    (void)s;
    RelmasLoaded *l = arena_new(a, RelmasLoaded, 1);
    *loaded = l;
    return relmas_weights_load(((const RelmasSettings *)settings)->weights, a, l);
}

static void *carve_all(const ChipSetup *s, const void *settings, Carve *from) {
    (void)settings;
    Relmas *r = carve(from, Relmas, 1), none = {.observation = {.n = 0}};
    Relmas *to = r == NULL ? &none : r;
    relmas_table_carve(&to->table, s, from);
    relmas_dispatch_carve(&to->dispatch, s, from);
    size_t scratch = actor_infer_scratch(relmas_actor(RELMAS_HIDDEN_MAX), RELMAS_WINDOW);
    to->scratch = carve(from, float, scratch);
    return r;
}

size_t relmas_size(const ChipSetup *s, const void *settings) {
    return state_size(carve_all, s, settings);
}

void relmas_init(void *state, const ChipSetup *s, const void *settings, const void *loaded) {
    Relmas *r = state_place(carve_all, s, settings, state);
    relmas_table_fill(&r->table, s);
    r->dispatch.scorer = (RelmasScorer){s, &r->table, *(const RelmasSettings *)settings};
    r->loaded = loaded;
}

static void add_cost(const Relmas *r, ChipPlanCost *to) {
    Actor actor = r->loaded->actor;
    if (r->dispatch.scorer.cfg.hidden > 0)
        actor.trunk.hidden = (uint32_t)r->dispatch.scorer.cfg.hidden;
    to->macs = actor_macs(actor, r->observation.n);
    to->weight_bytes = (double)actor_params(actor);
}

static void plan(void *state, const ChipView *v, ChipPlanCost *cost) {
    Relmas             *r = state;
    const RelmasLoaded *l = r->loaded;
    if (l == NULL || l->w == NULL) {
        r->observation.n = 0;
        return;
    }
    relmas_observe(&r->dispatch.scorer, v, &r->observation);
    for (uint32_t i = 0; i < r->observation.n; i++) {
        r->ids[i] = v->tasks[r->observation.task[i]].request.id;
        r->slots[i] = v->tasks[r->observation.task[i]].slot;
    }
    actor_infer(l->actor, l->w, r->observation.n, r->observation.x, r->outputs, r->scratch);
    if (l->explore != NULL)
        l->explore(l->self, &r->dispatch.scorer, v, &r->observation, r->outputs);
    add_cost(r, cost);
}

static void commit(void *state) {
    Relmas *r = state;
    for (uint32_t i = 0; i < r->observation.n; i++) {
        RelmasTaskMemo *n = &r->dispatch.notes[r->slots[i]];
        n->said = r->ids[i] + 1;
        memcpy(&n->output, r->outputs + (size_t)i * RELMAS_OUTPUTS, sizeof n->output);
    }
}

uint32_t relmas_decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Relmas *r = state;
    return relmas_dispatch(&r->dispatch, v, NULL, out, max);
}

uint32_t relmas_explain(const void *state, const ChipView *v, const RelmasDecisionTrace *trace,
                        ChipAction *out, uint32_t max) {
    RelmasDispatch same = ((const Relmas *)state)->dispatch;
    return relmas_dispatch(&same, v, trace, out, max);
}

static const Setting rows[] = {
#define X(...) SETTING_ROW(RelmasSettings, __VA_ARGS__)
    RELMAS_SETTINGS(X)
#undef X
};

const ChipPolicy chip_policy_relmas = {
    .name = "relmas",
    .about = "a network adjusts the scores of a price-based dispatcher",
    .learned = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(RelmasSettings),
    .load = load,
    .state_size = relmas_size,
    .init = relmas_init,
    .plan = plan,
    .commit = commit,
    .decide = relmas_decide,
};

static char *facts_of(Arena *a) {
    return arena_printf(a, "policy=relmas\nfeatures=%d\noutputs=%d\n", RELMAS_FEATURES,
                        RELMAS_OUTPUTS);
}

Err relmas_weights_load(const char *what, Arena *a, RelmasLoaded *out) {
    WeightsFile w;
    const char *expect = facts_of(a);
    if (strcmp(what, "none") == 0) {
        *out = (RelmasLoaded){.w = NULL};
        return ERR_OK;
    }
    TRY(embedded_weights_load(what, "relmas", "chip", expect, a, &w));
    const char *fact = weights_metadata(&w, "hidden", a);
    uint32_t    hidden = fact != NULL ? (uint32_t)strtoul(fact, NULL, 10) : 0;
    Actor       actor = relmas_actor(hidden);
    if (hidden < 1 || hidden > RELMAS_HIDDEN_MAX || actor_params(actor) != w.params.n)
        return err_set(ERR_INVALID,
                       "relmas weights %s: %zu parameters do not fit a network of %u hidden units; "
                       "train new ones with 'cotenant chip train'",
                       what, w.params.n, hidden);
    *out = (RelmasLoaded){.actor = actor, .w = w.params.at};
    return ERR_OK;
}

Err relmas_weights_save(const char *path, uint32_t hidden, FloatVec w, const char *facts,
                        Arena *scratch) {
    size_t mark = scratch->used;
    char *all = arena_printf(scratch, "%shidden=%" PRIu32 "\n%s", facts_of(scratch), hidden, facts);
    Err   e = weights_save(path, all, w);
    arena_rewind(scratch, mark);
    return e;
}
