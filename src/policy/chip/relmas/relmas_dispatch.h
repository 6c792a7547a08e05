// RelmasDispatch: starts the best pairs of waiting tasks and free units and gives bandwidth to the
// layers with the highest scores.
#pragma once

#include "policy/chip/relmas/relmas_score.h"

typedef struct RelmasTaskMemo {    // of a task, by its slot
    uint64_t          said;        // request id + 1 if `output` is the network's for it
    uint64_t          infeasible;  // request id + 1 if it was found infeasible
    float             value;       // score of the task in this call
    RelmasActorOutput output;
} RelmasTaskMemo;

typedef enum RelmasDecision {
    RELMAS_START,
    RELMAS_AWAIT_UNIT,       // its best unit is busy
    RELMAS_AWAIT_BANDWIDTH,  // its unit is free, but too little bandwidth is left
    RELMAS_NO_UNIT,          // no unit would be in time
} RelmasDecision;

// Receives everything that is compared, for explanations.
typedef struct RelmasDecisionTrace {
    void (*pair)(void *self, uint32_t task, uint32_t unit, float wait_ns, float fit,
                 const float terms[RELMAS_TERMS]);
    void (*verdict)(void *self, uint32_t task, uint32_t unit, RelmasDecision d);
    void *self;
} RelmasDecisionTrace;

typedef struct RelmasDispatch {
    RelmasScorer    scorer;
    RelmasTaskMemo *notes;  // [slot]
    uint32_t       *order;  // waiting tasks by value
} RelmasDispatch;

void relmas_dispatch_carve(RelmasDispatch *d, const ChipSetup *setup, Carve *from);
// trace: NULL: none.
uint32_t relmas_dispatch(RelmasDispatch *d, const ChipView *v, const RelmasDecisionTrace *trace,
                         ChipAction *out, uint32_t max);

// The network's output for a request; zeros if it has not seen it.
RelmasActorOutput relmas_dispatch_output(const RelmasDispatch *d, const ChipTask *t);
bool              relmas_dispatch_infeasible(const RelmasDispatch *d, const ChipTask *t);
