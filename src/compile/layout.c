// Convolutions, pools and resizing write blocked tensors; element-wise layers and concatenations
// keep them blocked where they can. Their relatives over bytes do the same with pixels. All other
// layers use the plain layout. A value needed in several layouts is converted once to each.
#include "compile/layout.h"

#include <string.h>

#include "compile/spec.h"
#include "kernel/int8_conv.h"

ImageDims layout_image_dims(const Tensor *t) {
    ImageDims im = {.n = (uint32_t)t->dims[0], .c = (uint32_t)t->dims[1], .pixels = 1};
    for (int32_t i = 2; i < t->rank; i++) im.pixels *= (uint64_t)t->dims[i];
    return im;
}

size_t layout_bytes(const Tensor *t, Layout layout, uint32_t lanes) {
    if (layout == LAYOUT_PLAIN) return (size_t)tensor_count(t) * dtype_size(t->dtype);
    ImageDims im = layout_image_dims(t);
    if (layout == LAYOUT_PIXELS)
        return im.n * (size_t)im.pixels * int8_pitch(im.c, lanes) * dtype_size(t->dtype);
    size_t blocks = (im.c + lanes - 1) / lanes;
    return im.n * blocks * (size_t)im.pixels * lanes * sizeof(float);
}

bool layout_is_noop(const Tensor *t, Layout from, Layout to, uint32_t lanes) {
    if (t->rank < 2) return false;
    ImageDims im = layout_image_dims(t);
    if (from == LAYOUT_PIXELS || to == LAYOUT_PIXELS)
        return im.pixels == 1 && (im.n == 1 || im.c == int8_pitch(im.c, lanes));
    return t->dtype == DT_F32 && im.pixels == 1 && (im.n == 1 || im.c % lanes == 0);
}

StridedCopy layout_pixel_copy(const Tensor *t, bool to_pixels, uint32_t lanes) {
    ImageDims im = layout_image_dims(t);
    int64_t   pixels = (int64_t)im.pixels, pitch = int8_pitch(im.c, lanes);
    int64_t   plain[3] = {im.c * pixels, pixels, 1}, packed[3] = {pixels * pitch, 1, pitch};
    int64_t   dims[3] = {im.n, im.c, pixels};
    if (!to_pixels) return strided_copy_make(3, dims, dtype_size(t->dtype), plain, packed);
    int64_t by_pixel[3] = {im.n, pixels, im.c};
    int64_t from[3] = {plain[0], 1, pixels}, to[3] = {packed[0], pitch, 1};
    return strided_copy_make(3, by_pixel, dtype_size(t->dtype), to, from);
}

typedef struct Pass {
    Ir         *ir;
    IrLayerList layers;  // the new list
} Pass;

static uint32_t convert(Pass *p, uint32_t value, Layout layout) {
    Ir      *ir = p->ir;
    uint32_t converted = ir_computed(ir, ir->values[value].name, ir->values[value].type);
    ir->values[converted].layout = (uint8_t)layout;
    ir->values[converted].converted[ir->values[value].layout] = value;
    ir->values[value].converted[layout] = converted;
    IrLayer l = {.kind = IR_LAYOUT, .n_in = 1, .n_out = 1};
    l.in = arena_new(ir->arena, uint32_t, 1);
    l.out = arena_new(ir->arena, uint32_t, 1);
    l.in[0] = value;
    l.out[0] = converted;
    ir_list_add(p->ir, &p->layers, l);
    return converted;
}

// The value in that layout; inserts a conversion before the current layer if needed, through the
// plain layout between the other two.
static uint32_t in_layout(Pass *p, uint32_t value, Layout layout) {
    const Ir *ir = p->ir;
    if (value == IR_NONE || ir->values[value].layout == layout) return value;
    if (ir->values[value].converted[layout] != IR_NONE) return ir->values[value].converted[layout];
    if (layout != LAYOUT_PLAIN) value = in_layout(p, value, LAYOUT_PLAIN);
    if (ir->values[value].converted[layout] != IR_NONE) return ir->values[value].converted[layout];
    return convert(p, value, layout);
}

static bool is_blocked(const Ir *ir, uint32_t v) { return ir->values[v].layout == LAYOUT_BLOCKED; }

// Bytes stay pixels if an operand is.
static Layout bytes_layout(const Ir *ir, const IrLayer *l) {
    if (ir_type(ir, l->out[0])->rank < 3) return LAYOUT_PLAIN;
    for (uint32_t i = 0; i < l->n_in; i++)
        if (ir->values[l->in[i]].layout == LAYOUT_PIXELS) return LAYOUT_PIXELS;
    return LAYOUT_PLAIN;
}

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
    if (spec_concat_axis(ir, l) != 1 || out->rank < 3) return LAYOUT_PLAIN;
    if (dtype_size(out->dtype) == 1) return bytes_layout(ir, l);
    if (out->dtype != DT_F32) return LAYOUT_PLAIN;
    for (uint32_t i = 0; i < l->n_in; i++) {
        if (i + 1 < l->n_in && ir_type(ir, l->in[i])->dims[1] % ir->lanes != 0) return LAYOUT_PLAIN;
        any = any || is_blocked(ir, l->in[i]);
    }
    return any ? LAYOUT_BLOCKED : LAYOUT_PLAIN;
}

// Pixels become blocks: both have neighbouring channels together.
static Layout dequantized_layout(const Ir *ir, const IrLayer *l) {
    const Tensor *out = ir_type(ir, l->out[0]);
    bool          pixels = ir->values[l->in[0]].layout == LAYOUT_PIXELS && out->rank >= 3;
    return pixels && out->dims[1] > INT8_QUAD ? LAYOUT_BLOCKED : LAYOUT_PLAIN;
}

static Layout own_layout(const Ir *ir, const IrLayer *l) {
    switch (l->kind) {
    case IR_CONV:
    case IR_DEPTHWISE:
    case IR_DECONV:
    case IR_RESIZE: return LAYOUT_BLOCKED;
    case IR_POOL: return ((const Pool *)l->spec)->shape.ic == 1 ? LAYOUT_PLAIN : LAYOUT_BLOCKED;
    case IR_INT8_CONV:
    case IR_INT8_DEPTHWISE:
    case IR_INT8_POOL: return LAYOUT_PIXELS;
    case IR_QUANTIZE:
        return ((const QuantizeSpec *)l->spec)->to_pixels ? LAYOUT_PIXELS : LAYOUT_PLAIN;
    case IR_DEQUANTIZE: return dequantized_layout(ir, l);
    case IR_BYTE_ELEMENTWISE: return bytes_layout(ir, l);
    case IR_ELEMENTWISE: return elementwise_layout(ir, l);
    case IR_CONCAT: return concat_layout(ir, l);
    default: return LAYOUT_PLAIN;
    }
}

static Layout input_layout(const Ir *ir, const IrLayer *l, uint32_t i, Layout own) {
    if (l->kind == IR_QUANTIZE && i == 0 && own == LAYOUT_PIXELS && is_blocked(ir, l->in[0]))
        return LAYOUT_BLOCKED;
    if (l->kind == IR_DEQUANTIZE && own == LAYOUT_BLOCKED) return LAYOUT_PIXELS;
    if (l->kind == IR_QUANTIZE) return LAYOUT_PLAIN;
    if (l->kind == IR_INT8_CONV && i > 0 && ((const Int8Spec *)l->spec)->residual == NULL)
        return LAYOUT_PLAIN;
    if (l->kind == IR_BYTE_ELEMENTWISE && tensor_count(ir_type(ir, l->in[i])) == 1)
        return LAYOUT_PLAIN;
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
        l->in[i] = in_layout(p, l->in[i], input_layout(p->ir, l, i, own));
    for (uint32_t i = l->kind == IR_ELEMENTWISE ? 0 : 1; i < l->expr.n_args; i++) {
        Layout want =
            own == LAYOUT_BLOCKED && full_size(p->ir, l, l->expr.args[i]) ? own : LAYOUT_PLAIN;
        l->expr.args[i] = in_layout(p, l->expr.args[i], want);
    }
    for (uint32_t i = 0; i < l->n_out; i++)
        if (l->out[i] != IR_NONE) p->ir->values[l->out[i]].layout = (uint8_t)own;
    ir_list_add(p->ir, &p->layers, *l);
}

// Values read outside of the layers are plain: the converted value becomes the output.
static void plain_outputs(Pass *p) {
    Ir *ir = p->ir;
    for (uint32_t i = 0, n = ir->n_values; i < n; i++) {
        if (!ir->values[i].output || ir->values[i].layout == LAYOUT_PLAIN) continue;
        uint32_t converted = in_layout(p, i, LAYOUT_PLAIN);
        ir->values[i].output = false;
        ir->values[converted].output = true;
    }
    for (uint32_t i = 0; i < ir->shaped->graph->n_values; i++) {
        uint32_t v = ir->of_value[i];
        if (v != IR_NONE && ir->values[v].layout != LAYOUT_PLAIN &&
            ir->values[v].converted[LAYOUT_PLAIN] != IR_NONE)
            ir->of_value[i] = ir->values[v].converted[LAYOUT_PLAIN];
    }
}

void layout_assign(Ir *ir) {
    Pass p = {.ir = ir};
    for (uint32_t i = 0; i < ir->n_layers; i++) {
        IrLayer l = ir->layers[i];
        if (!l.dead) adapt(&p, &l);
    }
    plain_outputs(&p);
    ir_use_layers(ir, &p.layers);
    ir_count_uses(ir);
}
