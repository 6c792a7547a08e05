// LstmCell: one row of one step of an LSTM. The same bits on every machine.
#pragma once

#include <stddef.h>

// gates [4 n] come in unbent and without the bias b [4 n], and go out bent. before [n]: c of the
// step before. c, tanh c (bent) and h are set.
void lstm_cell_forward(size_t n, const float *b, float *gates, const float *before, float *c,
                       float *bent, float *h);

// gates become gradients of what was bent. The gradient of h is dh + carried. dc comes in from the
// step after and goes to the one before.
void lstm_cell_backward(size_t n, float *gates, const float *before, const float *bent,
                        const float *dh, const float *carried, float *dc);
