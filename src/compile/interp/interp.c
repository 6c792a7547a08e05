#include "compile/interp/interp.h"

#include <string.h>

#include "base/err.h"
#include "base/work_stop.h"
#include "compile/interp/frame.h"
#include "compile/interp/run_ops.h"

enum { ARENA_FIRST = 1 << 20 };

static const size_t ARENA_MOST = (size_t)1 << 36;

Err interp_eval(const OpCall *c, Tensor *out) { return run_op(c->node->op)(c, out); }

static Err run(InterpState *m, const ShapedGraph *s, const Tensor *inputs, Arena *a,
               Tensor *outputs) {
    Frame f;
    Err   e = frame_init(&f, m, s);
    for (uint32_t i = 0; e == ERR_OK && i < s->graph->n_inputs; i++)
        frame_set(&f, s->graph->inputs[i], (ValueSlot){.t = inputs[i]});
    if (e == ERR_OK) e = frame_run(&f, NULL);
    for (uint32_t i = 0; e == ERR_OK && i < s->graph->n_outputs; i++)
        e = frame_copy_output(&f, i, a, &outputs[i]);
    frame_finish(&f);
    interp_give(m, value_pool_trim(m->pool));
    CHECK(m->live_bytes == 0);
    return e;
}

static Err run_in_arenas(InterpState *m, const ShapedGraph *s, const Tensor *inputs, Arena *a,
                         Tensor *outputs) {
    TRY(arena_init_growing(m->scratch, ARENA_FIRST, ARENA_MOST));
    TRY(arena_init_growing(m->keep, ARENA_FIRST, ARENA_MOST));
    CHECK(arena_charge(m->scratch, m->budget) && arena_charge(m->keep, m->budget));
    return run(m, s, inputs, a, outputs);
}

Err interp_run(const ShapedGraph *s, const Tensor *inputs, const InterpLimits *limits,
               Arena *out_arena, Tensor *outputs) {
    Arena       scratch = {0}, keep = {0};
    Budget      budget = {.setting = limits->setting, .most = limits->max_bytes};
    ValuePool   pool = {0};
    InterpState m = {
        .limits = *limits, .budget = &budget, .scratch = &scratch, .keep = &keep, .pool = &pool};
    Err e = run_in_arenas(&m, s, inputs, out_arena, outputs);
    arena_finish(&scratch);
    arena_finish(&keep);
    budget_give(&budget, m.paid_bytes);
    CHECK(budget_used(&budget) == 0);
    return e;
}

Err run_over_budget(const Budget *b, size_t bytes) {
    const Budget *full = budget_short(b, bytes);
    if (full == NULL) return err_set(ERR_LIMIT, "no memory for %zu bytes", bytes);
    if (full->setting == NULL)
        return err_set(ERR_LIMIT, "needs %zu more bytes; %zu of the allowed %zu are in use", bytes,
                       budget_used(full), full->most);
    return err_set(ERR_LIMIT,
                   "needs %zu more bytes; %zu of the %zu that `%s` allows are in use: raise `%s`, "
                   "or send inputs that need less",
                   bytes, budget_used(full), full->most, full->setting, full->setting);
}

Err run_explain_limit(const OpCall *c, const Budget *b) {
    size_t bytes = c->scratch->refused > c->keep->refused ? c->scratch->refused : c->keep->refused;
    return bytes == 0 ? ERR_LIMIT : op_failed(c->node, run_over_budget(b, bytes));
}

static RunFn *const table[OP_COUNT] = {
#define XD(id, name, domain, since, in_min, in_max, out_min, out_max, family)                      \
    [OP_##id] = run_##family,
#include "model/op.def"
#undef XD
};

RunFn *run_op(OpId op) { return table[op]; }

static Err keep_strings(Arena *keep, Tensor *t, Tensor *copy) {
    Str *s = t->data;
    TRY(work_stop_check());  // an unfinished copy has strings without an address
    for (int64_t i = 0; i < tensor_count(t); i++) {
        TRY(work_stop_check());
        char *at = arena_try_new(keep, char, s[i].len + 1);
        if (at == NULL) return err_set(ERR_LIMIT, "no memory for a string of %zu bytes", s[i].len);
        work_copy(at, s[i].at, s[i].len);
        s[i].at = at;
    }
    *copy = *t;
    return ERR_OK;
}

Err run_copy(Arena *keep, const Tensor *t, Tensor *copy) {
    size_t bytes = 0;
    TRY(tensor_measure(t, &bytes));
    Tensor out = *t;
    TRY(tensor_alloc(&out, keep));
    work_copy(out.data, t->data, bytes);
    if (t->dtype == DT_STR) return keep_strings(keep, &out, copy);
    if (t->dtype == DT_SEQ || t->dtype == DT_OPT)
        for (int64_t i = 0; i < tensor_count(t) && !work_stopped(); i++)
            TRY(run_copy(keep, &((const Tensor *)t->data)[i], &((Tensor *)out.data)[i]));
    *copy = out;
    return work_stop_check();
}

Err run_control_flow(const OpCall *c, Tensor *out) { return infer_control_flow(c, out); }

Err run_same(const OpCall *c, Tensor *out) {
    size_t bytes = 0;
    TRY(tensor_measure(&out[0], &bytes));
    work_copy(out[0].data, c->in[0]->data, bytes);
    return ERR_OK;
}
