#include "policy/chip/agenda.h"

void agenda_carve(Agenda *a, uint32_t n_slots, Carve *from) {
    *a = (Agenda){.thinks = 1};
    a->held = carve(from, AgendaTask, n_slots);
    a->next = carve(from, AgendaTask, n_slots);
    order_carve(&a->order, n_slots, from);
}

void agenda_begin(Agenda *a) { a->thinks++; }

void agenda_put(Agenda *a, const ChipTask *t, uint32_t layer, AgendaItem x) {
    AgendaTask *on = &a->next[t->slot];
    if (on->thought != a->thinks || on->request != t->request.id)
        *on = (AgendaTask){.request = t->request.id, .thought = a->thinks, .first = layer};
    if (on->n < AGENDA_DEPTH && on->first + on->n == layer) on->at[on->n++] = x;
}

void agenda_adopt(Agenda *a) {
    AgendaTask *was = a->held;
    a->held = a->next;
    a->next = was;
    a->holds = a->thinks;
}

static const AgendaTask *named(const Agenda *a, const ChipTask *t) {
    const AgendaTask *on = &a->held[t->slot];
    bool              is = on->thought == a->holds && on->thought > 0 && on->n > 0;
    return is && on->request == t->request.id ? on : NULL;
}

const AgendaItem *agenda_find(const Agenda *a, const ChipTask *t, uint32_t layer) {
    const AgendaTask *on = named(a, t);
    if (on == NULL || layer < on->first || layer - on->first >= on->n) return NULL;
    return &on->at[layer - on->first];
}

// Who has run ahead of the plan keeps the rank of the last layer in it.
static double rank_of(const Agenda *a, const ChipTask *t) {
    const double      unnamed = 1e30;
    const AgendaTask *on = named(a, t);
    if (on == NULL || t->layer < on->first) return unnamed;
    uint32_t at = t->layer - on->first;
    return (double)on->at[at < on->n ? at : on->n - 1].rank;
}

static FleetPick pick(const Fleet *f, const ChipTask *t, const AgendaItem *x, float patience) {
    FleetPick soonest = fleet_soonest(f, t, patience);
    if (x == NULL) return soonest;
    FleetPick named = fleet_of_kind(f, t, x->kind);
    if (named.unit == CHIP_NONE) return soonest;
    if (named.wait == 0 || soonest.wait > 0) return named;
    return named.wait + named.ns < patience * soonest.ns ? named : soonest;
}

static uint32_t line_up(Agenda *a, const ChipView *v, const AgendaRules *rules, ChipAction *out,
                        uint32_t max) {
    const double last = 1e35;
    uint32_t     n = 0;
    order_clear(&a->order);
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ChipTask *t = &v->tasks[v->waiting[i]];
        bool            lost = hope_lost(v, t, rules->hopeless, rules->ease);
        if (lost && rules->hopeless == HOPE_DROP && n < max)
            out[n++] = (ChipAction){.verb = CHIP_DROP, .task = v->waiting[i]};
        else
            order_add(&a->order, lost ? last : rank_of(a, t), v->waiting[i]);
    }
    return n;
}

uint32_t agenda_serve(Agenda *a, Fleet *f, const AgendaRules *rules, ChipAction *out,
                      uint32_t max) {
    const ChipView *v = f->view;
    uint32_t        n = line_up(a, v, rules, out, max);
    while (a->order.n > 0 && f->n_free > 0 && n < max) {
        uint32_t        task = order_pop(&a->order).task;
        const ChipTask *t = &v->tasks[task];
        FleetPick       p = pick(f, t, agenda_find(a, t, t->layer), (float)rules->patience);
        if (p.unit == CHIP_NONE) continue;
        if (p.wait == 0) out[n++] = (ChipAction){.verb = CHIP_START, .task = task, .unit = p.unit};
        fleet_claim(f, t, p);
    }
    return n;
}
