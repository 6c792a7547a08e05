// RelmasServe: the best pairs of waiting tasks and free units start, and bandwidth goes to who is
// worth most.
#pragma once

#include "policy/chip/relmas_rule.h"

typedef struct RelmasNote {  // what is remembered of a task, by its slot
    uint64_t   said, lost;  // id of the request + 1 if the network spoke of it; if there is no hope
    float      value;       // of the task in this call
    RelmasSays says;
} RelmasNote;

typedef enum RelmasVerdict {
    RELMAS_STARTS,
    RELMAS_WAITS,    // for a unit that is still busy
    RELMAS_STARVES,  // a unit is free, but the memory has too little left
    RELMAS_NOWHERE,  // no unit would be in time
} RelmasVerdict;

// Is told of everything that is weighed, for explanations.
typedef struct RelmasWitness {
    void (*pair)(void *self, uint32_t task, uint32_t unit, float wait_ns, float fit,
                 const float parts[RELMAS_PARTS]);
    void (*verdict)(void *self, uint32_t task, uint32_t unit, RelmasVerdict v);
    void *self;
} RelmasWitness;

typedef struct RelmasServe {
    RelmasRule  rule;
    RelmasNote *notes;  // [slot]
    uint32_t   *order;  // [slot] tasks that wait, by value
} RelmasServe;

void relmas_serve_carve(RelmasServe *s, const ChipSetup *setup, Carve *from);
// witness: NULL: none.
uint32_t relmas_serve(RelmasServe *s, const ChipView *v, const RelmasWitness *witness,
                      ChipAction *out, uint32_t max);

// What the network said of this request, or that it has said nothing.
RelmasSays relmas_serve_says(const RelmasServe *s, const ChipTask *t);
bool       relmas_serve_lost(const RelmasServe *s, const ChipTask *t);  // there is no hope for it
