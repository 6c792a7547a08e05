// Load: a model from what the user typed, a file or the name of a network in the zoo.
#pragma once

#include "cli/args.h"
#include "model/shaped_graph.h"

typedef struct ModelArgs {
    int64_t batch, sequence, seed;  // of zoo networks
    ArgList dims;                   // NAME=N for open dimensions: a symbol, or INPUT.AXIS
    bool    numbers;                // make the weights of a zoo network, fold constants
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

// The types of the inputs with every open dimension bound to what --dim says, or else to
// `otherwise` (1, or DIM_UNKNOWN to leave it open). A --dim that names no open dimension is an
// error.
MUST_USE Err model_args_input_types(const Model *m, const ModelArgs *o, int64_t otherwise,
                                    Tensor *types);

// Tells on stderr which open dimensions of an input were taken as 1, and how to choose.
void model_args_note_open(const Value *v, const ModelArgs *o);

// given holds NAME=FILE or NAME=random; an input not mentioned is random. types[n_inputs] comes
// with open dimensions bound and receives the numbers; a file's own shape wins over a bound one.
MUST_USE Err run_inputs_read(const Model *m, const ModelArgs *o, const ArgList *given, Arena *a,
                             Tensor *types);
