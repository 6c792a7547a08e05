#include "compile/lower/lower.h"

#include <string.h>

#include "compile/interp/interp.h"
#include "kernel/wide_type.h"
#include "model/infer/infer.h"

enum { FOLD_SHIFT = 31, FOLD_FIRST = 1 << 20 };  // log2 of the bytes of constants computed here

static LowerFn *const table[OP_COUNT] = {
#define X(op, family) [OP_##op] = lower_##family,
#include "compile/lower/lower.def"
#undef X
};

uint32_t lower_in(const Ir *ir, const Node *n, uint32_t i) {
    return i < n->n_in && n->in[i] != NO_VALUE ? ir->of_value[n->in[i]] : IR_NONE;
}

const Tensor *lower_type(const Ir *ir, const Node *n, uint32_t i) {
    uint32_t v = lower_in(ir, n, i);
    return v == IR_NONE ? NULL : ir_type(ir, v);
}

// Layers compute in floats. A float16 or bfloat16 value of the graph is a float value that holds
// halves: what computes it ends with rounding. Values in 16 bits exist at inputs and outputs, as
// constants, and beside reference layers.

static bool is_half(DType t) { return t == DT_F16 || t == DT_BF16; }

static DType graph_dtype(const Ir *ir, uint32_t v) { return ir->shaped->values[v].dtype; }

uint32_t lower_out(Ir *ir, const Node *n, uint32_t i) {
    if (i >= n->n_out || n->out[i] == NO_VALUE) return IR_NONE;
    uint32_t v = n->out[i];
    Tensor   t = ir->shaped->values[v];
    if (is_half(t.dtype)) t.dtype = DT_F32;
    ir->of_value[v] = ir_computed(ir, ir->shaped->graph->values[v].name, t);
    return ir->of_value[v];
}

static uint32_t add_half_layer(Ir *ir, const char *name, uint32_t from, Tensor to) {
    uint32_t out = ir_computed(ir, name, to);
    IrLayer *l = ir_layer(ir, IR_HALF, NULL, 1, 1);
    l->in[0] = from;
    l->out[0] = out;
    return out;
}

static void widen_data(const Tensor *half, Tensor *to) {
    WideBlock block;
    int64_t   n = tensor_count(half);
    for (int64_t i = 0; i < n; i += WIDE_BLOCK) {
        int64_t some = n - i < WIDE_BLOCK ? n - i : WIDE_BLOCK;
        wide_load(WIDE_F32, half, i, 1, some, &block);
        memcpy((float *)to->data + i, block.f32, (size_t)some * sizeof(float));
    }
}

// Sets the float value of graph value v, which the IR has in 16 bits as `half`.
static void widen(Ir *ir, uint32_t v, uint32_t half) {
    const char *name = ir->shaped->graph->values[v].name;
    Tensor      t = ir->shaped->values[v];
    t.dtype = DT_F32;
    ir->half[v] = half;
    if (!ir_is_const(ir, half) || tensor_alloc(&t, ir->arena) != ERR_OK) {
        ir->of_value[v] = add_half_layer(ir, name, half, t);
        return;
    }
    Tensor *source = arena_new(ir->arena, Tensor, 1);
    *source = *ir_type(ir, half);
    if (!ir_omits_data(ir, (size_t)tensor_count(&t) * sizeof(float))) widen_data(source, &t);
    ir->of_value[v] = ir_const(ir, name, t);
    ir->values[ir->of_value[v]].half = source;
}

// Graph value v in the graph's own type.
static uint32_t narrowed(Ir *ir, uint32_t v) {
    if (v == NO_VALUE || ir->of_value[v] == IR_NONE || !is_half(graph_dtype(ir, v)))
        return v == NO_VALUE ? IR_NONE : ir->of_value[v];
    Tensor t = ir->shaped->values[v];
    t.data = NULL;
    if (ir->half[v] == IR_NONE)
        ir->half[v] = add_half_layer(ir, ir->shaped->graph->values[v].name, ir->of_value[v], t);
    return ir->half[v];
}

IrLayer *lower_add(Ir *ir, const Node *n, uint32_t i, IrKind kind, uint32_t n_in, const void *spec,
                   size_t bytes) {
    uint32_t out = lower_out(ir, n, i);
    IrLayer *l = ir_layer(ir, kind, n, n_in, 1);
    if (n_in > 0) l->in[0] = lower_in(ir, n, 0);
    l->out[0] = out;
    if (ir_takes_epilogue(kind)) l->expr = (Expr){.n_args = 1, .args = {IR_NONE}};
    if (spec == NULL) return l;
    l->spec = arena_alloc(ir->arena, 1, bytes, _Alignof(max_align_t));
    memcpy(l->spec, spec, bytes);
    return l;
}

bool lower_is_float(const Ir *ir, const Node *n, uint32_t i) {
    const Tensor *t = lower_type(ir, n, i);
    return t != NULL && t->dtype == DT_F32;
}

bool lower_single_output(const Node *n) {
    for (uint32_t i = 1; i < n->n_out; i++)
        if (n->out[i] != NO_VALUE) return false;
    return true;
}

const float *lower_scalar(const Ir *ir, const Node *n, uint32_t i) {
    uint32_t     v = lower_in(ir, n, i);
    const float *x = ir_floats(ir, v);
    return x != NULL && tensor_count(ir_type(ir, v)) == 1 ? x : NULL;
}

bool lower_collapse(const Tensor *t, const bool *along, size_t *outer, size_t *n, size_t *inner) {
    int32_t i = 0;
    *outer = *n = *inner = 1;
    for (; i < t->rank && !along[i]; i++) *outer *= (size_t)t->dims[i];
    for (; i < t->rank && along[i]; i++) *n *= (size_t)t->dims[i];
    for (; i < t->rank && !along[i]; i++) *inner *= (size_t)t->dims[i];
    return i == t->rank;
}

static void lower_ref(Ir *ir, const Node *n) {
    uint32_t *in = arena_new(ir->arena, uint32_t, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++) in[i] = narrowed(ir, n->in[i]);
    IrLayer *l = ir_layer(ir, IR_REF, n, n->n_in, n->n_out);
    uint32_t at = ir->n_layers - 1;
    l->in = in;
    for (uint32_t i = 0; i < n->n_out; i++) {
        uint32_t v = lower_out(ir, n, i);
        if (v != IR_NONE) ir->values[v].type.dtype = graph_dtype(ir, n->out[i]);
        ir->layers[at].out[i] = v;
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != NO_VALUE && is_half(graph_dtype(ir, n->out[i])))
            widen(ir, n->out[i], ir->of_value[n->out[i]]);
}

// Layers that move numbers, or choose among them, give halves from halves.
static bool keeps_halves(const Ir *ir, uint32_t value, uint32_t first) {
    for (uint32_t i = first; i < ir->n_layers; i++)
        for (uint32_t k = 0; k < ir->layers[i].n_out; k++)
            if (ir->layers[i].out[k] == value) {
                IrKind kind = ir->layers[i].kind;
                return kind == IR_VIEW || kind == IR_COPY || kind == IR_CONCAT || kind == IR_GATHER;
            }
    return true;
}

// Rounds the results of a node that the graph has in 16 bits; its layers begin with `first`.
static void round_outputs(Ir *ir, const Node *n, uint32_t first) {
    for (uint32_t i = 0; i < n->n_out; i++) {
        uint32_t v = n->out[i];
        if (v == NO_VALUE || !is_half(graph_dtype(ir, v)) ||
            keeps_halves(ir, ir->of_value[v], first))
            continue;
        Expr e = {.n_args = 1, .args = {ir->of_value[v]}};
        expr_step(&e, (ExprStep){.op = graph_dtype(ir, v) == DT_F16 ? EWISE_F16 : EWISE_BF16,
                                 .a = EXPR_ARG(0)});
        lower_add(ir, n, i, IR_ELEMENTWISE, 0, NULL, 0)->expr = e;
    }
}

// A numeric tensor of known shape: fits a planned buffer.
static bool is_plain_value(const Tensor *t) {
    return tensor_known(t) && t->dtype != DT_STR && t->dtype != DT_SEQ && t->dtype != DT_OPT;
}

static bool is_static(const Ir *ir, const Node *n) {
    if (op_is_control_flow(n->op)) return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != NO_VALUE && ir->of_value[n->in[i]] == IR_NONE) return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != NO_VALUE && !is_plain_value(&ir->shaped->values[n->out[i]])) return false;
    return true;
}

static bool is_random(OpId op) {
    return op == OP_RandomUniform || op == OP_RandomNormal || op == OP_RandomUniformLike ||
           op == OP_RandomNormalLike || op == OP_Bernoulli || op == OP_Multinomial ||
           op == OP_Dropout;
}

static bool inputs_are_const(const Ir *ir, const Node *n) {
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != NO_VALUE && !ir_is_const(ir, ir->of_value[n->in[i]])) return false;
    return n->n_in > 0;
}

static bool fits_fold_budget(const Ir *ir, const Node *n) {
    size_t left = (size_t)1 << FOLD_SHIFT;
    for (uint32_t i = 0; i < n->n_out; i++) {
        size_t bytes = 0;
        if (n->out[i] == NO_VALUE) return false;
        if (tensor_measure(&ir->shaped->values[n->out[i]], &bytes) != ERR_OK) return false;
        if (bytes > left) return false;
        left -= bytes;
    }
    return arena_left(ir->arena) > (size_t)1 << FOLD_SHIFT;
}

static void add_const(Ir *ir, uint32_t v, Tensor t) {
    ir->of_value[v] = ir_const(ir, ir->shaped->graph->values[v].name, t);
    if (is_half(t.dtype)) widen(ir, v, ir->of_value[v]);
}

static void add_input(Ir *ir, uint32_t v, uint32_t i) {
    const Tensor *t = &ir->shaped->values[v];
    ir->of_value[v] = ir_input(ir, ir->shaped->graph->values[v].name, *t, i);
    if (is_half(t->dtype)) widen(ir, v, ir->of_value[v]);
}

// Constant folding of nodes that shape inference left as too large: weights being transformed.
static bool fold(Ir *ir, const Node *n, Arena *scratch) {
    if (is_random(n->op) || !inputs_are_const(ir, n) || !fits_fold_budget(ir, n)) return false;
    const Tensor **in = arena_new(scratch, const Tensor *, n->n_in);
    Tensor        *out = arena_new(scratch, Tensor, n->n_out);
    for (uint32_t i = 0; i < n->n_in; i++) {
        uint32_t v = narrowed(ir, n->in[i]);
        in[i] = v != IR_NONE ? ir_type(ir, v) : NULL;
    }
    OpCall c = {.node = n, .in = in, .scratch = scratch, .keep = ir->arena};
    if (infer_node(&c, out) != ERR_OK) return false;
    bool skip = false;
    for (uint32_t i = 0; i < n->n_out; i++) {
        size_t bytes = 0;
        if (tensor_measure(&out[i], &bytes) != ERR_OK) return false;
        if (tensor_alloc(&out[i], ir->arena) != ERR_OK) return false;
        skip = skip || ir_omits_data(ir, bytes);
    }
    if (!skip && interp_eval(&c, out) != ERR_OK) return false;
    for (uint32_t i = 0; i < n->n_out; i++) add_const(ir, n->out[i], out[i]);
    return true;
}

// A constant without data, in a shape-only program: it has an address.
static Err add_unfilled(Ir *ir, uint32_t value) {
    const Value *v = &ir->shaped->graph->values[value];
    Tensor       t = ir->shaped->values[value];
    size_t       bytes = 0;
    TRY(tensor_measure(&t, &bytes));
    TRY(tensor_alloc(&t, ir->arena));
    if (!ir_omits_data(ir, bytes)) random_fill_make(v->fill, &t, t.data);
    ir->of_value[value] = ir_const(ir, v->name, t);
    return ERR_OK;
}

static Err add_constants_and_inputs(Ir *ir) {
    const Graph *g = ir->shaped->graph;
    for (uint32_t i = 0; i < g->n_values; i++) {
        ir->of_value[i] = ir->half[i] = IR_NONE;
        const Tensor *t = &ir->shaped->values[i];
        if (!is_plain_value(t)) continue;
        if (t->data != NULL)
            add_const(ir, i, *t);
        else if (ir->shape_only && g->values[i].fill != NULL)
            TRY(add_unfilled(ir, i));
    }
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const Tensor *t = &ir->shaped->values[g->inputs[i]];
        if (ir->of_value[g->inputs[i]] != IR_NONE || !is_plain_value(t)) continue;
        add_input(ir, g->inputs[i], i);
    }
    return ERR_OK;
}

// Captured values of a branch's graph follow its inputs.
static void add_captures(Ir *ir) {
    const Graph *g = ir->shaped->graph;
    for (uint32_t i = 0; i < g->n_captures; i++) {
        uint32_t      v = g->captures[i].inner;
        const Tensor *t = &ir->shaped->values[v];
        if (ir->of_value[v] != IR_NONE || !is_plain_value(t)) continue;
        add_input(ir, v, g->n_inputs + i);
    }
}

static void mark_output(Ir *ir, uint32_t value) {
    if (value == NO_VALUE || ir->of_value[value] == IR_NONE) return;
    uint32_t v = narrowed(ir, value);
    ir->values[v].output = true;
}

// Graph outputs, and all that nodes left to the interpreter read.
static void mark_outputs(Ir *ir) {
    const Graph *g = ir->shaped->graph;
    for (uint32_t i = 0; i < g->n_outputs; i++) mark_output(ir, g->outputs[i]);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        if (ir->lowered[i]) continue;
        const Node *n = &g->nodes[i];
        for (uint32_t k = 0; k < n->n_in; k++) mark_output(ir, n->in[k]);
        for (uint32_t k = 0; k < n->n_attr; k++)
            if (n->attrs[k].kind == ATTR_GRAPH)
                for (uint32_t c = 0; c < n->attrs[k].v.g->n_captures; c++)
                    mark_output(ir, n->attrs[k].v.g->captures[c].outer);
    }
}

// Resize uses empty tensors for omitted inputs; caches of keys and values begin empty.
static bool may_be_empty(OpId op, uint32_t i) {
    switch (op) {
    case OP_Resize: return i > 0;
    case OP_Attention: return i == 4 || i == 5;
    case OP_MsGroupQueryAttention: return i == 3 || i == 4;
    case OP_MsMultiHeadAttention: return i == 6 || i == 7;
    default: return false;
    }
}

// Other empty tensors go to the reference kernel.
static bool has_empty(const Ir *ir, const Node *n) {
    for (uint32_t i = 0; i < n->n_in; i++)
        if (lower_type(ir, n, i) != NULL && tensor_count(lower_type(ir, n, i)) == 0 &&
            !may_be_empty(n->op, i))
            return true;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != NO_VALUE && tensor_count(&ir->shaped->values[n->out[i]]) == 0) return true;
    return false;
}

static void lower_node(Ir *ir, const Node *n, Arena *scratch) {
    size_t mark = scratch->used;
    if (!fold(ir, n, scratch)) {
        LowerFn *f = table[n->op];
        uint32_t first = ir->n_layers;
        if (f != NULL && !has_empty(ir, n) && f(ir, n))
            round_outputs(ir, n, first);
        else
            lower_ref(ir, n);
    }
    arena_rewind(scratch, mark);
}

Err lower_graph(const ShapedGraph *s, uint32_t lanes, bool shape_only, Arena *arena, Ir *out) {
    const Graph *g = s->graph;
    Arena        scratch;
    *out = (Ir){.arena = arena, .shaped = s, .lanes = lanes, .shape_only = shape_only};
    out->of_value = arena_new(arena, uint32_t, g->n_values);
    out->half = arena_new(arena, uint32_t, g->n_values);
    out->lowered = arena_new(arena, bool, g->n_nodes);
    TRY(add_constants_and_inputs(out));
    TRY(arena_init_growing(&scratch, FOLD_FIRST, (size_t)1 << FOLD_SHIFT));
    add_captures(out);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        out->lowered[i] = s->folded[i] || is_static(out, &g->nodes[i]);
        if (out->lowered[i] && !s->folded[i]) lower_node(out, &g->nodes[i], &scratch);
    }
    arena_finish(&scratch);
    mark_outputs(out);
    for (uint32_t i = 0; i < g->n_values; i++)
        if (out->half[i] != IR_NONE && out->values[out->half[i]].output)
            out->of_value[i] = out->half[i];
    ir_remove_dead(out);
    return ERR_OK;
}
