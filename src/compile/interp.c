#include "compile/interp.h"

#include <string.h>

#include "base/check.h"
#include "compile/frame.h"
#include "compile/run.h"

enum { SCRATCH_SHIFT = 36 };

Err interp_eval(const OpCall *c, Tensor *out) { return run_find(c->node->op)(c, out); }

// A deep copy, so that outputs outlive the run.
static Err copy_out(const Tensor *t, Arena *a, Tensor *copy) {
    OpCall c = {.keep = a};
    return run_keep(&c, t, copy);
}

static Err collect(const Frame *f, Arena *a, Tensor *outputs) {
    const Graph *g = f->special->graph;
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const Tensor *t = &f->slots[g->outputs[i]].t;
        if (t->data == NULL)
            return err_set(ERR_INVALID, "output '%s' was not computed",
                           g->values[g->outputs[i]].name);
        TRY(copy_out(t, a, &outputs[i]));
    }
    return ERR_OK;
}

static Err run(Machine *m, const Special *s, const Tensor *inputs, Arena *a, Tensor *outputs) {
    Frame f;
    Err   e = frame_init(&f, m, s);
    for (uint32_t i = 0; e == ERR_OK && i < s->graph->n_inputs; i++)
        frame_set(&f, s->graph->inputs[i], (Slot){.t = inputs[i]});
    if (e == ERR_OK) e = frame_run(&f, NULL);
    if (e == ERR_OK) e = collect(&f, a, outputs);
    frame_finish(&f);
    CHECK(m->live_bytes == 0);
    return e;
}

Err interp_run(const Special *s, const Tensor *inputs, const InterpLimits *limits, Arena *out_arena,
               Tensor *outputs) {
    Machine m = {.limits = *limits};
    size_t  most = (size_t)1 << SCRATCH_SHIFT;
    if (limits->max_bytes != 0 && limits->max_bytes < most) most = limits->max_bytes;
    TRY(arena_init(&m.scratch, most));
    Err e = arena_init(&m.keep, most);
    if (e == ERR_OK) e = run(&m, s, inputs, out_arena, outputs);
    arena_finish(&m.scratch);
    arena_finish(&m.keep);
    return e;
}
