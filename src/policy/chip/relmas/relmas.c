// relmas: a network reads the queue, and a dispatcher heeds it
//
// 1. Prices. What a nanosecond of each kind of unit and a byte of the memory are worth follows from
//    the tenants' networks: those that would pack the package best (relmas_price.c). With them the
//    work of any layer on any unit is one number, in nanoseconds of the whole package.
// 2. Worth of a task (relmas_rule.c): little work left first, little slack first; who lacks hits to
//    its target more. Who cannot be in time any more comes after all others, or is dropped.
// 3. Fit of a unit: what it costs more than the cheapest one, and how much of the task's slack it
//    eats up. A bad fit waits for a better unit.
// 4. Pairs start by worth and fit as long as the memory has enough left for them. When it has not,
//    those worth most get all they ask for and the others what is left (relmas_dispatch.c).
// 5. Every period the network reads the most urgent tasks, one row each (relmas_observe.c), from
// the
//    least slack on, and says of each how much sooner or later it should go and how much more or
//    less price, time and bandwidth should count when a unit is chosen for it
//    (learn/actor_critic.h). That holds from when the package's controller has computed it; tasks
//    that it has not seen yet go by the rule alone. With weights=none all do.
//
// The network was trained to make more requests end in time, see docs/chip-training.md.
#include "policy/chip/relmas/relmas.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "learn/actor_critic.h"
#include "policy/embedded_weights.h"
#include "policy/policies.h"

static Err load(const ChipSetup *s, const void *settings, Arena *a, const void **loaded) {
    (void)s;
    RelmasLoaded *l = arena_new(a, RelmasLoaded, 1);
    *loaded = l;
    return relmas_weights_load(((const RelmasSettings *)settings)->weights, a, l);
}

static Relmas *carve_all(const ChipSetup *s, Carve *from) {
    Relmas *r = carve(from, Relmas, 1), none = {.observation = {.n = 0}};
    Relmas *to = r == NULL ? &none : r;
    relmas_table_carve(&to->table, s, from);
    relmas_dispatch_carve(&to->dispatch, s, from);
    size_t scratch = actor_infer_scratch(relmas_actor(RELMAS_HIDDEN_MAX), RELMAS_WINDOW);
    to->scratch = carve(from, float, scratch);
    return r;
}

size_t relmas_size(const ChipSetup *s, const void *settings) {
    (void)settings;
    Carve c = {0};
    carve_all(s, &c);
    return c.used;
}

void relmas_init(void *state, const ChipSetup *s, const void *settings, const void *loaded) {
    Carve   c = {.base = state};
    Relmas *r = carve_all(s, &c);
    relmas_table_fill(&r->table, s);
    r->dispatch.scorer = (RelmasScorer){s, &r->table, *(const RelmasSettings *)settings};
    r->loaded = loaded;
}

static void charge_for(const Relmas *r, ChipPlanCost *to) {
    Actor actor = r->loaded->actor;
    if (r->dispatch.scorer.cfg.hidden > 0)
        actor.trunk.hidden = (uint32_t)r->dispatch.scorer.cfg.hidden;
    to->macs = actor_macs(actor, r->observation.n);
    to->weight_bytes = (double)actor_params(actor);
}

static void plan(void *state, const ChipView *v, ChipPlanCost *cost) {
    Relmas             *r = state;
    const RelmasLoaded *with = r->loaded;
    if (with == NULL || with->w == NULL) {
        r->observation.n = 0;
        return;
    }
    relmas_observe(&r->dispatch.scorer, v, &r->observation);
    for (uint32_t i = 0; i < r->observation.n; i++) {
        r->ids[i] = v->tasks[r->observation.task[i]].request.id;
        r->slots[i] = v->tasks[r->observation.task[i]].slot;
    }
    actor_infer(with->actor, with->w, r->observation.n, r->observation.x, r->says, r->scratch);
    if (with->explore != NULL)
        with->explore(with->self, &r->dispatch.scorer, v, &r->observation, r->says);
    charge_for(r, cost);
}

static void commit(void *state) {
    Relmas *r = state;
    for (uint32_t i = 0; i < r->observation.n; i++) {
        RelmasTaskMemo *n = &r->dispatch.notes[r->slots[i]];
        n->said = r->ids[i] + 1;
        memcpy(&n->says, r->says + (size_t)i * RELMAS_OUTPUTS, sizeof n->says);
    }
}

uint32_t relmas_decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Relmas *r = state;
    return relmas_dispatch(&r->dispatch, v, NULL, out, max);
}

uint32_t relmas_explain(const void *state, const ChipView *v, const RelmasDecisionTrace *witness,
                        ChipAction *out, uint32_t max) {
    RelmasDispatch same = ((const Relmas *)state)->dispatch;
    return relmas_dispatch(&same, v, witness, out, max);
}

static const Setting rows[] = {
#define X(...) SETTING_ROW(RelmasSettings, __VA_ARGS__)
    RELMAS_SETTINGS(X)
#undef X
};

const ChipPolicy chip_policy_relmas = {
    .name = "relmas",
    .about = "a network reads the queue, and a dispatcher that reckons in prices heeds it",
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
                       "weights of relmas %s: %zu numbers do not make a network of %u hidden ones; "
                       "train others with 'cotenant chip train'",
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
