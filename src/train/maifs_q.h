// MaifsQ: the value of a joint action of all agents, learned by double Q-learning with a target
// network.
//
//     Q(s, a) = V(s) + scale * sum of (A_i(a_i) - A_i(greedy a_i)) over agents that explored
//     A(m) = s_m (gain_m + f_m + pairs with other taken offers)
//
// s_m grows with the offer's own value, up to 1, and gain_m is the gain that the rule computes,
// over that value: f_m is an advantage that corrects the rule. Greedy agents add nothing: the value
// of states goes into V, a network that the policy does not need, and the value of offers is
// learned from random choices alone, which do not depend on the state. A later state is valued by
// the target network at the greedy actions of the learning network.
#pragma once

#include "base/team.h"
#include "learn/float_vec.h"
#include "policy/cluster/maifs/maifs.h"

enum {
    MAIFS_Q_POOL = MAIFS_SERVER + MAIFS_JOB + MAIFS_QUEUE + 2,
    MAIFS_Q_JOBS = 2048,  // of a sample, by default
    MAIFS_Q_TOOK = 128,   // explored offers of a step
};

typedef struct MaifsQState {  // an epoch: the state and the joint action
    MaifsInput   in;          // jobs: those of the offers
    const float *u;           // [n_jobs] the network's values of them at that time
    const float *pool;        // [MAIFS_Q_POOL] means over servers and jobs, for V
    // [2 n_took] taken by agents that explored, then their greedy ones; own in units of a mean job,
    // 0: none; gain over own
    const OfferSample *offers;
    uint32_t           n_took;
} MaifsQState;

typedef struct MaifsQStep {
    MaifsQState now, next;
    float       reward;    // of the steps between, discounted
    float       discount;  // of the later state; 0: none
} MaifsQStep;

typedef struct MaifsQSample {  // the values that a teacher gives to jobs
    MaifsInput   in;
    const float *u;  // [n_jobs]
} MaifsQSample;

typedef struct MaifsQOptions {
    MaifsNet net;
    uint32_t servers, jobs, took;  // limits of a step or a sample
    float    rate, clip, tau;      // Adam's rate; gradient norm limit; soft update of the target
    float    hold;                 // weight of the distance to the recorded u
} MaifsQOptions;

static inline MaifsQOptions maifs_q_defaults(MaifsNet net) {
    return (MaifsQOptions){.net = net,
                           .servers = 64,
                           .jobs = MAIFS_Q_JOBS,
                           .took = MAIFS_Q_TOOK,
                           .rate = 3e-4f,
                           .clip = 1,
                           .tau = 0.01f,
                           .hold = 0.1f};
}

typedef struct MaifsQ MaifsQ;

MaifsQ        *maifs_q_create(Arena *a, MaifsQOptions o, uint64_t seed);
MaifsQOptions *maifs_q_options(MaifsQ *q);  // may change between updates
FloatVec       maifs_q_net(MaifsQ *q);      // parameters of the network
FloatVec       maifs_q_state(MaifsQ *q);    // everything learned, for checkpoints
void maifs_q_params_set(MaifsQ *q);         // after the parameters were set: resets target and Adam

// One update each; returns the mean loss. team: NULL: this thread. Its size does not change
// results.
double maifs_q_train(MaifsQ *q, Team *team, const MaifsQStep *steps, uint32_t n);
double maifs_q_imitate(MaifsQ *q, Team *team, const MaifsQSample *samples, uint32_t n);

double maifs_q_value(MaifsQ *q, const MaifsQState *state);  // by the learning network
