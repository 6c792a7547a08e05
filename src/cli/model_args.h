// ModelArgs: options that name a model, a file or a zoo network, its open dimensions and its
// inputs.
#pragma once

#include "cli/args.h"
#include "model/shaped_graph.h"

typedef struct ModelArgs {
    int64_t batch, sequence, seed;  // of zoo networks
    ArgList dims;                   // NAME=N for open dimensions; NAME: a symbol, or INPUT.AXIS
    bool    numbers;                // generate the weights of a zoo network and fold constants
} ModelArgs;

#define MODEL_ARGS_DEFAULT ((ModelArgs){.batch = 1, .seed = 1})

// Rows for args_parse that fill a ModelArgs.
#define MODEL_ARG_ROWS(o)                                                                          \
    {"batch", ARG_INT, &(o).batch, "N", "batch size of a zoo network (default 1)", 1, 65536},      \
        {"sequence", ARG_INT, &(o).sequence, "N", "sequence length of a zoo network", 1, 65536}, { \
        "seed", ARG_INT, &(o).seed, "S", "seed of weights and random inputs (default 1)", 0,       \
            INT64_MAX                                                                              \
    }

MUST_USE Err model_args_load(const char *what, const ModelArgs *o, Model *m);

// Input types with every open dimension set by --dim, or else to `otherwise` (1, or DIM_UNKNOWN to
// leave it open). A --dim that names no open dimension is an error.
MUST_USE Err model_args_input_types(const Model *m, const ModelArgs *o, int64_t otherwise,
                                    Tensor *types);

// Prints to stderr which open dimensions of an input were set to 1, and the option that sets them.
void model_args_note_open(const Value *v, const ModelArgs *o);

// given: NAME=FILE or NAME=random; other inputs are random. types[n_inputs] has its open dimensions
// set and receives the data; the shape of a file takes precedence.
MUST_USE Err run_inputs_read(const Model *m, const ModelArgs *o, const ArgList *given, Arena *a,
                             Tensor *types);
