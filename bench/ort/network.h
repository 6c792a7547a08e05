// Network: a model file and the inputs that both engines are given, the same in every process.
#pragma once

#include "model/model.h"

typedef struct Network {
    const char *path;
    Model       model;
    Tensor     *inputs;     // in the graph's order, with numbers
    bool        quantised;  // computes with integers that stand for reals
} Network;

// Inputs recorded beside the file (input_K.json, input_K.raw) are used; others are made from a
// fixed seed, open dimensions being 1.
MUST_USE Err network_read(const char *path, Arena *a, Network *n);
