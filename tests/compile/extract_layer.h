// ExtractedLayer: one layer of a network, with all that is fused into it, as a graph of its own;
// large ones on a smaller image or fewer rows.
#pragma once

#include <math.h>
#include <string.h>

#include "compile/step.h"
#include "model/attr.h"
#include "model/infer/infer.h"

typedef struct ExtractedLayer {
    Graph   graph;   // values have the network's numbers
    Tensor *inputs;  // [graph.n_inputs] types
    bool    shrunk;
} ExtractedLayer;

// taken[i]: node i is between the layer's first node and its result.
static inline void extract_between(const Graph *g, uint32_t start, uint32_t end, Arena *a,
                                   bool *taken) {
    bool *behind = arena_new(a, bool, g->n_values), *needed = arena_new(a, bool, g->n_values);
    for (uint32_t k = 0; k < g->nodes[start].n_out; k++)
        if (g->nodes[start].out[k] != NO_VALUE) behind[g->nodes[start].out[k]] = true;
    for (uint32_t i = start + 1; i < g->n_nodes; i++) {
        const Node *n = &g->nodes[i];
        bool        reads = false;
        for (uint32_t k = 0; k < n->n_in; k++)
            reads = reads || (n->in[k] != NO_VALUE && behind[n->in[k]]);
        for (uint32_t k = 0; reads && k < n->n_out; k++)
            if (n->out[k] != NO_VALUE) behind[n->out[k]] = true;
    }
    needed[end] = true;
    for (uint32_t i = g->n_nodes; i-- > start;) {
        const Node *n = &g->nodes[i];
        for (uint32_t k = 0; k < n->n_out; k++)
            taken[i] =
                taken[i] || (n->out[k] != NO_VALUE && needed[n->out[k]] && behind[n->out[k]]);
        for (uint32_t k = 0; taken[i] && k < n->n_in; k++)
            if (n->in[k] != NO_VALUE) needed[n->in[k]] = true;
    }
}

static inline bool extract_is_attention(const ShapedGraph *s, const Node *n) {
    if (n->op == OP_MatMul) return s->values[n->in[1]].data == NULL;
    return n->op == OP_Softmax || n->op == OP_Transpose || n->op == OP_Add || n->op == OP_Mul ||
           n->op == OP_Div;
}

// The nodes of attention, back from its second product to the projections.
static inline void extract_attention(const ShapedGraph *s, uint32_t last, bool *taken) {
    const Graph *g = s->graph;
    for (uint32_t i = last + 1; i-- > 0;) {
        const Node *n = &g->nodes[i];
        for (uint32_t k = 0; taken[i] && k < n->n_in; k++) {
            uint32_t from = n->in[k] != NO_VALUE ? g->values[n->in[k]].producer : NO_NODE;
            if (from == NO_NODE || s->values[n->in[k]].data != NULL) continue;
            if (extract_is_attention(s, &g->nodes[from])) taken[from] = true;
        }
    }
}

// Values that the taken nodes read and that are not known before a run become inputs.
static inline void extract_inputs(const ShapedGraph *s, ExtractedLayer *c) {
    Graph *g = &c->graph;
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; k < g->nodes[i].n_in; k++) {
            uint32_t v = g->nodes[i].in[k];
            if (v == NO_VALUE || g->values[v].constant || g->values[v].given ||
                g->values[v].producer != NO_NODE)
                continue;
            c->inputs[g->n_inputs] = s->values[v];
            graph_input(g, v);
        }
}

// The layer that a step computes. The network and its shaped graph must outlive the result.
static inline void extract_layer(const ShapedGraph *s, const Step *step, Arena *a,
                                 ExtractedLayer *c) {
    const Graph *net = s->graph;
    uint32_t     start = (uint32_t)(step->node - net->nodes), end = graph_find(net, step->name);
    bool        *taken = arena_new(a, bool, net->n_nodes);
    if (end != NO_VALUE) extract_between(net, start, end, a, taken);
    if (end == NO_VALUE || !taken[start]) {
        memset(taken, 0, net->n_nodes);
        taken[start] = true;
        end = net->nodes[start].out[0];
    }
    *c = (ExtractedLayer){.graph = {.arena = a, .name = net->name, .n_values = net->n_values},
                          .inputs = arena_new(a, Tensor, net->n_values)};
    c->graph.values = arena_new(a, Value, net->n_values);
    for (uint32_t v = 0; v < net->n_values; v++)
        c->graph.values[v] = (Value){.name = net->values[v].name,
                                     .type = s->values[v],
                                     .producer = NO_NODE,
                                     .constant = s->values[v].data != NULL};
    if (strcmp(step->kind->name, "attention") == 0) extract_attention(s, start, taken);
    for (uint32_t i = 0; i < net->n_nodes; i++)
        if (taken[i]) graph_node(&c->graph, net->nodes[i]);
    graph_output(&c->graph, end);
    extract_inputs(s, c);
}

// A smaller size with the same remainder, so that the last tile is filled to the same degree.
static inline int64_t extract_size(int64_t size, double share, int64_t least, int64_t step) {
    int64_t want = (int64_t)((double)size * share);
    if (want < least) want = least;
    return size <= want ? size : size - (size - want) / step * step;
}

static inline int64_t extract_step(const Node *n, uint32_t axis) {
    uint32_t       count = 0;
    const int64_t *strides = attr_ints(n, "strides", &count);
    return 4 * (axis < count ? strides[axis] : 1);
}

// Shrinks the layer's main input: fewer pixels of a convolution, fewer rows or batches of a
// product.
static inline bool extract_main(const Node *n, const ShapedGraph *s, double share, Tensor *x) {
    const Tensor *w = n->n_in > 1 && n->in[1] != NO_VALUE ? &s->values[n->in[1]] : NULL;
    if (w == NULL || x->rank < 2) return false;
    if ((n->op == OP_Conv || n->op == OP_ConvTranspose) && w->data != NULL) {
        for (int32_t i = 2; i < x->rank; i++) {
            int64_t least = 2 * w->dims[i] + 8;
            x->dims[i] = extract_size(x->dims[i], x->rank == 4 ? sqrt(share) : share, least,
                                      extract_step(n, (uint32_t)i - 2));
        }
        return true;
    }
    if (n->op != OP_MatMul && n->op != OP_Gemm) return false;
    int32_t axis = w->data != NULL ? x->rank - 2 : x->rank - 3;
    if (axis < 0) return false;
    x->dims[axis] = extract_size(x->dims[axis], share, w->data != NULL ? 7 : 1, 1);
    return true;
}

static inline Err extract_result(const ShapedGraph *s, const Node *n, const Tensor *x, Arena *a,
                                 Tensor *out) {
    const Tensor **in = arena_new(a, const Tensor *, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = i == 0 ? x : n->in[i] != NO_VALUE ? &s->values[n->in[i]] : NULL;
    OpCall c = {.node = n, .in = in, .scratch = a};
    return infer_node(&c, out);
}

// Inputs of the old size of the main input get its new size.
static inline void extract_follow(const Tensor *was, const Tensor *is, Tensor *t) {
    for (int32_t i = 1; i <= t->rank && i <= was->rank; i++)
        if (t->dims[t->rank - i] == was->dims[was->rank - i])
            t->dims[t->rank - i] = is->dims[is->rank - i];
}

// Shrinks the layer to about that share of its work; channels, kernels and columns stay. No change
// if nothing can be reduced.
static inline void extract_shrink(const ShapedGraph *s, double share, Arena *a, ExtractedLayer *c) {
    const Node *n = &c->graph.nodes[0];
    uint32_t    main = n->in[0];
    Tensor      small, out[8];
    if (c->graph.n_inputs == 0 || c->graph.inputs[0] != main || n->n_out > 8) return;
    small = c->inputs[0];
    if (!extract_main(n, s, share, &small) || tensor_same_shape(&small, &c->inputs[0])) return;
    bool stacked = n->op == OP_MatMul && s->values[n->in[1]].data == NULL;
    if (!stacked && extract_result(s, n, &small, a, out) != ERR_OK) return;
    Tensor was = stacked ? c->inputs[0] : s->values[n->out[0]], is = stacked ? small : out[0];
    for (uint32_t i = 1; i < c->graph.n_inputs; i++) extract_follow(&was, &is, &c->inputs[i]);
    c->inputs[0] = small;
    c->shrunk = true;
}
