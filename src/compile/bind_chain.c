// Element-wise layers that no heavy layer took in.
#include "base/check.h"
#include "compile/bind.h"
#include "compile/layout.h"
#include "compile/spec.h"
#include "kernel/chain_map.h"

typedef struct ChainSpec {
    ChainMap map;
    Chain    chain;
    Operand  args[CHAIN_MAX_ARGS];
} ChainSpec;

static void chain_run(const StepCall *c) {
    const ChainSpec *s = c->step->spec;
    const float     *in[CHAIN_MAX_ARGS];
    for (uint32_t i = 0; i < s->chain.n_args; i++) in[i] = operand_at(&s->args[i], c->space);
    chain_map_run(&s->map, c->step->isa, in, operand_at(&c->step->out[0], c->space), c->part);
}

static uint32_t chain_tasks(const Step *s, const Version *v) {
    (void)v;
    return chain_map_tasks(&((const ChainSpec *)s->spec)->map);
}

static const Kind kind = {.name = "chain", .run = chain_run, .tasks = chain_tasks};

static void map_blocked(Binder *b, const IrLayer *l, ChainSpec *s, const Tensor *out) {
    ChainExtent extent[CHAIN_MAX_ARGS];
    Images      im = layout_images(out);
    for (uint32_t i = 0; i < l->expr.n_args; i++) {
        ChainMode mode;
        CHECK(spec_arg_mode(ir_type(b->ir, l->expr.args[i]), out, 1, &mode));
        extent[i] = mode == CHAIN_EACH    ? CHAIN_SAME
                    : mode == CHAIN_LANES ? CHAIN_CHANNELS
                                          : CHAIN_NUMBER;
    }
    chain_map_blocked(&s->map, &s->chain, b->isa, im.n, im.c, (int64_t)im.pixels, extent);
}

Err bind_chain(Binder *b, const IrLayer *l, Step *s) {
    ChainSpec    *spec = NULL;
    const Tensor *out = ir_type(b->ir, l->out[0]), *args[CHAIN_MAX_ARGS];
    TRY(bind_room(b, sizeof *spec, &spec));
    CHECK(expr_emit(&l->expr, &spec->chain));
    for (uint32_t i = 0; i < l->expr.n_args; i++) {
        args[i] = ir_type(b->ir, l->expr.args[i]);
        TRY(bind_operand(b, l->expr.args[i], &spec->args[i]));
    }
    if (b->ir->values[l->out[0]].layout == LAYOUT_BLOCKED)
        map_blocked(b, l, spec, out);
    else
        chain_map_plain(&spec->map, &spec->chain, b->isa, out, args);
    s->kind = &kind;
    s->spec = spec;
    return ERR_OK;
}
