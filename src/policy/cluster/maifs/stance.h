// Stance: how an agent makes its offers: how readily it stops residents, how unequally it deals
// cores and memory, what it probes, and whether it holds free GPUs for a gang.
//
// A small network of its own, equal for all agents, rates the rows of stance_row.def by what an
// agent sees of its server, the queue and the cluster. The stance is their geometric mean, weighted
// by softmax. Trained by rollouts (train/stance_trainee.h).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

typedef enum StanceRow {
#define X(name, ...) STANCE_##name,
#include "policy/cluster/maifs/stance_row.def"
#undef X
    STANCES
} StanceRow;

enum {
    STANCE_FEATURES = 32,
    STANCE_HIDDEN = 16,
    STANCE_PARAMS = (STANCE_FEATURES + 1) * STANCE_HIDDEN + (STANCE_HIDDEN + 1) * STANCES,
};

#define STANCE_FACTS "policy=stance\nfeatures=32\nhidden=16\nrows=8\n"

typedef struct Stance {
    float victims;  // factor on what a task must exceed its victims by, and on their restart cost
    float levels;   // exponent of a task's utility where cores and memory are dealt
    float probes;   // factor on the work that a probe is expected to save
    float hold;     // part of its utility that a task loses which takes GPUs a gang waits for
} Stance;

void stance_init(float *w, Rng *rng);  // rates all rows alike, which is the usual stance

// logits [n][STANCES] of features [n][STANCE_FEATURES]; hidden [n][STANCE_HIDDEN] is scratch.
void stance_logits(const float *w, size_t n, const float *features, float *hidden, float *logits);
// gw += gradients, after stance_logits.
void stance_back(const float *w, float *gw, size_t n, const float *features, float *hidden,
                 const float *d_logits);

Stance stance_usual(void);
Stance stance_row(uint32_t row);
Stance stance_mean(const float *logits);
