#include "compile/bind/bind.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "compile/layout.h"
#include "compile/spec.h"
#include "kernel/strided_copy.h"

static BindFn *const table[IR_KINDS] = {
#define X(id, name, bind) [IR_##id] = bind_##bind,
#include "compile/ir_kind.def"
#undef X
};

enum { SLACK = TENSOR_SLACK };

Err bind_none(Binder *b, const IrLayer *l, Step *s) {
    (void)b, (void)l, (void)s;
    return ERR_OK;
}

uint32_t step_one_task(const Step *s, const Version *v) {
    (void)s, (void)v;
    return 1;
}

Err bind_alloc(Binder *b, size_t bytes, void *out) {
    void *at = arena_try(b->keep, bytes + SLACK, 1, TENSOR_ALIGN);
    if (at == NULL) return err_set(ERR_LIMIT, "no memory for %zu bytes of a program", bytes);
    memcpy(out, &at, sizeof at);
    return ERR_OK;
}

static bool is_shared(const Binder *b, const PackKey *key) {
    bool shared = b->packed != NULL && key->sources[0] != NULL;
    for (uint32_t i = 0; i < PACK_SOURCES && key->sources[i] != NULL; i++)
        shared = shared && packed_weights_shares(b->packed, key->sources[i]);
    return shared;
}

Err bind_packed(Binder *b, const PackKey *key, size_t bytes, float **out, bool *made) {
    void *at = NULL;
    *made = false;
    CHECK(!b->filling);
    if (!is_shared(b, key)) return bind_alloc(b, bytes, out);
    TRY(packed_weights_find(b->packed, key, bytes + SLACK, &at, made));
    b->filling = !*made;
    *out = at;
    return ERR_OK;
}

void bind_packed_made(Binder *b) {
    if (b->filling) packed_weights_made(b->packed);
    b->filling = false;
}

PackKey bind_pack_key(const Binder *b, const char *form, const OutputChannels *c) {
    PackKey key = {.sources = {ir_floats(b->ir, c->weight)}, .form = form};
    key.sizes[0] = b->isa->lanes;
    key.sizes[1] = c->n;
    key.factors[0] = (PackFactors){c->scale, c->n};
    return key;
}

Err bind_spec(Binder *b, const IrLayer *l, const StepKind *kind, size_t bytes, Step *s) {
    TRY(bind_alloc(b, bytes, &s->spec));
    memcpy(s->spec, l->spec, bytes);
    s->kind = kind;
    return ERR_OK;
}

static void fill_constant(const Binder *b, const IrValue *v, const Tensor *from, size_t bytes,
                          void *at) {
    if (ir_omits_data(b->ir, bytes) || bytes == 0) return;
    if (v->layout == LAYOUT_BLOCKED) {
        ImageDims     im = layout_image_dims(from);
        LayoutConvert r = {from->data, at, im.n, im.c, im.pixels};
        b->isa->layout_to_blocked(&r, (Part){.count = 1});
    } else if (v->layout == LAYOUT_PIXELS) {
        StridedCopy c = layout_pixel_copy(from, true, b->ir->lanes);
        c.from = from->data;
        c.to = at;
        b->isa->strided_copy(&c, (Part){.count = 1});
    } else {
        memcpy(at, from->data, bytes);
    }
}

// Constants of the model or of the shaped graph, which outlive a program that shares weights;
// folded ones have TENSOR_SLACK bytes behind them.
static bool is_lasting(const Binder *b, const void *data, size_t bytes) {
    if (b->packed == NULL || data == NULL || (uintptr_t)data % TENSOR_ALIGN != 0) return false;
    if (packed_weights_shares(b->packed, data))
        return packed_weights_in_place(b->packed, data, bytes, SLACK);
    return !arena_holds(b->ir->arena, data, 1);
}

// Where it is if that lasts, else a copy.
static Err place_constant(Binder *b, const IrValue *v, const Tensor *from, void **at) {
    size_t bytes = layout_bytes(&v->type, v->layout, b->ir->lanes);
    bool   blocked = v->layout == LAYOUT_BLOCKED, made = false;
    float *own = NULL;
    if (v->layout == LAYOUT_PLAIN && is_lasting(b, from->data, bytes)) {
        *at = from->data;
        return ERR_OK;
    }
    if (!blocked || from->data == NULL) {
        TRY(bind_alloc(b, bytes, &own));
    } else {
        ImageDims im = layout_image_dims(from);
        PackKey   key = {.sources = {from->data}, .form = "blocked"};
        key.sizes[0] = b->isa->lanes;
        key.sizes[1] = (uint32_t)im.n;
        key.sizes[2] = (uint32_t)im.c;
        TRY(bind_packed(b, &key, bytes, &own, &made));
    }
    if (!made) fill_constant(b, v, from, bytes, own);
    bind_packed_made(b);
    *at = own;
    return ERR_OK;
}

// A constant in the layout of the value.
static Err bind_constant(Binder *b, uint32_t value, const Tensor *from, Operand *out) {
    const IrValue *v = &b->ir->values[value];
    if (b->constants[value].kind == OPERAND_NONE) {
        void *at = NULL;
        TRY(place_constant(b, v, from, &at));
        b->constants[value] = (Operand){.kind = OPERAND_CONST, .at = at};
    }
    *out = b->constants[value];
    return ERR_OK;
}

static const Tensor *constant_source(const Ir *ir, uint32_t value) {
    const IrValue *v = &ir->values[value];
    if (v->producer != IR_NONE && ir->layers[v->producer].kind == IR_LAYOUT)
        value = ir->layers[v->producer].in[0];
    return ir_is_const(ir, value) ? ir_type(ir, value) : NULL;
}

Err bind_operand(Binder *b, uint32_t value, Operand *out) {
    *out = (Operand){.kind = OPERAND_NONE};
    if (value == IR_NONE) return ERR_OK;
    size_t         offset = 0;
    uint32_t       root = memory_plan_root(b->plan, value, &offset);
    const IrValue *owner = &b->ir->values[root];
    const Tensor  *constant = constant_source(b->ir, root);
    if (constant != NULL)
        TRY(bind_constant(b, root, constant, out));
    else if (owner->input != IR_NONE)
        *out = (Operand){.kind = OPERAND_INPUT, .input = owner->input};
    else
        *out = (Operand){.kind = OPERAND_ARENA, .offset = b->plan->offset[root] + offset};
    out->type = b->ir->values[value].type;
    out->type.data = NULL;
    out->bytes = layout_bytes(&out->type, b->ir->values[value].layout, b->ir->lanes);
    return ERR_OK;
}

Err bind_bias(Binder *b, const OutputChannels *c, const float **out) {
    *out = NULL;
    if (c->bias == NULL && c->shift == NULL) return ERR_OK;
    uint32_t padded = (c->n + b->isa->lanes - 1) / b->isa->lanes * b->isa->lanes;
    float   *x = NULL;
    bool     made = false;
    PackKey  key = bind_pack_key(b, "bias", c);
    key.sources[1] = c->bias;
    key.factors[1] = (PackFactors){c->shift, c->n};
    TRY(bind_packed(b, &key, padded * sizeof *x, &x, &made));
    for (uint32_t i = 0; i < c->n && !made; i++) {
        float bias = c->bias != NULL ? c->bias[i] : 0, scale = c->scale != NULL ? c->scale[i] : 1;
        x[i] = bias * scale + (c->shift != NULL ? c->shift[i] : 0);
    }
    bind_packed_made(b);
    *out = x;
    return ERR_OK;
}

const float *bind_scaled(Binder *b, const OutputChannels *c, size_t inner, size_t outer) {
    const float *w = ir_floats(b->ir, c->weight);
    if (c->scale == NULL) return w;
    float *own = arena_new(b->ir->arena, float, inner * c->n * outer);
    for (size_t o = 0; o < outer; o++)
        for (size_t j = 0; j < c->n; j++)
            for (size_t i = 0; i < inner; i++) {
                size_t at = (o * c->n + j) * inner + i;
                own[at] = w[at] * c->scale[j];
            }
    return own;
}

// A first step that adds a tensor of the output's shape is done in registers.
static Err epilogue_add(Binder *b, const IrLayer *l, Expr *e, StepEpilogue *f) {
    const ExprStep *s = &e->steps[0];
    if (e->n_steps == 0 || s->op != EWISE_ADD || expr_uses(e, EXPR_ARG(0)) != 1) return ERR_OK;
    int8_t other = s->a == EXPR_ARG(0) ? s->b : s->a;
    if (other >= 0 || (s->a != EXPR_ARG(0) && s->b != EXPR_ARG(0))) return ERR_OK;
    uint32_t      v = e->args[-1 - other];
    const Tensor *out = ir_type(b->ir, l->out[0]);
    if (!tensor_same_shape(ir_type(b->ir, v), out) || expr_uses(e, other) != 1) return ERR_OK;
    TRY(bind_operand(b, v, &f->add));
    expr_drop_first(e);
    return ERR_OK;
}

static void epilogue_clip(Expr *e, StepEpilogue *f) {
    const ExprStep *s = &e->steps[0];
    if (e->n_steps == 0 || s->op != EWISE_CLIP || s->a != EXPR_ARG(0)) return;
    if (expr_uses(e, EXPR_ARG(0)) != 1) return;
    f->lo = s->p;
    f->hi = s->q;
    expr_drop_first(e);
}

// The epilogue in order of execution: add, clip, then an element-wise program for the remaining
// steps.
static Err bind_epilogue(Binder *b, const IrLayer *l, StepEpilogue *f) {
    Expr e = l->expr;
    *f = (StepEpilogue){.lo = -INFINITY, .hi = INFINITY};
    TRY(epilogue_add(b, l, &e, f));
    epilogue_clip(&e, f);
    if (e.n_steps == 0) return ERR_OK;
    ElementwiseProgram *program = NULL;
    TRY(bind_alloc(b, sizeof *program, &program));
    CHECK(expr_emit(&e, program));
    f->program = program;
    const Tensor *out = ir_type(b->ir, l->out[0]);
    for (uint32_t i = 1; i < e.n_args; i++) {
        const Tensor *t = ir_type(b->ir, e.args[i]);
        CHECK(spec_arg_mode(t, out, spec_channel_axis(l->kind, out), &f->modes[i]));
        TRY(bind_operand(b, e.args[i], &f->args[i]));
    }
    return ERR_OK;
}

const Version *step_version(const Step *s, uint32_t cores) {
    const LayerProfile *p = s->profile;
    uint32_t            k = 0, best = 0;
    if (p == NULL || s->n_versions < 2) return &s->versions[0];
    while (k + 1 < p->n_counts && p->counts[k + 1] <= cores) k++;
    for (uint32_t i = 1; i < s->n_versions; i++) {
        TimeNs t = p->candidates[p->kept[i]].time_ns[k];
        if (t > 0 && t < p->candidates[p->kept[best]].time_ns[k]) best = i;
    }
    return &s->versions[best];
}

Epilogue step_epilogue(const Step *s, const RunMemory *mem) {
    const StepEpilogue *f = &s->epilogue;
    Epilogue            out = {.bias = f->bias, .lo = f->lo, .hi = f->hi, .program = f->program};
    out.add = operand_at(&f->add, mem);
    for (uint32_t i = 1; f->program != NULL && i < f->program->n_args; i++)
        out.args[i] = (ElementwiseInput){operand_at(&f->args[i], mem), f->modes[i]};
    return out;
}

static void count_bytes(const Binder *b, const IrLayer *l, Step *s) {
    for (uint32_t i = 0; i < ir_operand_count(l) + l->n_out; i++) {
        uint32_t v = i < ir_operand_count(l) ? ir_operand(l, i) : l->out[i - ir_operand_count(l)];
        if (v == IR_NONE) continue;
        const IrValue *value = &b->ir->values[v];
        size_t         bytes = layout_bytes(&value->type, value->layout, b->ir->lanes);
        *(ir_is_const(b->ir, v) ? &s->const_bytes : &s->io_bytes) += bytes;
        if (i < ir_operand_count(l) && !ir_is_const(b->ir, v)) s->read_bytes += bytes;
    }
}

Err bind_layer(Binder *b, const IrLayer *l, Step *s) {
    *s = (Step){
        .isa = b->isa, .node = l->node, .n_in = l->n_in, .n_out = l->n_out, .weight = IR_NONE};
    TRY(bind_alloc(b, l->n_in * sizeof *s->in, &s->in));
    TRY(bind_alloc(b, l->n_out * sizeof *s->out, &s->out));
    for (uint32_t i = 0; i < l->n_in; i++) TRY(bind_operand(b, l->in[i], &s->in[i]));
    for (uint32_t i = 0; i < l->n_out; i++) TRY(bind_operand(b, l->out[i], &s->out[i]));
    if (ir_takes_epilogue(l->kind)) TRY(bind_epilogue(b, l, &s->epilogue));
    for (uint32_t i = 0; i < l->n_out && s->name == NULL; i++)
        if (l->out[i] != IR_NONE) s->name = arena_str(b->keep, b->ir->values[l->out[i]].name);
    s->n_versions = 1;
    count_bytes(b, l, s);
    TRY(table[l->kind](b, l, s));
    bind_narrow_list(b, l, s);
    return ERR_OK;
}
