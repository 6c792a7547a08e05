// Lstm: a memory that reads sequences of a ragged batch step by step, forwards or backwards.
//
// Gates are i, f, g, o: c' = s(f) c + s(i) tanh(g), h = s(o) tanh(c'). Parameters: Wx [in][4
// hidden], Wh [hidden][4 hidden], b [4 hidden]; a gate is `hidden` neighbouring columns.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/rng.h"
#include "learn/mat.h"
#include "learn/ragged.h"

typedef struct Lstm {
    uint32_t in, hidden;
    bool     backwards;  // reads from the last item to the first
} Lstm;

typedef struct LstmState {  // [n_seqs][hidden] each, by rank
    float *h, *c;
} LstmState;

static inline size_t lstm_params(Lstm l) { return ((size_t)l.in + l.hidden + 1) * 4 * l.hidden; }
static inline size_t lstm_cache_size(Lstm l, size_t rows, size_t seqs) {
    return (7 * rows + 2 * seqs + 4 * (size_t)l.hidden + 1) * l.hidden;
}

void lstm_init(Lstm l, float *w, Rng *rng);  // as usual; the forget gate starts open

// h [n_rows][hidden] of x [n_rows][in]. `first` is the state before, NULL: 0; `last`, unless NULL,
// gets the state after each sequence, however short.
void lstm_forward(Lstm l, const float *w, const Ragged *r, Mat x, const LstmState *first, MatOut h,
                  const LstmState *last, float *cache);

// After lstm_forward, whose cache it uses up. gw += gradients, unless NULL; dx += gradients, unless
// its `at` is NULL; dfirst, unless NULL, is set. dlast: gradients of the state after; NULL: 0.
void lstm_backward(Lstm l, const float *w, float *gw, const Ragged *r, Mat x,
                   const LstmState *first, Mat dh, const LstmState *dlast, MatOut dx,
                   const LstmState *dfirst, float *cache);

// LstmCell: one row of one step of an LSTM. The same bits on every machine.

// gates [4 n] come in unbent and without the bias b [4 n], and go out bent. before [n]: c of the
// step before. c, tanh c (bent) and h are set.
void lstm_cell_forward(size_t n, const float *b, float *gates, const float *before, float *c,
                       float *bent, float *h);

// gates become gradients of what was bent. The gradient of h is dh + carried. dc comes in from the
// step after and goes to the one before.
void lstm_cell_backward(size_t n, float *gates, const float *before, const float *bent,
                        const float *dh, const float *carried, float *dc);
