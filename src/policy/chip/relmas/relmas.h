// Relmas: the state of the learned chip policy, for its training and for explanations.
#pragma once

#include "learn/actor_critic.h"
#include "learn/float_vec.h"
#include "policy/chip/relmas/relmas_dispatch.h"
#include "policy/chip/relmas/relmas_observation.h"

enum { RELMAS_HIDDEN = 32, RELMAS_HIDDEN_MAX = 256 };

static inline Actor relmas_actor(uint32_t hidden) {
    return (Actor){.trunk = {.in = RELMAS_FEATURES, .hidden = hidden}, .actions = RELMAS_OUTPUTS};
}

typedef struct RelmasLoaded {
    Actor        actor;
    const float *w;  // parameters; NULL: the heuristic alone
    // Called after every inference; may change the outputs [n][RELMAS_OUTPUTS]. NULL: not called.
    void (*explore)(void *self, const RelmasScorer *scorer, const ChipView *v,
                    const RelmasObservation *seen, float *outputs);
    void *self;
} RelmasLoaded;

typedef struct Relmas {
    RelmasTable         table;
    RelmasDispatch      dispatch;
    const RelmasLoaded *loaded;
    RelmasObservation   observation;  // of the last plan()
    uint64_t            ids[RELMAS_WINDOW];
    uint32_t            slots[RELMAS_WINDOW];
    float               outputs[RELMAS_WINDOW * RELMAS_OUTPUTS];
    float              *scratch;  // of the network
} Relmas;

// The policy's functions, for the heuristic without a network (prices.c).
size_t   relmas_size(const ChipSetup *s, const void *settings);
void     relmas_init(void *state, const ChipSetup *s, const void *settings, const void *loaded);
uint32_t relmas_decide(void *state, const ChipView *v, ChipAction *out, uint32_t max);

// Decides as the policy would and reports everything that it compares to the trace. Updates the
// same per-task memory as the policy.
uint32_t relmas_explain(const void *state, const ChipView *v, const RelmasDecisionTrace *trace,
                        ChipAction *out, uint32_t max);

// what: a path, "" for the embedded weights, or "none" for the heuristic alone.
MUST_USE Err relmas_weights_load(const char *what, Arena *a, RelmasLoaded *out);
// facts: additional lines "key=value\n" on the training.
MUST_USE Err relmas_weights_save(const char *path, uint32_t hidden, FloatVec w, const char *facts,
                                 Arena *scratch);
