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
//    those worth most get all they ask for and the others what is left (relmas_serve.c).
// 5. Every period the network reads the most urgent tasks, one row each (relmas_look.c), from the
//    least slack on, and says of each how much sooner or later it should go and how much more or
//    less price, time and bandwidth should count when a unit is chosen for it (learn/actor.h). That
//    holds from when the package's controller has computed it; tasks that it has not seen yet go by
//    the rule alone. With weights=none all do.
//
// The network was trained to make more requests end in time, see docs/chip-training.md.
#include "policy/chip/relmas.h"

#include <string.h>

#include "learn/actor_plain.h"
#include "policy/chip/relmas_file.h"
#include "policy/policies.h"

static Err load(const ChipSetup *s, const void *settings, Arena *a, const void **loaded) {
    (void)s;
    RelmasLoaded *l = arena_new(a, RelmasLoaded, 1);
    *loaded = l;
    return relmas_file_load(((const RelmasSettings *)settings)->weights, a, l);
}

static Relmas *carve_all(const ChipSetup *s, Carve *from) {
    Relmas *r = carve(from, Relmas, 1), none = {.look = {.n = 0}};
    Relmas *to = r == NULL ? &none : r;
    relmas_table_carve(&to->table, s, from);
    relmas_serve_carve(&to->serve, s, from);
    size_t scratch = actor_plain_scratch(relmas_actor(RELMAS_HIDDEN_MAX), RELMAS_WINDOW);
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
    r->serve.rule = (RelmasRule){s, &r->table, *(const RelmasSettings *)settings};
    r->loaded = loaded;
}

static void charge_for(const Relmas *r, ChipCharge *to) {
    Actor actor = r->loaded->actor;
    if (r->serve.rule.with.hidden > 0) actor.trunk.hidden = (uint32_t)r->serve.rule.with.hidden;
    to->macs = actor_macs(actor, r->look.n);
    to->weight_bytes = (double)actor_params(actor);
}

static void think(void *state, const ChipView *v, ChipCharge *charge) {
    Relmas             *r = state;
    const RelmasLoaded *with = r->loaded;
    if (with == NULL || with->w == NULL) {
        r->look.n = 0;
        return;
    }
    relmas_look(&r->serve.rule, v, &r->look);
    for (uint32_t i = 0; i < r->look.n; i++) {
        r->ids[i] = v->tasks[r->look.task[i]].request.id;
        r->slots[i] = v->tasks[r->look.task[i]].slot;
    }
    actor_plain(with->actor, with->w, r->look.n, r->look.x, r->says, r->scratch);
    if (with->explore != NULL) with->explore(with->self, &r->serve.rule, v, &r->look, r->says);
    charge_for(r, charge);
}

static void adopt(void *state) {
    Relmas *r = state;
    for (uint32_t i = 0; i < r->look.n; i++) {
        RelmasNote *n = &r->serve.notes[r->slots[i]];
        n->said = r->ids[i] + 1;
        memcpy(&n->says, r->says + (size_t)i * RELMAS_SAYS, sizeof n->says);
    }
}

uint32_t relmas_decide(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    Relmas *r = state;
    return relmas_serve(&r->serve, v, NULL, out, max);
}

uint32_t relmas_explain(const void *state, const ChipView *v, const RelmasWitness *witness,
                        ChipAction *out, uint32_t max) {
    RelmasServe same = ((const Relmas *)state)->serve;
    return relmas_serve(&same, v, witness, out, max);
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
    .think = think,
    .adopt = adopt,
    .decide = relmas_decide,
};
