// Ddpg: deep deterministic policy gradient with the extensions of TD3 and imitation of a teacher,
// for actors and critics over sequences of items.
//
//     Ddpg *d = ddpg_create(&arena, ddpg_defaults(actor, critic), seed);
//     actor_infer(actor, ddpg_actor(d), n, x, action, scratch);    // act, then add noise
//     ddpg_train(d, team, steps, n_steps, &report);                // one update
//
// The batch is divided into `shards`; their gradients are summed in order. If `reproducible` (see
// mat.h), a team computes the shards, and the result does not depend on its size or the machine;
// with BLAS the calling thread computes them all. Updates allocate nothing.
#pragma once

#include "base/arena.h"
#include "base/team.h"
#include "learn/actor_critic.h"
#include "learn/float_vec.h"

typedef struct DdpgOptions {
    Actor    actor;
    Critic   critic;
    uint32_t batch, items;  // transitions per batch, items per sequence, at most
    uint32_t shards;
    bool     reproducible;
    bool     twin;         // two critics, the minimum is the target (TD3)
    uint32_t actor_every;  // critic updates per actor update; 0: never
    uint32_t actor_from;   // critic updates before the first actor update
    float    actor_rate, critic_rate, decay;
    float    clip;                          // maximum gradient norm
    float    tau;                           // rate of target updates
    float    huber;                         // threshold of the critic's Huber loss; 0: squared loss
    float target_noise, target_noise_clip;  // noise on target actions and its limit (TD3); 0: none
    float imitate;  // weight of the squared distance to the teacher's actions in the actor's loss
    bool  imitate_better;  // only where the critic values the teacher's action higher
    bool  scale_values;    // divide values by the running mean of |value| in the actor's loss
    float pre_tanh_l2;     // L2 penalty on the actor's outputs before tanh
} DdpgOptions;

DdpgOptions ddpg_defaults(Actor actor, Critic critic);

typedef struct DdpgTransition {  // of one or more steps, borrowed
    const float *x, *action;     // [n][features], [n][actions]
    const float *teacher;        // [n][actions], NAN where it has none; NULL: no teacher
    const float *next_x;         // [next_n][features]
    uint32_t     n, next_n;      // items; may be 0
    float        reward;         // discounted sum
    float        discount;       // of the next value; 0: terminal
    float        weight;         // of its loss
} DdpgTransition;

typedef struct DdpgReport {
    double critic_loss, actor_loss, imitate_loss;  // means over the batch; actor_loss is -value
    double value, critic_norm, actor_norm;         // norms of gradients before clipping
} DdpgReport;

typedef struct Ddpg Ddpg;

Ddpg *ddpg_create(Arena *a, DdpgOptions options, uint64_t seed);

// One update; team NULL: in the calling thread.
void ddpg_train(Ddpg *d, Team *team, const DdpgTransition *steps, uint32_t n, DdpgReport *out);

// One update of the actor towards its teacher only (warm start). Uses x, n and teacher.
void ddpg_imitate(Ddpg *d, Team *team, const DdpgTransition *steps, uint32_t n, DdpgReport *out);

const float *ddpg_actor(const Ddpg *d);            // current parameters
DdpgOptions *ddpg_options(Ddpg *d);                // may change between updates, sizes excepted
FloatVec     ddpg_state(Ddpg *d);                  // everything learned, to save and restore
void         ddpg_set_actor(Ddpg *d, FloatVec w);  // sets the actor and its target

// A transition as floats, for a replay: size, write, and read without a copy.
size_t         ddpg_transition_size(const Actor *a, const DdpgTransition *s);
void           ddpg_transition_write(const Actor *a, const DdpgTransition *s, float *to);
DdpgTransition ddpg_transition_read(const Actor *a, const float *from);
