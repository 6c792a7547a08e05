// Operators without a fast kernel run on the reference kernel inside the same program.
#include <stdio.h>
#include <string.h>

#include "compile/bind.h"
#include "compile/frame.h"
#include "compile/run.h"

static Err ref_out(const Step *s, Space *space, const OpCall *c, Tensor *out) {
    TRY(infer_node(c, out));
    for (uint32_t i = 0; i < s->n_out; i++) {
        if (s->out[i].kind == OPERAND_NONE) {
            TRY(tensor_room(&out[i], &space->ref_scratch));
            continue;
        }
        size_t bytes = 0;
        TRY(frame_promised(&s->out[i].type, &out[i]));
        TRY(tensor_measure(&out[i], &bytes));
        out[i].data = operand_at(&s->out[i], space);
        memset(out[i].data, 0, bytes);
    }
    return ERR_OK;
}

static Err ref_compute(const Step *s, Space *space) {
    Arena  *a = &space->ref_scratch;
    Tensor *values = arena_try_new(a, Tensor, s->n_in), *out = arena_try_new(a, Tensor, s->n_out);
    const Tensor **in = arena_try_new(a, const Tensor *, s->n_in);
    if (values == NULL || out == NULL || in == NULL)
        return err_set(ERR_LIMIT, "too many inputs or outputs");
    for (uint32_t i = 0; i < s->n_in; i++) {
        if (s->in[i].kind == OPERAND_NONE) continue;
        values[i] = s->in[i].type;
        values[i].data = operand_at(&s->in[i], space);
        in[i] = &values[i];
    }
    OpCall c = {.node = s->node, .in = in, .scratch = a, .keep = &space->ref_keep};
    TRY(ref_out(s, space, &c, out));
    Err e = run_find(s->node->op)(&c, out);
    return e == ERR_OK ? e : op_failed(s->node, e);
}

static void ref_run(const StepCall *c) {
    Space *space = c->space;
    if (c->part.index != 0 || space->failed != ERR_OK) return;
    size_t mark = space->ref_scratch.used;
    Err    e = ref_compute(c->step, space);
    arena_rewind(&space->ref_scratch, mark);
    if (e == ERR_OK) return;
    space->failed = e;
    snprintf(space->why, sizeof space->why, "%s", err_why());
}

static const Kind kind = {
    .name = "reference", .run = ref_run, .tasks = step_one_task, .rents = true};

Err bind_ref(Binder *b, const IrLayer *l, Step *s) {
    (void)b, (void)l;
    s->kind = &kind;
    return ERR_OK;
}
