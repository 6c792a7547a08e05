// Ir: a specialised graph on its way to a program: values, layers, and what has been fused into
// them.
#pragma once

#include "compile/lower/expr.h"
#include "model/shaped_graph.h"

#define IR_NONE UINT32_MAX

typedef enum Layout { LAYOUT_PLAIN, LAYOUT_BLOCKED } Layout;

typedef enum IrKind {
#define X(id, name, bind) IR_##id,
#include "compile/ir_kind.def"
#undef X
    IR_KINDS
} IrKind;

typedef struct IrValue {
    Tensor      type;       // fully known; data: a constant
    const char *name;       // for people
    uint32_t    producer;   // layer; IR_NONE: an input or a constant
    uint32_t    input;      // of the graph; IR_NONE: not one
    uint32_t    uses;       // layers that read it; ir_count_uses keeps it
    uint32_t    converted;  // the same numbers in the other layout; IR_NONE: there is none yet
    bool        output;     // read from outside: an output of the graph, or the interpreted rest
    uint8_t     layout;
} IrValue;

typedef struct IrLayer {
    IrKind      kind;
    bool        dead;
    const Node *node;  // the first of those it computes; for names and attributes
    uint32_t    n_in, n_out;
    uint32_t   *in, *out;  // values; IR_NONE where left out. A chain has none in: see expr
    Expr        expr;      // a chain's arithmetic, or what follows a heavy layer's sums
    void       *spec;      // the kind's own
} IrLayer;

typedef struct Ir {
    Arena             *arena;  // everything here lives in it
    const ShapedGraph *shaped;
    uint32_t           lanes;
    IrValue           *values;
    IrLayer           *layers;  // in an order in which they can run
    uint32_t           n_values, n_layers, cap_values, cap_layers;
    uint32_t *of_value;    // [graph values] ir value; IR_NONE: not part of the static program
    bool     *lowered;     // [graph nodes] computed here, by folding or by a layer
    bool      shape_only;  // large constants have an address but no numbers: nobody runs it
} Ir;

MUST_USE Err ir_make(const ShapedGraph *s, uint32_t lanes, bool shape_only, Arena *arena, Ir *out);
bool ir_omits_data(const Ir *ir, size_t bytes);  // a constant so large stays without numbers

uint32_t ir_value(Ir *ir, IrValue v);
uint32_t ir_const(Ir *ir, const char *name, Tensor t);
IrLayer *ir_layer(Ir *ir, IrKind kind, const Node *n, uint32_t n_in, uint32_t n_out);

const Tensor *ir_type(const Ir *ir, uint32_t value);
bool          ir_is_const(const Ir *ir, uint32_t value);
const float  *ir_floats(const Ir *ir, uint32_t value);  // a float32 constant's numbers; or NULL

void     ir_count_uses(Ir *ir);                               // uses and makers, after changes
uint32_t ir_operand_count(const IrLayer *l);                  // how many values it reads
uint32_t ir_operand(const IrLayer *l, uint32_t i);            // the i-th of them; may be IR_NONE
void     ir_replace(IrLayer *l, uint32_t from, uint32_t to);  // in what it reads
void     ir_remove_dead(Ir *ir);       // drops dead layers and unread results
bool     ir_takes_epilogue(IrKind k);  // its results can be finished by a chain
