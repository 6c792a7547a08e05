// Engine: one of the two that are compared: made ready for a network once, then run again and
// again.
#pragma once

#include "bench/ort/network.h"

typedef struct Terms {  // what an engine is to use
    int         threads;
    const char *lib;      // ONNX Runtime's shared library
    const char *profile;  // a prefix of files where it writes what each node took; NULL: none
} Terms;

typedef struct Engine {
    const char *name;
    // *state lives in the arena or as long as the process. The network stays where it is.
    Err (*open)(Network *n, const Terms *terms, Arena *a, void **state);
    Err (*run)(void *state);  // what is timed: from inputs in memory to outputs in memory
    Err (*outputs)(void *state, Tensor *out);  // of the last run, in the order of the graph
    void (*close)(void *state);
} Engine;

extern const Engine engine_ours, engine_ort;
