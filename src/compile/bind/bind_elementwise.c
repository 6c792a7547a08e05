// Element-wise layers that are not epilogues, softmax and normalization.
#include "base/err.h"
#include "compile/bind/bind.h"
#include "compile/layout.h"
#include "compile/spec.h"
#include "kernel/elementwise.h"
#include "kernel/normalize.h"

typedef struct ElementwiseSpec {
    ElementwisePlan    plan;
    ElementwiseProgram program;
    Operand            args[EWISE_MAX_ARGS];
} ElementwiseSpec;

static void elementwise_step_run(const StepCall *c) {
    const ElementwiseSpec *s = c->step->spec;
    const float           *in[EWISE_MAX_ARGS];
    for (uint32_t i = 0; i < s->program.n_args; i++) in[i] = operand_at(&s->args[i], c->mem);
    ewise_plan_run(&s->plan, c->step->isa, in, operand_at(&c->step->out[0], c->mem), c->part);
}

static uint32_t elementwise_step_tasks(const Step *s, const Version *v) {
    (void)v;
    return ewise_plan_tasks(&((const ElementwiseSpec *)s->spec)->plan);
}

static const StepKind elementwise_kind = {
    .name = "elementwise", .run = elementwise_step_run, .tasks = elementwise_step_tasks};

static void plan_blocked(Binder *b, const IrLayer *l, ElementwiseSpec *s, const Tensor *out) {
    ElementwiseExtent extent[EWISE_MAX_ARGS];
    ImageDims         im = layout_image_dims(out);
    for (uint32_t i = 0; i < l->expr.n_args; i++) {
        ElementwiseMode mode;
        CHECK(spec_arg_mode(ir_type(b->ir, l->expr.args[i]), out, 1, &mode));
        extent[i] = mode == EWISE_CONTIGUOUS ? EWISE_PER_ELEMENT
                    : mode == EWISE_PER_LANE ? EWISE_PER_CHANNEL
                                             : EWISE_SINGLE;
    }
    ewise_plan_blocked(&s->plan, &s->program, b->isa, im.n, im.c, (int64_t)im.pixels, extent);
}

Err bind_elementwise(Binder *b, const IrLayer *l, Step *s) {
    ElementwiseSpec *spec = NULL;
    const Tensor    *out = ir_type(b->ir, l->out[0]), *args[EWISE_MAX_ARGS];
    TRY(bind_alloc(b, sizeof *spec, &spec));
    CHECK(expr_emit(&l->expr, &spec->program));
    for (uint32_t i = 0; i < l->expr.n_args; i++) {
        args[i] = ir_type(b->ir, l->expr.args[i]);
        TRY(bind_operand(b, l->expr.args[i], &spec->args[i]));
    }
    if (b->ir->values[l->out[0]].layout == LAYOUT_BLOCKED)
        plan_blocked(b, l, spec, out);
    else
        ewise_plan_broadcast(&spec->plan, &spec->program, b->isa, out, args);
    s->kind = &elementwise_kind;
    s->spec = spec;
    return ERR_OK;
}

// Softmax and normalization.

static void normalize_step_run(const StepCall *c) {
    const Operand *in = c->step->in;
    NormalizeArgs  d = {.x = operand_at(&in[0], c->mem),
                        .scale = operand_at(&in[1], c->mem),
                        .bias = operand_at(&in[2], c->mem),
                        .add = operand_at(&in[3], c->mem),
                        .add_bias = operand_at(&in[4], c->mem),
                        .y = operand_at(&c->step->out[0], c->mem)};
    c->step->isa->normalize(c->step->spec, &d, c->part);
}

static uint32_t normalize_step_tasks(const Step *s, const Version *v) {
    (void)v;
    return normalize_tasks(s->spec, s->isa);
}

static const StepKind normalize_kind = {
    .name = "normalize", .run = normalize_step_run, .tasks = normalize_step_tasks};

Err bind_normalize(Binder *b, const IrLayer *l, Step *s) {
    return bind_spec(b, l, &normalize_kind, sizeof(Normalize), s);
}
