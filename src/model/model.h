// Model: a graph, the arena that owns it, and its origin.
#pragma once

#include "base/arena.h"
#include "model/graph.h"

typedef struct Model {
    Arena       arena;  // everything below lives here
    Graph      *graph;
    const char *name;      // for messages: file or zoo name
    const char *producer;  // the tool that wrote the file
    int64_t     ir_version;
    int32_t     opset;     // of the default domain
    bool        external;  // some weights are in external data files
} Model;

MUST_USE Err model_init(Model *m, const char *name);  // an empty graph
void         model_finish(Model *m);                  // accepts a zeroed Model

MUST_USE Err model_materialise(Model *m);  // generates the data of all random constants
