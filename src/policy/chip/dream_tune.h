// DreamTune: the two weights of a score, tuned on the way by trying neighbours.
#pragma once

#include "contract/chip.h"

typedef struct DreamWeights {
    double alpha, beta;
} DreamWeights;

typedef struct DreamTune {
    DreamWeights now, best;  // tried at present, and the best so far
    double       best_cost;  // below 0: not known yet
    double       window_ns;
    TimeNs       until;     // the end of the window
    double       spent_pj;  // in it, by what was dispatched,
    double       mean_pj;   // and what the same layers take on the mean kind
    Rng          rng;
} DreamTune;

void dream_tune_init(DreamTune *d, double alpha, double beta, double window_ns, Rng rng);

static inline void dream_tune_spend(DreamTune *d, const ChipCost *c, float mean_pj) {
    d->spent_pj += (double)c->energy_pj;
    d->mean_pj += (double)mean_pj;
}

void dream_tune_look(DreamTune *d, const ChipView *v);  // at every decision
