// Operators without a fast kernel run on the reference kernel as a step of the program.
#include <stdio.h>
#include <string.h>

#include "base/work_stop.h"
#include "compile/bind/bind.h"
#include "compile/interp/frame.h"
#include "compile/interp/run_ops.h"

static Err ref_out(const Step *s, RunMemory *mem, const OpCall *c, Tensor *out) {
    TRY(infer_node(c, out));
    for (uint32_t i = 0; i < s->n_out; i++) {
        if (s->out[i].kind == OPERAND_NONE) {
            TRY(tensor_alloc(&out[i], &mem->ref_scratch));
            continue;
        }
        size_t bytes = 0;
        TRY(frame_check_type(&s->out[i].type, &out[i]));
        TRY(tensor_measure(&out[i], &bytes));
        out[i].data = operand_at(&s->out[i], mem);
        memset(out[i].data, 0, bytes);
    }
    return ERR_OK;
}

static Err ref_compute(const Step *s, RunMemory *mem) {
    Arena  *a = &mem->ref_scratch;
    Tensor *values = arena_try_new(a, Tensor, s->n_in), *out = arena_try_new(a, Tensor, s->n_out);
    const Tensor **in = arena_try_new(a, const Tensor *, s->n_in);
    if (values == NULL || out == NULL || in == NULL)
        return err_set(ERR_LIMIT, "too many inputs or outputs");
    for (uint32_t i = 0; i < s->n_in; i++) {
        if (s->in[i].kind == OPERAND_NONE) continue;
        values[i] = s->in[i].type;
        values[i].data = operand_at(&s->in[i], mem);
        in[i] = &values[i];
    }
    OpCall c = {.node = s->node, .in = in, .scratch = a, .keep = &mem->ref_keep};
    Err    e = ref_out(s, mem, &c, out);
    if (e == ERR_OK) {
        e = run_op(s->node->op)(&c, out);
        if (e != ERR_OK) e = op_failed(s->node, e);
    }
    return e == ERR_LIMIT ? run_explain_limit(&c, &mem->limit) : e;
}

static void ref_run(const StepCall *c) {
    RunMemory *mem = c->mem;
    if (c->part.index != 0 || mem->failed != ERR_OK) return;
    static const InterpLimits none = {0};
    size_t                    mark = mem->ref_scratch.used;
    Err                       e = run_memory_charge(mem, &none);
    WorkFlag                 *before = work_stop_watch(run_memory_stop_flag(mem));
    if (e == ERR_OK) e = ref_compute(c->step, mem);
    if (e == ERR_OK) e = work_stop_check();  // the result of a stopped kernel is unfinished
    (void)work_stop_watch(before);
    arena_rewind(&mem->ref_scratch, mark);
    if (mem->ref_scratch.charged > 0) arena_shrink(&mem->ref_scratch, mark);
    run_memory_settle(mem);
    if (e == ERR_OK) return;
    mem->failed = e;
    snprintf(mem->why, sizeof mem->why, "%s", err_why());
}

static const StepKind kind = {.name = "reference", .run = ref_run, .tasks = step_one_task};

Err bind_ref(Binder *b, const IrLayer *l, Step *s) {
    (void)b, (void)l;
    s->kind = &kind;
    return ERR_OK;
}
