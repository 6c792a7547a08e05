// Work: what a node costs, from its tensors' shapes: multiply-accumulates, weights, bytes moved.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/shaped_graph.h"

typedef struct Work {
    int64_t macs;          // of convolutions, matrix products, recurrent layers and Einsum; else 0
    int64_t params;        // learned numbers; not the running mean and variance of a batch norm
    int64_t weight_bytes;  // constant inputs
    int64_t in_bytes;      // other inputs
    int64_t out_bytes;
} Work;

// in[node->n_in] (NULL where left out), constant[node->n_in], out[node->n_out]. What is unknown
// counts 0; what does not fit into 64 bits counts INT64_MAX.
Work work_of(const Node *n, const Tensor *const *in, const bool *constant, const Tensor *out);

int64_t work_macs(const Node *n, const Tensor *const *in, const Tensor *out);  // of work_of, alone

// One node of a specialised graph. The bodies of control flow have specialisations of their own.
MUST_USE Err work_node(const ShapedGraph *s, uint32_t node, Arena *scratch, Work *w);

// All nodes; a constant that several nodes read counts once, a node that was folded moves nothing.
MUST_USE Err work_total(const ShapedGraph *s, Arena *scratch, Work *w);
