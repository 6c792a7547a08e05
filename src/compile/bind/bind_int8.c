// Steps over bytes: convolutions and products, depthwise convolutions, pools, quantisation.
#include <string.h>

#include "base/err.h"
#include "compile/bind/bind.h"
#include "compile/layout.h"
#include "compile/spec.h"
#include "kernel/int8_conv.h"
#include "kernel/int8_window.h"
#include "kernel/quantize.h"

enum { PADDED = 16 };  // channels: arrays per output channel end with whole vectors

typedef struct Int8Step {
    Int8Shape       shape;
    Int8Output      out;
    const Int8Spec *spec;  // valid while compiling
    Int8Weights     weights;
    Int8Taps        taps;  // weights of a depthwise convolution
    const int32_t  *bias;
    int32_t         x_zero;
    bool            packed;
} Int8Step;

static void int8_step_run(const StepCall *c) {
    const Step     *step = c->step;
    const Int8Step *s = step->spec;
    Int8Conv        a = {.shape = s->shape,
                         .version = *c->version,
                         .weights = s->weights,
                         .bias = s->bias,
                         .x_zero = s->x_zero,
                         .x = operand_at(&step->in[0], c->mem),
                         .y = operand_at(&step->out[0], c->mem),
                         .out = s->out};
    const void     *more = step->n_in > 1 ? operand_at(&step->in[1], c->mem) : NULL;
    const uint8_t  *zero = s->out.residual == NULL ? more : NULL;
    if (s->out.residual != NULL) a.out.added = more;
    if (zero != NULL && s->shape.x_signed)
        a.x_zero = (int32_t)(*zero ^ 0x80) - 0x80;  // sign-extended
    if (zero != NULL && !s->shape.x_signed) a.x_zero = *zero;
    if (s->out.kind == INT8_FLOATS) a.out.epilogue = step_epilogue(step, c->mem);
    step->isa->int8_conv(&a, c->part);
}

static const Int8Shape *shape_of(const Step *s) { return &((const Int8Step *)s->spec)->shape; }

static uint32_t int8_step_tasks(const Step *s, const Version *v) {
    return int8_tasks(shape_of(s), s->isa, v);
}

static size_t int8_step_scratch(const Step *s, const Version *v) {
    return int8_scratch(shape_of(s), s->isa, v);
}

static uint32_t int8_step_versions(const Step *s, const CacheSizes *c, Version *out, uint32_t max) {
    return int8_versions(shape_of(s), s->isa, c, out, max);
}

static Traffic int8_step_traffic(const Step *s, const Version *v, const CacheSizes *c,
                                 uint32_t parts) {
    return int8_traffic(shape_of(s), s->isa, v, c, parts);
}

static double int8_step_cycles(const Step *s, const Version *v, uint32_t parts) {
    return int8_cycles(shape_of(s), s->isa, v, parts);
}

static int32_t zero_at(const Tensor *zero, uint32_t i) {
    if (zero == NULL) return 0;
    return (int32_t)tensor_get_f64(zero, tensor_count(zero) == 1 ? 0 : i);
}

// Weights minus their zero points, [oc][inputs], in scratch memory of the IR.
static const int16_t *centred_weights(Binder *b, const Int8Spec *s) {
    const Tensor    *w = ir_type(b->ir, s->weight);
    const ConvShape *c = &s->shape.conv;
    size_t           each = (size_t)(c->ic / c->groups) * c->kh * c->kw;
    int16_t         *out = arena_new(b->ir->arena, int16_t, each * c->oc);
    const uint8_t   *from = w->data;
    size_t           across = s->by_rows ? 1 : each, along = s->by_rows ? c->oc : 1;
    for (uint32_t o = 0; o < c->oc; o++) {
        const int32_t zero = zero_at(s->w_zero, o);
        for (size_t i = 0; i < each; i++) {
            const uint8_t x = from[o * across + i * along];
            out[o * each + i] = (int16_t)((w->dtype == DT_I8 ? (int8_t)x : x) - zero);
        }
    }
    return out;
}

static Err int8_step_pack(const Step *s, const Version *v, Binder *b) {
    (void)v;  // all versions share one packed form
    Int8Step *p = s->spec;
    void     *memory = NULL;
    if (p->packed) return ERR_OK;
    const int16_t *w = centred_weights(b, p->spec);
    TRY(bind_alloc(b, int8_pack_bytes(&p->shape, b->isa, w), &memory));
    p->weights = int8_pack(&p->shape, b->isa, w, memory);
    p->packed = true;
    return ERR_OK;
}

static void int8_step_unpack(const Step *s) { ((Int8Step *)s->spec)->packed = false; }

// A column of a large image is a long task.
static void int8_step_refine(const Step *s, Version *v) {
    (void)s;
    if (v->split == SPLIT_COLUMNS) v->split = SPLIT_ROWS;
}

static const StepKind int8_kind = {.name = "int8",
                                   .run = int8_step_run,
                                   .refine = int8_step_refine,
                                   .tasks = int8_step_tasks,
                                   .scratch = int8_step_scratch,
                                   .versions = int8_step_versions,
                                   .traffic = int8_step_traffic,
                                   .cycles = int8_step_cycles,
                                   .pack = int8_step_pack,
                                   .unpack = int8_step_unpack};

static Err padded_floats(Binder *b, const float *x, uint32_t n, float fill, const float **out) {
    float *own = NULL;
    TRY(bind_alloc(b, (n + PADDED) * sizeof *own, &own));
    for (uint32_t i = 0; i < n; i++) own[i] = x != NULL ? x[i] : fill;
    *out = own;
    return ERR_OK;
}

static Err bind_outputs(Binder *b, const Int8Spec *s, Int8Step *p) {
    uint32_t oc = s->shape.conv.oc;
    p->out = (Int8Output){.kind = s->kind, .factor = 1, .lo = s->lo, .hi = s->hi, .zero = s->zero};
    if (s->residual != NULL) {
        Int8Residual *residual = NULL;
        TRY(bind_alloc(b, sizeof *residual, &residual));
        *residual = *s->residual;
        p->out.residual = residual;
    }
    if (s->kind != INT8_SUMS) TRY(padded_floats(b, s->scale, oc, 1, &p->out.scale));
    if (s->bias == NULL) return ERR_OK;
    int32_t *bias = NULL;
    TRY(bind_alloc(b, (oc + PADDED) * sizeof *bias, &bias));
    memcpy(bias, s->bias, oc * sizeof *bias);
    p->bias = bias;
    return ERR_OK;
}

static Err make_int8_step(Binder *b, const IrLayer *l, const StepKind *kind, Step *s) {
    const Int8Spec  *spec = l->spec;
    const ConvShape *c = &spec->shape.conv;
    Int8Step        *p = NULL;
    TRY(bind_alloc(b, sizeof *p, &p));
    *p = (Int8Step){.shape = spec->shape, .spec = spec, .x_zero = spec->x_zero};
    TRY(bind_outputs(b, spec, p));
    if (spec->float_bias != NULL)
        TRY(padded_floats(b, spec->float_bias, c->oc, 0, &s->epilogue.bias));
    s->kind = kind;
    s->spec = p;
    s->weight = spec->weight;
    s->macs = (double)c->n * c->oc * c->oh * c->ow * c->ic / c->groups * c->kh * c->kw;
    return ERR_OK;
}

Err bind_int8(Binder *b, const IrLayer *l, Step *s) {
    TRY(make_int8_step(b, l, &int8_kind, s));
    const Int8Step *p = s->spec;
    s->key = bind_conv_key(b, "int8", &p->shape.conv);
    s->key = arena_printf(b->keep, "%s signed%d out%d%s", s->key, (int)p->shape.x_signed,
                          (int)p->out.kind, p->out.residual != NULL ? " added" : "");
    int8_versions(&p->shape, b->isa, &b->caches, s->versions, 1);
    return ERR_OK;
}

// Depthwise convolution.

static void depthwise_step_run(const StepCall *c) {
    const Int8Step *s = c->step->spec;
    Int8Depthwise   d = {.shape = s->shape,
                         .weights = s->taps,
                         .bias = s->bias,
                         .x_zero = s->x_zero,
                         .x = operand_at(&c->step->in[0], c->mem),
                         .y = operand_at(&c->step->out[0], c->mem),
                         .out = s->out};
    c->step->isa->int8_depthwise(&d, c->part);
}

static uint32_t depthwise_step_tasks(const Step *s, const Version *v) {
    (void)v;
    return int8_depthwise_tasks(shape_of(s));
}

static size_t depthwise_step_scratch(const Step *s, const Version *v) {
    (void)v;
    return int8_depthwise_scratch(shape_of(s));
}

// The bias includes the zero point of x times the sum of the weights.
static Err depthwise_step_pack(const Step *s, const Version *v, Binder *b) {
    (void)v;
    Int8Step        *p = s->spec;
    const ConvShape *c = &p->shape.conv;
    void            *taps = NULL;
    int32_t         *bias = NULL;
    if (p->packed) return ERR_OK;
    const int16_t *w = centred_weights(b, p->spec);
    TRY(bind_alloc(b, int8_depthwise_pack_bytes(&p->shape), &taps));
    TRY(bind_alloc(b, (c->oc + PADDED) * sizeof *bias, &bias));
    p->taps = int8_depthwise_pack(&p->shape, b->isa, w, taps);
    for (uint32_t i = 0, n = c->kh * c->kw; i < c->oc; i++) {
        bias[i] = p->bias != NULL ? p->bias[i] : 0;
        for (uint32_t t = 0; t < n; t++) bias[i] -= p->x_zero * w[(size_t)i * n + t];
    }
    p->bias = bias;
    p->packed = true;
    return ERR_OK;
}

static const StepKind depthwise_kind = {.name = "int8_depthwise",
                                        .run = depthwise_step_run,
                                        .tasks = depthwise_step_tasks,
                                        .scratch = depthwise_step_scratch,
                                        .pack = depthwise_step_pack};

Err bind_int8_depthwise(Binder *b, const IrLayer *l, Step *s) {
    return make_int8_step(b, l, &depthwise_kind, s);
}

// Pools.

static Int8Pool pool_of(const Step *s, const RunMemory *mem) {
    const Int8PoolSpec *p = s->spec;
    return (Int8Pool){.pool = p->pool,
                      .pitch = int8_pitch(p->pool.shape.ic, s->isa->lanes),
                      .from = p->from,
                      .to = p->to,
                      .x = mem != NULL ? operand_at(&s->in[0], mem) : NULL,
                      .y = mem != NULL ? operand_at(&s->out[0], mem) : NULL};
}

static void pool_step_run(const StepCall *c) {
    Int8Pool p = pool_of(c->step, c->mem);
    c->step->isa->int8_pool(&p, c->part);
}

static uint32_t pool_step_tasks(const Step *s, const Version *v) {
    (void)v;
    Int8Pool p = pool_of(s, NULL);
    return int8_pool_tasks(&p);
}

static const StepKind pool_kind = {
    .name = "int8_pool", .run = pool_step_run, .tasks = pool_step_tasks};

Err bind_int8_pool(Binder *b, const IrLayer *l, Step *s) {
    return bind_spec(b, l, &pool_kind, sizeof(Int8PoolSpec), s);
}

// Between floats and bytes.

typedef struct QuantizeStep {
    Quantize args;
    bool     computed;  // scale and zero point are operands
} QuantizeStep;

static void quantize_step_run(const StepCall *c) {
    const QuantizeStep *s = c->step->spec;
    Quantize            q = s->args;
    q.x = operand_at(&c->step->in[0], c->mem);
    q.y = operand_at(&c->step->out[0], c->mem);
    if (s->computed) {
        q.to.scale = *(const float *)operand_at(&c->step->in[1], c->mem);
        q.to.zero = *(const uint8_t *)operand_at(&c->step->in[2], c->mem);
    }
    c->step->isa->quantize(&q, c->part);
}

static uint32_t quantize_step_tasks(const Step *s, const Version *v) {
    (void)v;
    return quantize_tasks(&((const QuantizeStep *)s->spec)->args);
}

static const StepKind quantize_kind = {
    .name = "quantize", .run = quantize_step_run, .tasks = quantize_step_tasks};

Err bind_quantize(Binder *b, const IrLayer *l, Step *s) {
    const QuantizeSpec *spec = l->spec;
    const Tensor       *x = ir_type(b->ir, l->in[0]);
    QuantizeStep       *own = NULL;
    TRY(bind_alloc(b, sizeof *own, &own));
    *own = (QuantizeStep){{.count = (size_t)tensor_count(x), .to = spec->to}, spec->computed};
    if (b->ir->values[l->out[0]].layout == LAYOUT_PIXELS) {
        ImageDims im = layout_image_dims(x);
        own->args.n = im.n;
        own->args.channels = im.c;
        own->args.pixels = (size_t)im.pixels;
        own->args.pitch = int8_pitch(im.c, b->ir->lanes);
        own->args.blocked = b->ir->values[l->in[0]].layout == LAYOUT_BLOCKED;
    }
    s->kind = &quantize_kind;
    s->spec = own;
    return ERR_OK;
}

static void dequantize_step_run(const StepCall *c) {
    Dequantize d = *(const Dequantize *)c->step->spec;
    d.x = operand_at(&c->step->in[0], c->mem);
    d.y = operand_at(&c->step->out[0], c->mem);
    c->step->isa->dequantize(&d, c->part);
}

static uint32_t dequantize_step_tasks(const Step *s, const Version *v) {
    (void)v;
    return dequantize_tasks(s->spec);
}

static const StepKind dequantize_kind = {
    .name = "dequantize", .run = dequantize_step_run, .tasks = dequantize_step_tasks};

Err bind_dequantize(Binder *b, const IrLayer *l, Step *s) {
    Dequantize *own = NULL;
    TRY(bind_alloc(b, sizeof *own, &own));
    own->count = (size_t)tensor_count(ir_type(b->ir, l->in[0]));
    own->from = *(const ByteScale *)l->spec;
    if (b->ir->values[l->out[0]].layout == LAYOUT_BLOCKED) {
        ImageDims im = layout_image_dims(ir_type(b->ir, l->in[0]));
        own->n = im.n;
        own->pixels = (size_t)im.pixels;
        own->pitch = int8_pitch(im.c, b->ir->lanes);
    }
    s->kind = &dequantize_kind;
    s->spec = own;
    return ERR_OK;
}

static void range_step_run(const StepCall *c) {
    const Operand *x = &c->step->in[0];
    ByteScale      s;
    if (c->part.index != 0) return;
    c->step->isa->byte_range(operand_at(x, c->mem), x->bytes / sizeof(float), &s);
    *(float *)operand_at(&c->step->out[0], c->mem) = s.scale;
    *(uint8_t *)operand_at(&c->step->out[1], c->mem) = (uint8_t)s.zero;
}

static const StepKind range_kind = {
    .name = "byte_range", .run = range_step_run, .tasks = step_one_task};

Err bind_byte_range(Binder *b, const IrLayer *l, Step *s) {
    (void)b, (void)l;
    s->kind = &range_kind;
    return ERR_OK;
}

// Expressions over bytes.

typedef struct ByteElementwiseStep {
    ElementwiseProgram program;
    ByteElementwise    args;
} ByteElementwiseStep;

static void byte_elementwise_step_run(const StepCall *c) {
    const ByteElementwiseStep *s = c->step->spec;
    ByteElementwise            e = s->args;
    for (uint32_t i = 0; i < s->program.n_args; i++)
        e.in[i].at = operand_at(&c->step->in[i], c->mem);
    e.y = operand_at(&c->step->out[0], c->mem);
    e.floats = operand_at(&c->step->out[1], c->mem);
    c->step->isa->byte_elementwise(&e, c->part);
}

static uint32_t byte_elementwise_step_tasks(const Step *s, const Version *v) {
    (void)v;
    return byte_elementwise_tasks(&((const ByteElementwiseStep *)s->spec)->args);
}

static const StepKind byte_elementwise_kind = {.name = "byte_elementwise",
                                               .run = byte_elementwise_step_run,
                                               .tasks = byte_elementwise_step_tasks};

Err bind_byte_elementwise(Binder *b, const IrLayer *l, Step *s) {
    const ByteElementwiseSpec *spec = l->spec;
    const IrValue             *out = &b->ir->values[l->out[0]];
    ByteElementwiseStep       *own = NULL;
    TRY(bind_alloc(b, sizeof *own, &own));
    CHECK(expr_emit(&spec->expr, &own->program));
    own->args.program = &own->program;
    own->args.to = spec->to;
    own->args.count = layout_bytes(&out->type, out->layout, b->ir->lanes);
    const size_t whole = own->args.count * sizeof(float);
    for (uint32_t i = 0; i < l->n_in; i++) {
        own->args.in[i].from = spec->from[i];
        own->args.in[i].kind = BYTE_ARG_BYTES;
        if (ir_type(b->ir, l->in[i])->dtype == DT_F32)
            own->args.in[i].kind = s->in[i].bytes == whole ? BYTE_ARG_FLOATS : BYTE_ARG_SCALAR;
    }
    s->kind = &byte_elementwise_kind;
    s->spec = own;
    return ERR_OK;
}
