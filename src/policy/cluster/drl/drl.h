// Drl: a single agent for the whole cluster: a network observes all servers and a window of jobs
// and scores which job starts next, or none.
#pragma once

#include "base/rng.h"
#include "placement/placement.h"

enum {
    DRL_WINDOW = 24,  // jobs to choose from: the ones with the least work
    DRL_JOB = 6,      // features of a job
    DRL_STATE = 12,   // features of the cluster
    DRL_IN = DRL_STATE + DRL_WINDOW * DRL_JOB,
    DRL_OUT = DRL_WINDOW + 1,  // the last output is "none"
    DRL_HIDDEN = 48,
    DRL_HIDDEN_MAX = 256,
};

typedef struct DrlNet {  // two dense layers with relu and a linear output layer
    uint32_t hidden;
} DrlNet;

size_t drl_net_params(DrlNet net);
size_t drl_net_output_layer(DrlNet net);              // index of the output layer's first parameter
void   drl_net_init(DrlNet net, float *w, Rng *rng);  // all outputs are 0 then
size_t drl_net_cache(DrlNet net, size_t rows);        // floats of scratch that forward fills

// x [rows][DRL_IN], y [rows][DRL_OUT].
void drl_net_forward(DrlNet net, const float *w, size_t rows, const float *x, float *y,
                     float *cache);
void drl_net_backward(DrlNet net, const float *w, float *gw, size_t rows, const float *x,
                      const float *dy, float *cache);

typedef struct DrlObservation {
    uint32_t n;
    uint32_t task[DRL_WINDOW];
    bool     can[DRL_OUT];  // the job fits; "none": a job runs, and its end will free resources
    float    x[DRL_IN];
} DrlObservation;

typedef struct DrlLoaded {
    DrlNet       net;
    const float *w;  // NULL: no weights, the first job that fits starts
    // Training chooses from the network's scores. NULL: the highest score wins.
    uint32_t (*choose)(void *self, const ClusterView *v, const DrlObservation *seen,
                       const float *scores);
    void *self;
} DrlLoaded;

// The observation before the next choice, without tasks for which skip[slot] is set.
void drl_observe(FreeResources *f, const ClusterView *v, const uint8_t *skip, DrlObservation *out);

// Index of the highest score among allowed choices, the first of equals.
uint32_t drl_best(const DrlObservation *seen, const float *scores);

// what: see policy/embedded_weights.h; or "none".
MUST_USE Err drl_weights_load(const char *what, Arena *a, DrlLoaded *out);
char        *drl_weights_facts(DrlNet net, Arena *a);  // facts that a weights file has to state
