// Load: a model from what the user typed, a file or the name of a network in the zoo.
#pragma once

#include "cli/args.h"
#include "model/special.h"

typedef struct LoadOptions {
    int64_t batch, sequence, seed;  // of zoo networks
    ArgList dims;                   // SYMBOL=N for open dimensions
    bool    numbers;                // make the weights of a zoo network, fold constants
} LoadOptions;

#define LOAD_OPTIONS_DEFAULT ((LoadOptions){.batch = 1, .seed = 1})

// Rows for args_parse that fill a LoadOptions.
#define LOAD_ROWS(o)                                                                               \
    {"batch", ARG_INT, &(o).batch, "N", "batch size of a zoo network (default 1)", 1, 65536},      \
        {"sequence", ARG_INT, &(o).sequence, "N", "sequence length of a zoo network", 1, 65536}, { \
        "seed", ARG_INT, &(o).seed, "S", "seed of weights and random inputs (default 1)", 0,       \
            INT64_MAX                                                                              \
    }

MUST_USE Err load_model(const char *what, const LoadOptions *o, Model *m);

// The types of the inputs with every open dimension bound: to --dim, or else to 1.
MUST_USE Err load_input_types(const Model *m, const LoadOptions *o, Tensor *types);
