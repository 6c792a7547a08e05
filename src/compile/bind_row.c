// Softmax and norms.
#include "compile/bind.h"
#include "kernel/rowwise.h"

static void row_run(const StepCall *c) {
    const Operand *in = c->step->in;
    RowwiseData    d = {.x = operand_at(&in[0], c->space),
                        .scale = operand_at(&in[1], c->space),
                        .bias = operand_at(&in[2], c->space),
                        .add = operand_at(&in[3], c->space),
                        .add_bias = operand_at(&in[4], c->space),
                        .y = operand_at(&c->step->out[0], c->space)};
    c->step->isa->rowwise(c->step->spec, &d, c->part);
}

static uint32_t row_tasks(const Step *s, const Version *v) {
    (void)v;
    return rowwise_tasks(s->spec, s->isa);
}

static const Kind kind = {.name = "row", .run = row_run, .tasks = row_tasks};

Err bind_row(Binder *b, const IrLayer *l, Step *s) {
    Rowwise *own = NULL;
    TRY(bind_room(b, sizeof *own, &own));
    *own = *(const Rowwise *)l->spec;
    s->spec = own;
    s->kind = &kind;
    return ERR_OK;
}
