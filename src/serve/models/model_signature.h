// Port: what a model takes and gives as clients see it: its graph's word, narrowed by config.pbtxt.
#pragma once

#include "model/graph.h"
#include "serve/tensor/infer_request.h"
#include "serve/models/pbtxt.h"

// In memory of a. Refuses types that the protocol has no word for.
MUST_USE Err signature_from_graph(const Graph *g, Arena *a, ModelSignature *out);
// Narrows what the graph leaves open. ERR_CONFIG, with the line, where it contradicts the graph.
MUST_USE Err signature_narrow(ModelSignature *signature, const Pbtxt *p);
