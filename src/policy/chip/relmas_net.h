// RelmasNet: the network: an LSTM reads the rows of a look from the most urgent on, and says of
// each task how it and each kind of unit for it should count, in -1 .. 1.
//
// Plain loops in a fixed order, so that every machine decides alike. Parameters: those of Lstm,
// then those of Dense from [hidden, the row itself] to the outputs.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct RelmasNet {
    uint32_t in, hidden, out;
} RelmasNet;

size_t relmas_net_params(RelmasNet n);
double relmas_net_macs(RelmasNet n);  // of one row

// y [rows][out] of x [rows][in].
void relmas_net_forward(RelmasNet n, const float *w, uint32_t rows, const float *x, float *y);
