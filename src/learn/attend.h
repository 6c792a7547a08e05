// Attend: multi-head attention: each row of x asks, rows of y of the same batch answer by their
// likeness. With x = y it is self-attention.
//
// x [batch][asks][width], y [batch][answers][width], out like x. Parameters: four dense layers
// [width][width]: queries, keys, values, output. `width` is a multiple of `heads`.
#pragma once

#include <stdbool.h>

#include "base/rng.h"
#include "learn/dense.h"

typedef struct Attend {
    uint32_t width, heads;
} Attend;

typedef struct AttendSize {
    uint32_t        batch, asks, answers;
    const uint32_t *len;   // [batch] only the first so many answers are there; NULL: all
    const uint8_t  *hide;  // [asks][answers] 1: this one is not heard by that one; NULL: all are
} AttendSize;

static inline Dense  attend_dense(Attend a) { return (Dense){a.width, a.width}; }
static inline size_t attend_params(Attend a) { return 4 * dense_params(attend_dense(a)); }
size_t               attend_cache_size(Attend a, const AttendSize *s);

void attend_init(Attend a, float *w, Rng *rng);

// A row that hears nobody gets the output layer's bias.
void attend_forward(Attend a, const float *w, const AttendSize *s, const float *x, const float *y,
                    float *out, float *cache);

// gw += gradients, unless NULL; dx and dy += gradients, unless NULL; they may be the same.
void attend_backward(Attend a, const float *w, float *gw, const AttendSize *s, const float *x,
                     const float *y, const float *d_out, float *dx, float *dy, float *cache);

// After attend_forward: how much row `ask` of a batch listens to each answer, [answers].
const float *attend_weights(Attend a, const AttendSize *s, const float *cache, uint32_t batch,
                            uint32_t head, uint32_t ask);
