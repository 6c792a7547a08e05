#include "policy/node/fixed.h"

#include "policy/node/cut.h"
#include "policy/node/line.h"
#include "policy/node/setup.h"

typedef struct Fixed {
    FixedRule rule;
    uint8_t  *solo;  // version 0 of every layer
    Cut      *cuts;  // [tenant]
} Fixed;

static Fixed *carve_all(const NodeSetup *s, const CutRule *rule, Carve *from) {
    Fixed *f = carve(from, Fixed, 1);
    Cut   *cuts = carve(from, Cut, s->n_tenants), unused;
    for (uint32_t i = 0; i < s->n_tenants; i++)
        cut_carve(cuts == NULL ? &unused : &cuts[i], rule, &s->tenants[i], from);
    uint8_t *solo = setup_carve_solo(s, from);
    if (f != NULL) *f = (Fixed){.solo = solo, .cuts = cuts};
    return f;
}

size_t fixed_size(const NodeSetup *setup, const void *settings) {
    (void)settings;
    Carve c = {0};
    carve_all(setup, &(CutRule){.blind = true}, &c);
    return c.used;
}

void fixed_init(void *state, const NodeSetup *setup, FixedRule rule) {
    CutRule cut = {.lo = rule.safety, .hi = rule.safety, .fixed = rule.layers, .blind = true};
    Carve   c = {.base = state};
    Fixed  *f = carve_all(setup, &cut, &c);
    f->rule = rule;
    for (uint32_t i = 0; i < setup->n_tenants; i++) cut_init(&f->cuts[i], &cut, &setup->tenants[i]);
}

static LineAsk ask(const void *policy, const NodeView *view, const NodeRequest *r) {
    const Fixed *f = policy;
    CutBlock     block = cut_at(&f->cuts[r->tenant], 0, r->next);
    return (LineAsk){block.n_layers,
                     line_quanta(view->setup->machine, block.cores, f->rule.quantum)};
}

uint32_t fixed_decide(void *state, const NodeView *view, NodeAction *out, uint32_t max) {
    const Fixed *f = state;
    Line         line = {.view = view,
                         .versions = f->solo,
                         .start = f->rule.start,
                         .grow = f->rule.grow,
                         .ask = ask,
                         .policy = f};
    return line_serve(&line, out, max);
}
