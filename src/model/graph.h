// Graph: a network as values and the nodes between them. Built once, then read by every tier.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/string_map.h"
#include "base/rng.h"
#include "base/tensor.h"
#include "model/op.h"

#define NO_VALUE UINT32_MAX  // an optional input or output that is left out
#define NO_NODE  UINT32_MAX

typedef struct Graph Graph;

typedef enum AttrKind {
    ATTR_FLOAT = 1,  // ONNX's numbers
    ATTR_INT = 2,
    ATTR_STRING = 3,
    ATTR_TENSOR = 4,
    ATTR_GRAPH = 5,
    ATTR_FLOATS = 6,
    ATTR_INTS = 7,
    ATTR_STRINGS = 8,
    ATTR_TYPE = 13,
} AttrKind;

typedef struct Attr {
    const char *name;
    AttrKind    kind;
    uint32_t    n;  // elements of floats, ints, strings
    union {
        float          f;
        int64_t        i;
        Str            s;
        const Tensor  *t;  // also ATTR_TYPE: dtype, shape; of a sequence or optional, its element's
        Graph         *g;
        const float   *floats;
        const int64_t *ints;
        const Str     *strings;
    } v;
} Attr;

// How a constant's numbers are made when they are asked for.
typedef enum FillKind { FILL_NORMAL, FILL_UNIFORM, FILL_CONST } FillKind;

typedef struct RandomFill {
    FillKind kind;
    float    scale, shift;  // shift + scale * sample; a FILL_CONST is shift
    Rng      rng;
} RandomFill;

typedef struct Value {
    const char       *name;      // unique in its graph
    Tensor            type;      // as declared; DT_NONE, RANK_UNKNOWN, DIM_UNKNOWN where left open
    const char      **symbols;   // [rank] names of open dimensions, NULL where none; or NULL
    const Tensor     *elem;      // declared elements of a sequence or optional (data: theirs again)
    const RandomFill *fill;      // a constant whose numbers are made on demand; NULL otherwise
    uint32_t          producer;  // node, or NO_NODE for inputs, constants and captures
    bool              constant;  // type.data or fill holds it
    bool              given;     // an input or a capture
} Value;

typedef struct Node {
    const char     *name;  // never empty, but need not be unique
    OpId            op;
    int32_t         version;  // of the operator set the model imports for this operator
    uint32_t        n_in, n_out, n_attr;
    const uint32_t *in, *out;  // values; NO_VALUE where left out
    const Attr     *attrs;
} Node;

typedef struct Capture {
    uint32_t inner, outer;  // value of this graph, value of the enclosing graph
} Capture;

struct Graph {
    Arena      *arena;
    Graph      *parent;  // of a body of If, Loop, Scan; NULL at the top
    const char *name;
    Value      *values;
    Node       *nodes;  // in topological order after graph_sort
    uint32_t   *inputs, *outputs;
    Capture    *captures;
    uint32_t    n_values, n_nodes, n_inputs, n_outputs, n_captures;
    uint32_t    cap_values, cap_nodes, cap_inputs, cap_outputs, cap_captures;
    StringMap   names;
};

Graph   *graph_create(Arena *a, Graph *parent, const char *name);
uint32_t graph_value(Graph *g, const char *name);       // finds or adds; name is borrowed
uint32_t graph_find(const Graph *g, const char *name);  // NO_VALUE when absent
uint32_t graph_const(Graph *g, const char *name, Tensor t, const RandomFill *fill);
void     graph_input(Graph *g, uint32_t value);
void     graph_output(Graph *g, uint32_t value);
uint32_t graph_capture(Graph      *g,
                       const char *name);  // from enclosing graphs; NO_VALUE if none has it
Node    *graph_node(Graph *g, Node n);     // copies n; sets the producers of its outputs

// Puts nodes in topological order (stable). Fails on a cycle or a value nobody produces.
MUST_USE Err graph_sort(Graph *g);

bool graph_equal(const Graph *a, const Graph *b);  // same structure, names, types and numbers

// Makes a filled constant's numbers; out must hold its bytes.
void random_fill_make(const RandomFill *f, const Tensor *type, void *out);
