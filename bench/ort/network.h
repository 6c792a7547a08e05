// Network: a model file and its inputs, the same for both engines and in every process.
#pragma once

#include "model/model.h"

typedef struct Network {
    const char *path;
    Model       model;
    Tensor     *inputs;     // in the graph's order, with data
    bool        quantised;  // has quantised integers, or floats of 16 bits
} Network;

// Inputs recorded beside the file (input_K.json, input_K.raw) are used; others are random with a
// fixed seed, their last open dimension is `length` and other open ones are 1.
MUST_USE Err network_read(const char *path, int64_t length, Arena *a, Network *n);
// Inputs of a shorter length: types in out, data of the network's.
void network_inputs_at(const Network *n, int64_t length, Tensor *out);
