// Model: a graph with the memory it lives in and where it came from.
#pragma once

#include "base/arena.h"
#include "model/graph.h"

typedef struct Model {
    Arena       arena;  // everything below lives here
    Graph      *graph;
    const char *name;      // for people: file or zoo name
    const char *producer;  // who wrote the file
    int64_t     ir_version;
    int32_t     opset;     // of the default domain
    bool        external;  // some of its numbers are in other files
} Model;

MUST_USE Err model_init(Model *m, const char *name);  // an empty graph
void         model_finish(Model *m);                  // accepts a zeroed Model

MUST_USE Err model_materialise(Model *m);  // makes the numbers of every filled constant
