// Agenda: on which kind of unit, and in which order, the next layers of tasks are to run, as it was
// last thought out and adopted.
//
// A thought is written while the last one still holds, and takes its place when it is adopted. A
// task that has run ahead of it keeps its rank; who came later follows all that it names.
#pragma once

#include "policy/chip/hope.h"
#include "policy/chip/serve.h"

enum { AGENDA_DEPTH = 16 };  // layers of a task, at most

typedef struct AgendaItem {
    float   rank;  // least first
    uint8_t kind;
} AgendaItem;

typedef struct AgendaTask {
    uint64_t   request, thought;  // whose, and the number of the thought; 0: none
    uint32_t   first, n;          // layers
    AgendaItem at[AGENDA_DEPTH];
} AgendaTask;

typedef struct Agenda {
    AgendaTask *held, *next;  // [slot]
    uint64_t    holds, thinks;
    Order       order;
} Agenda;

void agenda_carve(Agenda *a, uint32_t n_slots, Carve *from);

void agenda_begin(Agenda *a);  // a new thought, in which nothing stands
// The task's layers have to be named one after the other; what is too many is left out.
void agenda_put(Agenda *a, const ChipTask *t, uint32_t layer, AgendaItem x);
void agenda_adopt(Agenda *a);

// What was last adopted about a layer of a task; NULL: nothing.
const AgendaItem *agenda_find(const Agenda *a, const ChipTask *t, uint32_t layer);

typedef struct AgendaRules {
    double patience;  // see fleet_soonest
    int    hopeless;  // a HopeLost
    double ease;
} AgendaRules;

// Starts tasks by rank on their kinds, then others by arrival where they end first. Who finds its
// kind busy takes a free unit instead when waiting would not end before patience x that.
uint32_t agenda_serve(Agenda *a, Fleet *f, const AgendaRules *rules, ChipAction *out, uint32_t max);
