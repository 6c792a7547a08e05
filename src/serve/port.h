// Port: what a model takes and gives as clients see it: its graph's word, narrowed by config.pbtxt.
#pragma once

#include "model/graph.h"
#include "serve/infer.h"
#include "serve/pbtxt.h"

// In memory of a. Refuses types that the protocol has no word for.
MUST_USE Err port_of(const Graph *g, Arena *a, InferPort *out);
// Narrows what the graph leaves open. ERR_CONFIG, with the line, where it contradicts the graph.
MUST_USE Err port_declare(InferPort *port, const Pbtxt *p);
