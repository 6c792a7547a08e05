// Ddpg internals: shards of a batch (ddpg_shard.c), updates (ddpg.c).
#pragma once

#include "learn/ddpg.h"

enum { DDPG_ACTOR, DDPG_CRITIC, DDPG_NETS = 3 };  // an actor and up to two critics

typedef struct DdpgNet {
    FloatVec w, target, m, v;
    float   *count;  // updates; a float, so that it is part of the saved state
} DdpgNet;

typedef struct DdpgSide {  // sequences before or after a transition, as a ragged batch
    Ragged ragged;
    float *x, *action;
} DdpgSide;

// A part of the batch with buffers of its own.
typedef struct DdpgShard {
    uint32_t  n;     // sequences
    uint32_t *len;   // [n]
    uint32_t *step;  // [n] by rank: index into the batch
    DdpgSide  now, next;
    float    *taught, *d_action;           // [rows][actions]
    float    *target, *q, *q_taught, *dq;  // [n] by rank
    float    *actor_cache, *critic_cache;
    FloatVec  gradient[DDPG_NETS];
    double    critic_loss, value, value_size;  // sums over its transitions
    double    actor_loss, imitate_loss;
} DdpgShard;

struct Ddpg {
    DdpgOptions o;
    Rng         rng;
    uint32_t    n_nets;
    DdpgNet     nets[DDPG_NETS];
    FloatVec    state;
    float      *value_size;  // running mean of |value|; 0: none yet
    DdpgShard  *shards;
    FloatVec    gradient;  // as long as the largest network
    // Of the current update:
    const DdpgTransition *steps;
    uint32_t              n;
    bool                  by_value, by_teacher;
};

void ddpg_shard_init(DdpgShard *p, const DdpgOptions *o, const Ddpg *d, Arena *a);

// Packs the shard's transitions; gradients of the critics; gradients of the actor.
void ddpg_shard_pack(Ddpg *d, uint32_t shard);
void ddpg_shard_critic(Ddpg *d, uint32_t shard);
void ddpg_shard_actor(Ddpg *d, uint32_t shard);
