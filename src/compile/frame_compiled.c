// Branches of If that were compiled run as programs of their own inside the interpreted rest.
#include <string.h>

#include "base/check.h"
#include "compile/frame.h"
#include "compile/program.h"

static const Program *find(const Frame *f, const Graph *body, Space **space) {
    const Program *p = f->machine->program;
    for (uint32_t i = 0; p != NULL && i < p->n_bodies; i++)
        if (p->bodies[i].special->graph == body) {
            *space = &f->machine->space->bodies[i];
            return &p->bodies[i];
        }
    return NULL;
}

// Sequences, optionals and texts have owners inside the interpreter.
static bool plain(const Tensor *t) {
    return t->dtype != DT_SEQ && t->dtype != DT_OPT && t->dtype != DT_STR;
}

bool frame_compiled(const Frame *f, const Graph *body) {
    Space         *space = NULL;
    const Program *p = find(f, body, &space);
    if (p == NULL) return false;
    for (uint32_t i = 0; i < body->n_outputs; i++) {
        const Tensor *t = &p->special->values[body->outputs[i]];
        if (t->dtype == DT_NONE || !plain(t)) return false;
    }
    for (uint32_t i = 0; i < body->n_captures; i++) {
        const Tensor *now = &f->slots[body->captures[i].outer].t;
        const Tensor *was = &p->special->values[body->captures[i].inner];
        if (!tensor_known(was) || now->data == NULL || now->dtype != was->dtype ||
            !tensor_same_shape(now, was) || !plain(now))
            return false;
    }
    return true;
}

static Err own(Machine *m, const Tensor *t, Slot *out) {
    size_t bytes = 0;
    out->t = *t;
    TRY(slot_alloc(m, out));
    TRY(tensor_measure(t, &bytes));
    if (bytes > 0) memcpy(out->t.data, t->data, bytes);
    return ERR_OK;
}

Err frame_run_compiled(Frame *f, const Graph *body, Slot *out) {
    Space         *space = NULL;
    const Program *p = find(f, body, &space);
    Arena         *a = &f->machine->scratch;
    Tensor        *in = arena_try_new(a, Tensor, body->n_inputs + body->n_captures);
    Tensor        *results = arena_try_new(a, Tensor, body->n_outputs);
    if (in == NULL || results == NULL) return err_set(ERR_LIMIT, "too many values of a branch");
    for (uint32_t i = 0; i < body->n_captures; i++)
        in[body->n_inputs + i] = f->slots[body->captures[i].outer].t;
    CHECK(p != NULL && space != NULL);  // frame_compiled said so
    space->outer = f->machine->space;
    TRY(program_run(p, space, NULL, in, NULL, results));
    Err e = ERR_OK;
    for (uint32_t i = 0; e == ERR_OK && i < body->n_outputs; i++)
        e = own(f->machine, &results[i], &out[i]);
    return e;
}
