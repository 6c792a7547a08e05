// Work: the cost of a node from its shapes: multiply-accumulates, parameters, bytes read and
// written.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/shaped_graph.h"

typedef struct Work {
    int64_t macs;          // of convolutions, matrix products, recurrent layers and Einsum; else 0
    int64_t params;        // learned values; without the running mean and variance of a batch norm
    int64_t weight_bytes;  // constant inputs
    int64_t in_bytes;      // other inputs
    int64_t out_bytes;
} Work;

// in[node->n_in] (NULL where absent), constant[node->n_in], out[node->n_out]. Unknown shapes count
// 0; sums saturate at INT64_MAX.
Work work_of(const Node *n, const Tensor *const *in, const bool *constant, const Tensor *out);

int64_t work_macs(const Node *n, const Tensor *const *in,
                  const Tensor *out);  // macs of work_of alone

// One node, without the bodies of control flow: those are shaped graphs of their own.
MUST_USE Err work_node(const ShapedGraph *s, uint32_t node, Arena *scratch, Work *w);

// Sum over all nodes; a constant with several readers counts once, folded nodes count no bytes.
MUST_USE Err work_total(const ShapedGraph *s, Arena *scratch, Work *w);
