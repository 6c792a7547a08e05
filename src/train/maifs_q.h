// MaifsQ: what a joint action of all agents is worth, learned from what came of it: double
// Q-learning with a target network.
//
//     Q(s, a) = V(s) + scale * sum of (A_i(a_i) - A_i(what i liked best)) over agents that strayed
//     A(m) = s_m (gain_m + f_m + pairs with others that were taken)
//
// where s_m grows with the offer's own worth, up to 1, and gain_m is what the rule says of it, in
// that worth: so f_m is an advantage that corrects a rule. Agents that did what they liked best add
// nothing: what states are worth goes into V, a network of its own that no policy needs, and what
// offers are worth is learned from chance alone, which no state had a part in. A later state is
// valued by the target, where agents did what the weights that learn made them like best.
#pragma once

#include "base/team.h"
#include "learn/float_vec.h"
#include "policy/cluster/maifs/maifs.h"

enum {
    MAIFS_Q_POOL = MAIFS_SERVER + MAIFS_JOB + MAIFS_QUEUE + 2,
    MAIFS_Q_JOBS = 2048,  // of a lesson, usually at most
    MAIFS_Q_TOOK = 128,   // of a step
};

typedef struct MaifsQState {    // an epoch: the state, and the joint action that was taken
    MaifsInput         in;      // jobs: those of the offers alone
    const float       *u;       // [n_jobs] what the network made of them then
    const float       *pool;    // [MAIFS_Q_POOL] all servers and jobs, for V
    const OfferSample *offers;  // [2 n_took] taken by who strayed, then what they liked best; `own`
                                // in works of a usual job, 0: it was nothing; `gain` in own
    uint32_t n_took;
} MaifsQState;

typedef struct MaifsQStep {
    MaifsQState now, next;
    float       reward;    // of the time between, discounted
    float       discount;  // of what comes after; 0: nothing does
} MaifsQStep;

typedef struct MaifsQSample {  // what a teacher would have the network say
    MaifsInput   in;
    const float *u;  // [n_jobs]
} MaifsQSample;

typedef struct MaifsQOptions {
    MaifsNet net;
    uint32_t servers, jobs, took;  // of a step or a lesson, at most
    float    rate, clip, tau;      // of Adam; norm of a gradient; of the target
    float    hold;                 // weight of staying near the u that was
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
MaifsQOptions *maifs_q_options(MaifsQ *q);     // rates may change
FloatVec       maifs_q_net(MaifsQ *q);         // the network's numbers
FloatVec       maifs_q_state(MaifsQ *q);       // all that is learned, to be saved and put back
void           maifs_q_params_set(MaifsQ *q);  // the network was set: the target is, too

// One update each; the mean loss. team: NULL: this thread alone; its size does not show.
double maifs_q_train(MaifsQ *q, Team *team, const MaifsQStep *steps, uint32_t n);
double maifs_q_imitate(MaifsQ *q, Team *team, const MaifsQSample *samples, uint32_t n);

double maifs_q_value(MaifsQ *q, const MaifsQState *state);  // as learned so far
