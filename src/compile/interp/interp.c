#include "compile/interp/interp.h"

#include <string.h>

#include "base/err.h"
#include "compile/interp/frame.h"
#include "compile/interp/run_ops.h"

enum { SCRATCH_SHIFT = 36 };

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
    CHECK(m->live_bytes == 0);
    return e;
}

Err interp_run(const ShapedGraph *s, const Tensor *inputs, const InterpLimits *limits,
               Arena *out_arena, Tensor *outputs) {
    Arena       scratch, keep = {0};
    InterpState m = {.limits = *limits, .scratch = &scratch, .keep = &keep};
    size_t      most = (size_t)1 << SCRATCH_SHIFT;
    if (limits->max_bytes != 0 && limits->max_bytes < most) most = limits->max_bytes;
    TRY(arena_init(&scratch, most));
    Err e = arena_init(&keep, most);
    if (e == ERR_OK) e = run(&m, s, inputs, out_arena, outputs);
    arena_finish(&scratch);
    arena_finish(&keep);
    return e;
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
    for (int64_t i = 0; i < tensor_count(t); i++) {
        char *at = arena_try_new(keep, char, s[i].len + 1);
        if (at == NULL) return err_set(ERR_LIMIT, "no memory for a string of %zu bytes", s[i].len);
        if (s[i].len > 0) memcpy(at, s[i].at, s[i].len);
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
    if (bytes > 0) memcpy(out.data, t->data, bytes);
    if (t->dtype == DT_STR) return keep_strings(keep, &out, copy);
    if (t->dtype == DT_SEQ || t->dtype == DT_OPT)
        for (int64_t i = 0; i < tensor_count(t); i++)
            TRY(run_copy(keep, &((const Tensor *)t->data)[i], &((Tensor *)out.data)[i]));
    *copy = out;
    return ERR_OK;
}

Err run_control_flow(const OpCall *c, Tensor *out) { return infer_control_flow(c, out); }

Err run_same(const OpCall *c, Tensor *out) {
    size_t bytes = 0;
    TRY(tensor_measure(&out[0], &bytes));
    if (bytes > 0) memcpy(out[0].data, c->in[0]->data, bytes);
    return ERR_OK;
}
