// Drl: one agent for the whole cluster, as DeepRM and DL2 have it: a network sees the state of all
// servers and a window of jobs, and picks the one that starts next, or none.
#pragma once

#include "base/rng.h"
#include "placement/placement.h"

enum {
    DRL_WINDOW = 24,  // jobs that it may choose from: those with the least work
    DRL_JOB = 6,      // numbers that describe one
    DRL_STATE = 12,   // and the cluster
    DRL_IN = DRL_STATE + DRL_WINDOW * DRL_JOB,
    DRL_OUT = DRL_WINDOW + 1,  // the last one: none
    DRL_HIDDEN = 48,
    DRL_HIDDEN_MAX = 256,
};

typedef struct DrlNet {  // two dense layers with relu, and one that answers
    uint32_t hidden;
} DrlNet;

size_t drl_net_params(DrlNet net);
size_t drl_net_output_layer(DrlNet net);              // where the last layer begins
void   drl_net_init(DrlNet net, float *w, Rng *rng);  // as initialised every answer is 0
size_t drl_net_cache(DrlNet net, size_t rows);

// x [rows][DRL_IN], y [rows][DRL_OUT].
void drl_net_forward(DrlNet net, const float *w, size_t rows, const float *x, float *y,
                     float *cache);
void drl_net_backward(DrlNet net, const float *w, float *gw, size_t rows, const float *x,
                      const float *dy, float *cache);

typedef struct DrlObservation {
    uint32_t n;
    uint32_t task[DRL_WINDOW];
    bool     can[DRL_OUT];  // it has a place; none: somebody runs, who will end
    float    x[DRL_IN];
} DrlObservation;

typedef struct DrlLoaded {
    DrlNet       net;
    const float *w;  // NULL: none; the first that can be started is
    // Training chooses, and is told what the network says. NULL: the highest is taken.
    uint32_t (*choose)(void *self, const ClusterView *v, const DrlObservation *look,
                       const float *says);
    void *self;
} DrlLoaded;

// The window as it is before the next choice; tasks with skip[slot] are left out.
void drl_observe(FreeResources *f, const ClusterView *v, const uint8_t *skip, DrlObservation *out);

// The index of the highest of those that can be, the first of equals.
uint32_t drl_best(const DrlObservation *look, const float *says);

// what: see policy/embedded_weights.h; or "none".
MUST_USE Err drl_weights_load(const char *what, Arena *a, DrlLoaded *out);
// Facts that a file of weights has to have, for a network.
char *drl_weights_facts(DrlNet net, Arena *a);
