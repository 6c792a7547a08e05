// Graph equality for tests: the same structure, names, order, types and constants.
#pragma once

#include <string.h>

#include "model/graph.h"

static bool graph_equal(const Graph *a, const Graph *b);

static bool same_text(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_str(Str a, Str b) { return a.len == b.len && memcmp(a.at, b.at, a.len) == 0; }

static bool same_strings(const Attr *a, const Attr *b) {
    for (uint32_t i = 0; i < a->n; i++)
        if (!same_str(a->v.strings[i], b->v.strings[i])) return false;
    return true;
}

static bool same_attr(const Attr *a, const Attr *b) {
    if (!same_text(a->name, b->name) || a->kind != b->kind || a->n != b->n) return false;
    switch (a->kind) {
    case ATTR_FLOAT: return memcmp(&a->v.f, &b->v.f, sizeof a->v.f) == 0;
    case ATTR_INT: return a->v.i == b->v.i;
    case ATTR_STRING: return same_str(a->v.s, b->v.s);
    case ATTR_TENSOR:
    case ATTR_TYPE: return tensor_equal(a->v.t, b->v.t);
    case ATTR_GRAPH: return graph_equal(a->v.g, b->v.g);
    case ATTR_FLOATS: return memcmp(a->v.floats, b->v.floats, a->n * sizeof(float)) == 0;
    case ATTR_INTS: return memcmp(a->v.ints, b->v.ints, a->n * sizeof(int64_t)) == 0;
    case ATTR_STRINGS: return same_strings(a, b);
    }
    return false;
}

static bool same_symbols(const Value *a, const Value *b) {
    for (int32_t i = 0; i < a->type.rank; i++)
        if (!same_text(a->symbols != NULL ? a->symbols[i] : NULL,
                       b->symbols != NULL ? b->symbols[i] : NULL))
            return false;
    return true;
}

// Data is compared where both sides hold it: a constant with a fill equals what it would generate.
static bool same_value(const Value *a, const Value *b) {
    if (!same_text(a->name, b->name) || a->constant != b->constant) return false;
    if (a->type.dtype != b->type.dtype || !tensor_same_shape(&a->type, &b->type)) return false;
    if (!same_symbols(a, b)) return false;
    if (a->type.data != NULL && b->type.data != NULL) return tensor_equal(&a->type, &b->type);
    return true;
}

static bool same_ref(const Graph *a, uint32_t x, const Graph *b, uint32_t y) {
    if (x == NO_VALUE || y == NO_VALUE) return x == y;
    return same_value(&a->values[x], &b->values[y]);
}

static bool same_refs(const Graph *a, const uint32_t *x, const Graph *b, const uint32_t *y,
                      uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!same_ref(a, x[i], b, y[i])) return false;
    return true;
}

static bool same_node(const Graph *a, const Node *x, const Graph *b, const Node *y) {
    if (!same_text(x->name, y->name) || x->op != y->op || x->version != y->version) return false;
    if (x->n_in != y->n_in || x->n_out != y->n_out || x->n_attr != y->n_attr) return false;
    if (!same_refs(a, x->in, b, y->in, x->n_in)) return false;
    if (!same_refs(a, x->out, b, y->out, x->n_out)) return false;
    for (uint32_t i = 0; i < x->n_attr; i++)
        if (!same_attr(&x->attrs[i], &y->attrs[i])) return false;
    return true;
}

static bool graph_equal(const Graph *a, const Graph *b) {
    if (a->n_nodes != b->n_nodes || a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs)
        return false;
    if (!same_refs(a, a->inputs, b, b->inputs, a->n_inputs)) return false;
    if (!same_refs(a, a->outputs, b, b->outputs, a->n_outputs)) return false;
    for (uint32_t i = 0; i < a->n_nodes; i++)
        if (!same_node(a, &a->nodes[i], b, &b->nodes[i])) return false;
    return true;
}
