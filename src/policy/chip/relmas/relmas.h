// Relmas: what its training and its explanations share with the learned policy.
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
    const float *w;  // NULL: no network, the rule alone
    // Training is told of every thought and may change what the network said, [n][RELMAS_OUTPUTS].
    void (*explore)(void *self, const RelmasScorer *rule, const ChipView *v,
                    const RelmasObservation *look, float *says);
    void *self;
} RelmasLoaded;

typedef struct Relmas {
    RelmasTable         table;
    RelmasDispatch      dispatch;
    const RelmasLoaded *loaded;
    RelmasObservation   observation;  // of the last thought, and what the network said then
    uint64_t            ids[RELMAS_WINDOW];
    uint32_t            slots[RELMAS_WINDOW];
    float               says[RELMAS_WINDOW * RELMAS_OUTPUTS];
    float              *scratch;  // of the network
} Relmas;

// The policy's own functions, for the rule without a network (prices.c).
size_t   relmas_size(const ChipSetup *s, const void *settings);
void     relmas_init(void *state, const ChipSetup *s, const void *settings, const void *loaded);
uint32_t relmas_decide(void *state, const ChipView *v, ChipAction *out, uint32_t max);

// Decides as the policy is about to, and tells the witness why. What it notes down of tasks on the
// way, the policy would too.
uint32_t relmas_explain(const void *state, const ChipView *v, const RelmasDecisionTrace *witness,
                        ChipAction *out, uint32_t max);

// RelmasFile: the network's weights, from a file or from those that are part of the program.

// what: a path, "" for those that came along, or "none" for the rule alone.
MUST_USE Err relmas_weights_load(const char *what, Arena *a, RelmasLoaded *out);
// `facts`: more lines "key=value\n" about how the weights came about.
MUST_USE Err relmas_weights_save(const char *path, uint32_t hidden, FloatVec w, const char *facts,
                                 Arena *scratch);
