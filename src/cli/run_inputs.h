// Feed: the inputs of a run, from .npy or .pb files or made at random, by what the user asked for.
#pragma once

#include "cli/model_args.h"

// given holds NAME=FILE or NAME=random; an input not mentioned is random. types[n_inputs] comes
// with open dimensions bound and receives the numbers; a file's own shape wins over a bound one.
MUST_USE Err run_inputs_read(const Model *m, const ModelArgs *o, const ArgList *given, Arena *a,
                             Tensor *types);
