// Model signature: inputs and outputs as clients see them, from the graph, narrowed by
// config.pbtxt.
#pragma once

#include "model/graph.h"
#include "serve/tensor/infer_request.h"
#include "serve/models/pbtxt.h"

// In memory of a. ERR_UNSUPPORTED for types that the protocol does not have.
MUST_USE Err signature_from_graph(const Graph *g, Arena *a, ModelSignature *out);
// Fills in dimensions that the graph leaves open. ERR_CONFIG, with the line, on a contradiction.
MUST_USE Err signature_narrow(ModelSignature *signature, const Pbtxt *p);
// Reads the class names of outputs with a label_filename; pbtxt: the path of config.pbtxt.
MUST_USE Err signature_read_labels(ModelSignature *signature, const Pbtxt *p, const char *pbtxt,
                                   Arena *a);
