// Convolutions, pools and resizing write blocked tensors; element-wise layers and concatenations
// keep them blocked where they can. All other layers use the plain layout. A value needed in both
// layouts is converted once.
#include "compile/layout.h"

#include <string.h>

#include "compile/spec.h"

ImageDims layout_image_dims(const Tensor *t) {
    ImageDims im = {.n = (uint32_t)t->dims[0], .c = (uint32_t)t->dims[1], .pixels = 1};
    for (int32_t i = 2; i < t->rank; i++) im.pixels *= (uint64_t)t->dims[i];
    return im;
}

size_t layout_bytes(const Tensor *t, Layout layout, uint32_t lanes) {
    if (layout == LAYOUT_PLAIN) return (size_t)tensor_count(t) * dtype_size(t->dtype);
    ImageDims im = layout_image_dims(t);
    size_t    blocks = (im.c + lanes - 1) / lanes;
    return im.n * blocks * (size_t)im.pixels * lanes * sizeof(float);
}

bool layout_is_noop(const Tensor *t, uint32_t lanes) {
    if (t->dtype != DT_F32 || t->rank < 2) return false;
    ImageDims im = layout_image_dims(t);
    return im.pixels == 1 && (im.n == 1 || im.c % lanes == 0);
}

typedef struct Pass {
    Ir      *ir;
    IrLayer *done;  // layers of the new list
    uint32_t n, cap;
} Pass;

static void push(Pass *p, IrLayer l) {
    if (p->n == p->cap) {
        uint32_t cap = p->cap == 0 ? 256 : p->cap * 2;
        IrLayer *now = arena_new(p->ir->arena, IrLayer, cap);
        if (p->n > 0) memcpy(now, p->done, p->n * sizeof *now);
        p->done = now;
        p->cap = cap;
    }
    p->done[p->n++] = l;
}

// The value in that layout; inserts a conversion before the current layer if needed.
static uint32_t in_layout(Pass *p, uint32_t value, Layout layout) {
    Ir *ir = p->ir;
    if (value == IR_NONE || ir->values[value].layout == layout) return value;
    if (ir->values[value].converted != IR_NONE) return ir->values[value].converted;
    uint32_t converted = ir_computed(ir, ir->values[value].name, ir->values[value].type);
    ir->values[converted].layout = (uint8_t)layout;
    ir->values[converted].converted = value;
    ir->values[value].converted = converted;
    IrLayer l = {.kind = IR_LAYOUT, .n_in = 1, .n_out = 1};
    l.in = arena_new(ir->arena, uint32_t, 1);
    l.out = arena_new(ir->arena, uint32_t, 1);
    l.in[0] = value;
    l.out[0] = converted;
    push(p, l);
    return converted;
}

static bool is_blocked(const Ir *ir, uint32_t v) { return ir->values[v].layout == LAYOUT_BLOCKED; }

// Blocked if an argument is blocked and every argument is full-size, per channel or a scalar.
static Layout elementwise_layout(const Ir *ir, const IrLayer *l) {
    const Tensor *out = ir_type(ir, l->out[0]);
    bool          any = false;
    if (out->rank < 3) return LAYOUT_PLAIN;
    for (uint32_t i = 0; i < l->expr.n_args; i++) {
        ElementwiseMode mode;
        uint32_t        v = l->expr.args[i];
        if (!spec_arg_mode(ir_type(ir, v), out, 1, &mode)) return LAYOUT_PLAIN;
        any = any || (mode == EWISE_CONTIGUOUS && is_blocked(ir, v));
    }
    return any ? LAYOUT_BLOCKED : LAYOUT_PLAIN;
}

// Concatenation along channels: every input but the last must fill whole blocks.
static Layout concat_layout(const Ir *ir, const IrLayer *l) {
    const Tensor *out = ir_type(ir, l->out[0]);
    bool          any = false;
    if (spec_concat_axis(ir, l) != 1 || out->rank < 3 || out->dtype != DT_F32) return LAYOUT_PLAIN;
    for (uint32_t i = 0; i < l->n_in; i++) {
        if (i + 1 < l->n_in && ir_type(ir, l->in[i])->dims[1] % ir->lanes != 0) return LAYOUT_PLAIN;
        any = any || is_blocked(ir, l->in[i]);
    }
    return any ? LAYOUT_BLOCKED : LAYOUT_PLAIN;
}

static Layout own_layout(const Ir *ir, const IrLayer *l) {
    switch (l->kind) {
    case IR_CONV:
    case IR_DEPTHWISE:
    case IR_DECONV:
    case IR_POOL:
    case IR_RESIZE: return LAYOUT_BLOCKED;
    case IR_ELEMENTWISE: return elementwise_layout(ir, l);
    case IR_CONCAT: return concat_layout(ir, l);
    default: return LAYOUT_PLAIN;
    }
}

static Layout input_layout(const IrLayer *l, uint32_t i, Layout own) {
    if (l->kind == IR_CONV && i == 0 && ((const ConvSpec *)l->spec)->plain_in) return LAYOUT_PLAIN;
    return own;
}

// Scalars and per-channel arguments are read in the plain layout.
static bool full_size(const Ir *ir, const IrLayer *l, uint32_t v) {
    const Tensor   *out = ir_type(ir, l->out[0]);
    ElementwiseMode mode;
    if (!spec_arg_mode(ir_type(ir, v), out, 1, &mode)) return true;
    return mode == EWISE_CONTIGUOUS;
}

static void adapt(Pass *p, IrLayer *l) {
    Layout own = own_layout(p->ir, l);
    for (uint32_t i = 0; i < l->n_in; i++)
        l->in[i] = in_layout(p, l->in[i], input_layout(l, i, own));
    for (uint32_t i = l->kind == IR_ELEMENTWISE ? 0 : 1; i < l->expr.n_args; i++) {
        Layout want =
            own == LAYOUT_BLOCKED && full_size(p->ir, l, l->expr.args[i]) ? own : LAYOUT_PLAIN;
        l->expr.args[i] = in_layout(p, l->expr.args[i], want);
    }
    for (uint32_t i = 0; i < l->n_out; i++)
        if (l->out[i] != IR_NONE) p->ir->values[l->out[i]].layout = (uint8_t)own;
    push(p, *l);
}

// Values read outside of the layers are plain: the converted value becomes the output.
static void plain_outputs(Pass *p) {
    Ir *ir = p->ir;
    for (uint32_t i = 0, n = ir->n_values; i < n; i++) {
        if (!ir->values[i].output || !is_blocked(ir, i)) continue;
        uint32_t converted = in_layout(p, i, LAYOUT_PLAIN);
        ir->values[i].output = false;
        ir->values[converted].output = true;
    }
    for (uint32_t i = 0; i < ir->shaped->graph->n_values; i++) {
        uint32_t v = ir->of_value[i];
        if (v != IR_NONE && is_blocked(ir, v) && ir->values[v].converted != IR_NONE)
            ir->of_value[i] = ir->values[v].converted;
    }
}

void layout_assign(Ir *ir) {
    Pass p = {.ir = ir};
    for (uint32_t i = 0; i < ir->n_layers; i++) {
        IrLayer l = ir->layers[i];
        if (!l.dead) adapt(&p, &l);
    }
    plain_outputs(&p);
    ir->layers = p.done;
    ir->n_layers = p.n;
    ir->cap_layers = p.cap;
    ir_count_uses(ir);
}
