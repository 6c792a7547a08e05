// Element-wise layers that are not epilogues, softmax and normalization.
#include "base/err.h"
#include "compile/bind/bind.h"
#include "compile/layout.h"
#include "compile/spec.h"
#include "kernel/elementwise.h"
#include "kernel/normalize.h"

typedef struct ElementwiseSpec {
    ElementwisePlan    map;
    ElementwiseProgram chain;
    Operand            args[EWISE_MAX_ARGS];
} ElementwiseSpec;

static void chain_run(const StepCall *c) {
    const ElementwiseSpec *s = c->step->spec;
    const float           *in[EWISE_MAX_ARGS];
    for (uint32_t i = 0; i < s->chain.n_args; i++) in[i] = operand_at(&s->args[i], c->mem);
    ewise_plan_run(&s->map, c->step->isa, in, operand_at(&c->step->out[0], c->mem), c->part);
}

static uint32_t chain_tasks(const Step *s, const Version *v) {
    (void)v;
    return ewise_plan_tasks(&((const ElementwiseSpec *)s->spec)->map);
}

static const StepKind elementwise_kind = {.name = "chain", .run = chain_run, .tasks = chain_tasks};

static void map_blocked(Binder *b, const IrLayer *l, ElementwiseSpec *s, const Tensor *out) {
    ElementwiseExtent extent[EWISE_MAX_ARGS];
    ImageDims         im = layout_image_dims(out);
    for (uint32_t i = 0; i < l->expr.n_args; i++) {
        ElementwiseMode mode;
        CHECK(spec_arg_mode(ir_type(b->ir, l->expr.args[i]), out, 1, &mode));
        extent[i] = mode == EWISE_CONTIGUOUS ? EWISE_PER_ELEMENT
                    : mode == EWISE_PER_LANE ? EWISE_PER_CHANNEL
                                             : EWISE_SINGLE;
    }
    ewise_plan_blocked(&s->map, &s->chain, b->isa, im.n, im.c, (int64_t)im.pixels, extent);
}

Err bind_elementwise(Binder *b, const IrLayer *l, Step *s) {
    ElementwiseSpec *spec = NULL;
    const Tensor    *out = ir_type(b->ir, l->out[0]), *args[EWISE_MAX_ARGS];
    TRY(bind_room(b, sizeof *spec, &spec));
    CHECK(expr_emit(&l->expr, &spec->chain));
    for (uint32_t i = 0; i < l->expr.n_args; i++) {
        args[i] = ir_type(b->ir, l->expr.args[i]);
        TRY(bind_operand(b, l->expr.args[i], &spec->args[i]));
    }
    if (b->ir->values[l->out[0]].layout == LAYOUT_BLOCKED)
        map_blocked(b, l, spec, out);
    else
        ewise_plan_broadcast(&spec->map, &spec->chain, b->isa, out, args);
    s->kind = &elementwise_kind;
    s->spec = spec;
    return ERR_OK;
}

// Softmax and normalization.

static void row_run(const StepCall *c) {
    const Operand *in = c->step->in;
    NormalizeArgs  d = {.x = operand_at(&in[0], c->mem),
                        .scale = operand_at(&in[1], c->mem),
                        .bias = operand_at(&in[2], c->mem),
                        .add = operand_at(&in[3], c->mem),
                        .add_bias = operand_at(&in[4], c->mem),
                        .y = operand_at(&c->step->out[0], c->mem)};
    c->step->isa->normalize(c->step->spec, &d, c->part);
}

static uint32_t row_tasks(const Step *s, const Version *v) {
    (void)v;
    return normalize_tasks(s->spec, s->isa);
}

static const StepKind normalize_kind = {.name = "row", .run = row_run, .tasks = row_tasks};

Err bind_normalize(Binder *b, const IrLayer *l, Step *s) {
    Normalize *own = NULL;
    TRY(bind_room(b, sizeof *own, &own));
    *own = *(const Normalize *)l->spec;
    s->spec = own;
    s->kind = &normalize_kind;
    return ERR_OK;
}
