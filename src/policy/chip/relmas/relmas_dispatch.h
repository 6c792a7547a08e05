// RelmasDispatch: the best pairs of waiting tasks and free units start, and bandwidth goes to who
// is worth most.
#pragma once

#include "policy/chip/relmas/relmas_score.h"

typedef struct RelmasTaskMemo {  // what is remembered of a task, by its slot
    uint64_t said, lost;  // id of the request + 1 if the network spoke of it; if there is no hope
    float    value;       // of the task in this call
    RelmasActorOutput says;
} RelmasTaskMemo;

typedef enum RelmasDecision {
    RELMAS_START,
    RELMAS_AWAIT_UNIT,       // for a unit that is still busy
    RELMAS_AWAIT_BANDWIDTH,  // a unit is free, but the memory has too little left
    RELMAS_NO_UNIT,          // no unit would be in time
} RelmasDecision;

// Is told of everything that is weighed, for explanations.
typedef struct RelmasDecisionTrace {
    void (*pair)(void *self, uint32_t task, uint32_t unit, float wait_ns, float fit,
                 const float parts[RELMAS_TERMS]);
    void (*verdict)(void *self, uint32_t task, uint32_t unit, RelmasDecision v);
    void *self;
} RelmasDecisionTrace;

typedef struct RelmasDispatch {
    RelmasScorer    scorer;
    RelmasTaskMemo *notes;  // [slot]
    uint32_t       *order;  // [slot] tasks that wait, by value
} RelmasDispatch;

void relmas_dispatch_carve(RelmasDispatch *s, const ChipSetup *setup, Carve *from);
// witness: NULL: none.
uint32_t relmas_dispatch(RelmasDispatch *s, const ChipView *v, const RelmasDecisionTrace *witness,
                         ChipAction *out, uint32_t max);

// What the network said of this request, or that it has said nothing.
RelmasActorOutput relmas_dispatch_output(const RelmasDispatch *s, const ChipTask *t);
bool              relmas_dispatch_infeasible(const RelmasDispatch *s,
                                             const ChipTask       *t);  // there is no hope for it
