// Engine: one of the two inference engines compared: opened for a network once, then run
// repeatedly.
#pragma once

#include "bench/ort/network.h"

typedef struct EngineOptions {  // options of an engine
    int         threads;
    double      tune_seconds;  // ours, before it is timed; 0: not tuned
    const char *lib;           // ONNX Runtime's shared library
    const char *profile;       // prefix of files for the time of each node; NULL: none
} EngineOptions;

typedef struct Engine {
    const char *name;
    // *state lives in the arena or until the process exits. The network must not move.
    Err (*open)(Network *n, const EngineOptions *cfg, Arena *a, void **state);
    Err (*run)(void *state);                   // timed: from inputs in memory to outputs in memory
    Err (*outputs)(void *state, Tensor *out);  // of the last run, in the order of the graph
    void (*close)(void *state);
} Engine;

extern const Engine engine_ours, engine_ort;
