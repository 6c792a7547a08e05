// DdpgInt: what the files of Ddpg share.
#pragma once

#include "learn/ddpg.h"

enum { DDPG_ACTOR, DDPG_CRITIC, DDPG_NETS = 3 };  // an actor and up to two critics

typedef struct DdpgNet {
    FloatVec w, target, m, v;
    float   *count;  // of its updates; a float, so that it is saved with the others
} DdpgNet;

typedef struct DdpgSide {  // sequences before or after a step, in rows of a ragged batch
    Ragged ragged;
    float *x, *action;
} DdpgSide;

// A part of the batch, with memory of its own.
typedef struct DdpgShard {
    uint32_t  n;     // sequences
    uint32_t *len;   // [n]
    uint32_t *step;  // [n] by rank: index into the batch
    DdpgSide  now, next;
    float    *taught, *d_action;           // [rows][actions]
    float    *target, *q, *q_taught, *dq;  // [n] by rank
    float    *actor_cache, *critic_cache;
    FloatVec  gradient[DDPG_NETS];
    double    critic_loss, value, value_size;  // sums over its steps
    double    actor_loss, imitate_loss;
} DdpgShard;

struct Ddpg {
    DdpgOptions o;
    Rng         rng;
    uint32_t    n_nets;
    DdpgNet     nets[DDPG_NETS];
    FloatVec    state;
    float      *value_size;  // a running mean of |value|; 0: not known yet
    DdpgShard  *parts;
    float      *errors;    // [batch]
    FloatVec    gradient;  // as long as the largest network
    // The update under way.
    const DdpgTransition *steps;
    uint32_t              n;
    bool                  by_value, by_teacher;
};

void ddpg_shard_init(DdpgShard *p, const DdpgOptions *o, const Ddpg *d, Arena *a);

// Gradients of the critics; then, with the critics updated, those of the actor.
void ddpg_shard_pack(Ddpg *d, uint32_t part);
void ddpg_shard_critic(Ddpg *d, uint32_t part);
void ddpg_shard_actor(Ddpg *d, uint32_t part);
