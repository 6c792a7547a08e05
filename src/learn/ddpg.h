// Ddpg: an actor and critics over sequences of items that learn from what was done and came of it.
//
//     Ddpg *d = ddpg_create(&arena, ddpg_defaults(actor, critic), seed);
//     actor_infer(actor, ddpg_actor(d), n, x, action, scratch);    // act, then add noise
//     ddpg_train(d, team, steps, n_steps, &report);                // one update
//
// The batch is dealt to `parts`, whose gradients are summed in order. With `fixed` products (see
// mat.h) a team computes them, and neither its size nor the machine shows in the result; with BLAS
// the calling thread does it all. No step allocates.
#pragma once

#include "base/arena.h"
#include "base/team.h"
#include "learn/actor_critic.h"
#include "learn/float_vec.h"

typedef struct DdpgOptions {
    Actor    actor;
    Critic   critic;
    uint32_t batch, items;  // steps in a batch, items in a sequence, at most
    uint32_t parts;
    bool     fixed;
    bool     twin;         // two critics, the lower one is believed (TD3)
    uint32_t actor_every;  // updates of the critic, one of the actor; 0: never
    uint32_t actor_from;   // updates of the critic before the actor's first
    float    actor_rate, critic_rate, decay;
    float    clip;                 // norm of a gradient, at most
    float    tau;                  // of target networks
    float    huber;                // the critic's loss is linear beyond; 0: squared everywhere
    float    smooth, smooth_most;  // noise on the target's actions, and its limit (TD3); 0: none
    float    imitate;         // weight of the distance to a teacher's actions in the actor's loss
    bool     imitate_better;  // only where the critic prefers the teacher
    bool     level;           // divide values by their usual size in the actor's loss
    float    pull;            // what the actor's tanh bends to 0
} DdpgOptions;

DdpgOptions ddpg_defaults(Actor actor, Critic critic);

typedef struct DdpgTransition {  // one experience, borrowed
    const float *x, *action;     // [n][features], [n][actions]
    const float *teacher;        // [n][actions], NAN: no opinion; NULL: none at all
    const float *next_x;         // [next_n][features]
    uint32_t     n, next_n;      // 0: nothing there
    float        reward;         // of the step, or of several, discounted
    float        discount;       // of what comes after; 0: nothing comes
    float        weight;         // importance; 1 is usual
} DdpgTransition;

typedef struct DdpgReport {
    double critic_loss, actor_loss, imitate_loss;  // means over the batch; the actor's is -value
    double value, critic_norm, actor_norm;         // norms of gradients before clipping
} DdpgReport;

typedef struct Ddpg Ddpg;

Ddpg *ddpg_create(Arena *a, DdpgOptions options, uint64_t seed);

// One update. team: NULL: this thread alone. Afterwards ddpg_errors has |target - value| of each
// step of the batch, for priorities.
void ddpg_train(Ddpg *d, Team *team, const DdpgTransition *steps, uint32_t n, DdpgReport *out);
const float *ddpg_errors(const Ddpg *d);

// The actor alone towards its teacher: a warm start. Targets follow. Steps need x, n, teacher.
void ddpg_imitate(Ddpg *d, Team *team, const DdpgTransition *steps, uint32_t n, DdpgReport *out);

const float *ddpg_actor(const Ddpg *d);  // parameters, as they are now
DdpgOptions *ddpg_options(Ddpg *d);      // rates, weights and switches may change between updates
FloatVec     ddpg_state(Ddpg *d);        // all that is learned, to be saved and put back
void         ddpg_set_actor(Ddpg *d, FloatVec w);  // from elsewhere, for the actor and its target

// The rewards of n steps as one; *discount gets gamma^n, for what comes after them.
float ddpg_return(const float *rewards, uint32_t n, float gamma, float *discount);

// A step as floats, for a replay: how many, written, and seen again without a copy.
size_t         ddpg_transition_size(const Actor *a, const DdpgTransition *s);
void           ddpg_transition_write(const Actor *a, const DdpgTransition *s, float *to);
DdpgTransition ddpg_transition_read(const Actor *a, const float *from);
