#include "compile/ir.h"

#include <string.h>

#include "base/err.h"

// Arrays double by copying inside the arena; at most twice the final size is used.
static void *grow(Arena *a, void *old, uint32_t n, uint32_t *cap, size_t size) {
    if (n < *cap) return old;
    *cap = *cap == 0 ? 256 : *cap * 2;
    void *now = arena_alloc(a, *cap, size, _Alignof(max_align_t));
    if (n > 0) memcpy(now, old, n * size);
    return now;
}

// Bytes: smaller constants (biases, norms, indexes) have data also in a shape-only program.
enum { SHAPE_ONLY_CONST_MAX = 1 << 16 };

void ir_list_add(Ir *ir, IrLayerList *list, IrLayer l) {
    if (list->n == list->cap) {
        uint32_t cap = list->cap == 0 ? 256 : list->cap * 2;
        IrLayer *now = arena_new(ir->arena, IrLayer, cap);
        if (list->n > 0) memcpy(now, list->at, list->n * sizeof *now);
        list->at = now;
        list->cap = cap;
    }
    list->at[list->n++] = l;
}

void ir_use_layers(Ir *ir, const IrLayerList *list) {
    ir->layers = list->at;
    ir->n_layers = list->n;
    ir->cap_layers = list->cap;
}

bool ir_omits_data(const Ir *ir, size_t bytes) {
    return ir->shape_only && bytes > SHAPE_ONLY_CONST_MAX;
}

static uint32_t add_value(Ir *ir, const char *name, Tensor t, uint32_t input) {
    ir->values = grow(ir->arena, ir->values, ir->n_values, &ir->cap_values, sizeof *ir->values);
    ir->values[ir->n_values] =
        (IrValue){.type = t, .name = name, .producer = IR_NONE, .input = input};
    for (uint32_t i = 0; i < LAYOUTS; i++) ir->values[ir->n_values].converted[i] = IR_NONE;
    return ir->n_values++;
}

uint32_t ir_computed(Ir *ir, const char *name, Tensor t) {
    t.data = NULL;
    return add_value(ir, name, t, IR_NONE);
}

uint32_t ir_input(Ir *ir, const char *name, Tensor t, uint32_t i) {
    return add_value(ir, name, t, i);
}

uint32_t ir_const(Ir *ir, const char *name, Tensor t) {
    CHECK(t.data != NULL || tensor_count(&t) == 0);
    return add_value(ir, name, t, IR_NONE);
}

IrLayer *ir_layer(Ir *ir, IrKind kind, const Node *n, uint32_t n_in, uint32_t n_out) {
    ir->layers = grow(ir->arena, ir->layers, ir->n_layers, &ir->cap_layers, sizeof *ir->layers);
    IrLayer *l = &ir->layers[ir->n_layers++];
    *l = (IrLayer){.kind = kind, .node = n, .n_in = n_in, .n_out = n_out};
    l->in = arena_new(ir->arena, uint32_t, n_in);
    l->out = arena_new(ir->arena, uint32_t, n_out);
    for (uint32_t i = 0; i < n_in; i++) l->in[i] = IR_NONE;
    for (uint32_t i = 0; i < n_out; i++) l->out[i] = IR_NONE;
    return l;
}

const IrLayer *ir_producer(const Ir *ir, uint32_t value, IrKind kind) {
    if (value == IR_NONE || ir->values[value].producer == IR_NONE) return NULL;
    const IrLayer *l = &ir->layers[ir->values[value].producer];
    return !l->dead && l->kind == kind ? l : NULL;
}

bool ir_has_one_use(const Ir *ir, uint32_t value) {
    return ir->values[value].uses == 1 && !ir->values[value].output;
}

const Tensor *ir_type(const Ir *ir, uint32_t value) { return &ir->values[value].type; }

bool ir_is_const(const Ir *ir, uint32_t value) {
    const IrValue *v = &ir->values[value];
    return v->type.data != NULL && v->producer == IR_NONE && v->input == IR_NONE;
}

const float *ir_floats(const Ir *ir, uint32_t value) {
    if (value == IR_NONE || !ir_is_const(ir, value)) return NULL;
    return ir->values[value].type.dtype == DT_F32 ? ir->values[value].type.data : NULL;
}

bool ir_takes_epilogue(IrKind k) {
    return k == IR_CONV || k == IR_DEPTHWISE || k == IR_DECONV || k == IR_GEMM || k == IR_MATMUL ||
           k == IR_INT8_GEMM;
}

// In an epilogue, argument 0 is the layer's own result and not an operand.
static uint32_t first_arg(const IrLayer *l) { return l->kind == IR_ELEMENTWISE ? 0 : 1; }

uint32_t ir_operand_count(const IrLayer *l) {
    uint32_t first = first_arg(l);
    return l->n_in + (l->expr.n_args > first ? l->expr.n_args - first : 0);
}

uint32_t ir_operand(const IrLayer *l, uint32_t i) {
    return i < l->n_in ? l->in[i] : l->expr.args[i - l->n_in + first_arg(l)];
}

// A layer that reads a value twice counts as one use.
static bool read_before(const IrLayer *l, uint32_t i) {
    for (uint32_t k = 0; k < i; k++)
        if (ir_operand(l, k) == ir_operand(l, i)) return true;
    return false;
}

void ir_count_uses(Ir *ir) {
    for (uint32_t i = 0; i < ir->n_values; i++) {
        ir->values[i].uses = ir->values[i].output ? 1 : 0;
        ir->values[i].producer = IR_NONE;
    }
    for (uint32_t i = 0; i < ir->n_layers; i++) {
        const IrLayer *l = &ir->layers[i];
        if (l->dead) continue;
        for (uint32_t k = 0; k < ir_operand_count(l); k++)
            if (ir_operand(l, k) != IR_NONE && !read_before(l, k))
                ir->values[ir_operand(l, k)].uses++;
        for (uint32_t k = 0; k < l->n_out; k++)
            if (l->out[k] != IR_NONE) ir->values[l->out[k]].producer = i;
    }
}

static bool is_read(const Ir *ir, const IrLayer *l) {
    for (uint32_t k = 0; k < l->n_out; k++)
        if (l->out[k] != IR_NONE && ir->values[l->out[k]].uses > 0) return true;
    return false;
}

void ir_remove_dead(Ir *ir) {
    ir_count_uses(ir);
    for (uint32_t i = ir->n_layers; i-- > 0;) {
        IrLayer *l = &ir->layers[i];
        if (l->dead || is_read(ir, l)) continue;
        l->dead = true;
        for (uint32_t k = 0; k < ir_operand_count(l); k++)
            if (ir_operand(l, k) != IR_NONE && !read_before(l, k))
                ir->values[ir_operand(l, k)].uses--;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < ir->n_layers; i++)
        if (!ir->layers[i].dead) ir->layers[kept++] = ir->layers[i];
    ir->n_layers = kept;
    ir_count_uses(ir);
}
