// Lstm: long short-term memory over the sequences of a ragged batch, forwards or in reverse.
//
// Gates are i, f, g, o: c' = s(f) c + s(i) tanh(g), h = s(o) tanh(c'). Parameters: Wx [in][4
// hidden], Wh [hidden][4 hidden], b [4 hidden]; a gate is `hidden` adjacent columns.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/rng.h"
#include "learn/mat.h"
#include "learn/ragged.h"

typedef struct Lstm {
    uint32_t in, hidden;
    bool     backwards;  // from the last item to the first
} Lstm;

typedef struct LstmState {  // [n_seqs][hidden] each, by rank
    float *h, *c;
} LstmState;

static inline size_t lstm_params(Lstm l) { return ((size_t)l.in + l.hidden + 1) * 4 * l.hidden; }
static inline size_t lstm_cache_size(Lstm l, size_t rows, size_t seqs) {
    return (7 * rows + 2 * seqs + 4 * (size_t)l.hidden + 1) * l.hidden;
}

void lstm_init(Lstm l, float *w, Rng *rng);  // uniform; the forget gate starts open

// h [n_rows][hidden] of x [n_rows][in]. `first`: initial state, NULL: 0; `last`, unless NULL, gets
// the final state of each sequence.
void lstm_forward(Lstm l, const float *w, const Ragged *r, Mat x, const LstmState *first, MatOut h,
                  const LstmState *last, float *cache);

// After lstm_forward; overwrites its cache. gw += gradients, unless NULL; dx += gradients, unless
// its `at` is NULL; dfirst, unless NULL, is set. dlast: gradients of the final state; NULL: 0.
void lstm_backward(Lstm l, const float *w, float *gw, const Ragged *r, Mat x,
                   const LstmState *first, Mat dh, const LstmState *dlast, MatOut dx,
                   const LstmState *dfirst, float *cache);

// One row of one step, bitwise reproducible. gates [4 n]: pre-activations without the bias b [4 n],
// replaced by activations. before [n]: the previous c. Sets c, tanh c and h.
void lstm_cell_forward(size_t n, const float *b, float *gates, const float *before, float *c,
                       float *tanh_c, float *h);

// gates: activations, replaced by gradients of the pre-activations. The gradient of h is dh +
// carried. dc: gradient of c from the next step, replaced by that for the previous one.
void lstm_cell_backward(size_t n, float *gates, const float *before, const float *tanh_c,
                        const float *dh, const float *carried, float *dc);
