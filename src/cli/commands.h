// Commands: a function for each row of commands.def. It returns the exit code, writes results to
// stdout and everything else to stderr.
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/tensor.h"
#include "cli/args.h"

#define X(name, fn, about, usage, examples) int fn(const Command *c, int argc, char **argv);
#include "cli/commands.def"
#undef X

// Runs a command's work with an arena of the memory budget; prints the reason of a failure. Returns
// the exit code.
int command_run(Err (*run)(const void *options, Arena *a), const void *options);

// Prints the reason of the failure and returns the exit code.
int command_failed(Err e);

json_t *command_shape(const Tensor *t);  // a list of sizes; null if the rank is unknown

// Writes a JSON document to stdout and releases it; NULL is a failure.
int command_json(json_t *document);
