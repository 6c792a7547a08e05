// Ir: the compiler's intermediate form of a graph with known shapes: values, layers, fused
// epilogues.
#pragma once

#include "compile/lower/expr.h"
#include "model/shaped_graph.h"

#define IR_NONE UINT32_MAX

// PLAIN: as in ONNX. BLOCKED: channels in blocks of a vector. PIXELS: the channels of a pixel are
// contiguous.
typedef enum Layout { LAYOUT_PLAIN, LAYOUT_BLOCKED, LAYOUT_PIXELS, LAYOUTS } Layout;

typedef enum IrKind {
#define X(id, name, bind) IR_##id,
#include "compile/ir_kind.def"
#undef X
    IR_KINDS
} IrKind;

typedef struct IrValue {
    Tensor        type;                // shape is known; data is set for constants only
    const char   *name;                // in messages
    uint32_t      producer;            // layer that writes it; IR_NONE: an input or a constant
    uint32_t      input;               // index among the graph's inputs; IR_NONE: not an input
    uint32_t      uses;                // number of layers that read it, set by ir_count_uses
    uint32_t      converted[LAYOUTS];  // the same value in other layouts; IR_NONE: none yet
    const Tensor *half;    // the float16 or bfloat16 constant that it was widened from, or NULL
    bool          output;  // a graph output, or an input of the interpreted tail
    uint8_t       layout;
} IrValue;

typedef struct IrLayer {
    IrKind      kind;
    bool        dead;
    const Node *node;  // first node it computes: source of its name and attributes
    uint32_t    n_in, n_out;
    uint32_t   *in, *out;  // values; IR_NONE: omitted. Element-wise layers read expr.args
    Expr        expr;      // arithmetic of an element-wise layer, or the epilogue of another
    void       *spec;      // parameters of its kind: compile/spec.h or a kernel's parameter struct
} IrLayer;

typedef struct Ir {
    Arena             *arena;  // owns all of it
    const ShapedGraph *shaped;
    uint32_t           lanes;
    IrValue           *values;
    IrLayer           *layers;  // in topological order
    uint32_t           n_values, n_layers, cap_values, cap_layers;
    uint32_t          *of_value;  // [graph values] IR value; IR_NONE: left to the interpreter
    uint32_t *half;  // [graph values] the same in 16 bits, if of_value has it as floats; or IR_NONE
    bool     *lowered;     // [graph nodes] computed by folding or by a layer
    bool      shape_only;  // large constants have an address but no data: the program cannot run
} Ir;

// A list of layers that a pass makes to replace those of the graph.
typedef struct IrLayerList {
    IrLayer *at;
    uint32_t n, cap;
} IrLayerList;

void ir_list_add(Ir *ir, IrLayerList *list, IrLayer l);
void ir_use_layers(Ir *ir, const IrLayerList *list);  // the graph's layers are those of the list

bool ir_omits_data(const Ir *ir, size_t bytes);  // a constant of that size has no data

// Adds a value that a layer is to compute, that is input i of the graph, or a constant with data.
uint32_t ir_computed(Ir *ir, const char *name, Tensor t);
uint32_t ir_input(Ir *ir, const char *name, Tensor t, uint32_t i);
uint32_t ir_const(Ir *ir, const char *name, Tensor t);
IrLayer *ir_layer(Ir *ir, IrKind kind, const Node *n, uint32_t n_in, uint32_t n_out);

// The layer of that kind that computes the value; NULL: there is none.
const IrLayer *ir_producer(const Ir *ir, uint32_t value, IrKind kind);
bool ir_has_one_use(const Ir *ir, uint32_t value);  // one layer reads it, and it is no output
const Tensor *ir_type(const Ir *ir, uint32_t value);
bool          ir_is_const(const Ir *ir, uint32_t value);
const float  *ir_floats(const Ir *ir, uint32_t value);  // data of a float32 constant, or NULL

void     ir_count_uses(Ir *ir);                     // recomputes `uses` and `producer`
uint32_t ir_operand_count(const IrLayer *l);        // operands, epilogue arguments included
uint32_t ir_operand(const IrLayer *l, uint32_t i);  // value i of them; may be IR_NONE
void     ir_remove_dead(Ir *ir);       // drops dead layers and those without used results
bool     ir_takes_epilogue(IrKind k);  // its kernel applies an element-wise epilogue
