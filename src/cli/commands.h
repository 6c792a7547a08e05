// Commands: what every command function promises, an exit code; results on stdout, the rest on
// stderr.
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "base/tensor.h"
#include "cli/args.h"

#define X(name, fn, about, usage, examples) int fn(const Command *c, int argc, char **argv);
#include "cli/commands.def"
#undef X

// Prints the reason of a failure; gives the exit code for it.
int command_failed(Err e);

json_t *command_shape(const Tensor *t);  // a list of sizes; null when the rank is unknown

// Writes one JSON document to stdout and drops it.
int command_json(json_t *document);
