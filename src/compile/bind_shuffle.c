// Strided copies, rows picked by indexes, reductions.
#include <stdio.h>

#include "base/number.h"
#include "compile/bind.h"
#include "kernel/fold_axis.h"
#include "kernel/shuffle.h"

static void move_run(const StepCall *c) {
    Shuffle s = *(const Shuffle *)c->step->spec;
    s.from = operand_at(&c->step->in[0], c->space);
    s.to = operand_at(&c->step->out[0], c->space);
    c->step->isa->shuffle_run(&s, c->part);
}

static uint32_t move_tasks(const Step *s, const Version *v) {
    (void)v;
    return shuffle_tasks(s->spec);
}

static const Kind move_kind = {.name = "move", .run = move_run, .tasks = move_tasks};

Err bind_move(Binder *b, const IrLayer *l, Step *s) {
    Shuffle *own = NULL;
    TRY(bind_room(b, sizeof *own, &own));
    *own = *(const Shuffle *)l->spec;
    s->spec = own;
    s->kind = &move_kind;
    return ERR_OK;
}

// Indexes that were computed may be anything: the first that does not fit ends the run.
static bool indexes_fit(const StepCall *c, const ShufflePick *p) {
    int64_t size = (int64_t)p->axis;
    for (size_t i = 0; i < p->count; i++) {
        int64_t k = p->wide ? ((const int64_t *)p->index)[i] : ((const int32_t *)p->index)[i];
        if (k >= -size && k < size) continue;
        if (c->part.index == 0) {
            c->space->failed =
                op_failed(c->step->node, err_set(ERR_INVALID, "index %lld is outside of %lld",
                                                 (long long)k, (long long)size));
            (void)snprintf(c->space->why, sizeof c->space->why, "%s", err_why());
        }
        return false;
    }
    return true;
}

static void pick_run(const StepCall *c) {
    ShufflePick p = *(const ShufflePick *)c->step->spec;
    p.index = operand_at(&c->step->in[1], c->space);
    p.from = operand_at(&c->step->in[0], c->space);
    p.to = operand_at(&c->step->out[0], c->space);
    if (indexes_fit(c, &p)) shuffle_pick(&p, c->part);
}

static uint32_t pick_tasks(const Step *s, const Version *v) {
    (void)v;
    return shuffle_pick_tasks(s->spec);
}

static const Kind pick_kind = {.name = "pick", .run = pick_run, .tasks = pick_tasks};

Err bind_pick(Binder *b, const IrLayer *l, Step *s) {
    ShufflePick *own = NULL;
    TRY(bind_room(b, sizeof *own, &own));
    *own = *(const ShufflePick *)l->spec;
    s->spec = own;
    s->kind = &pick_kind;
    return ERR_OK;
}

static void fold_run(const StepCall *c) {
    c->step->isa->fold_axis(c->step->spec, operand_at(&c->step->in[0], c->space),
                            operand_at(&c->step->out[0], c->space), c->part);
}

static uint32_t fold_tasks(const Step *s, const Version *v) {
    (void)v;
    return fold_axis_tasks(s->spec, s->isa);
}

static const Kind fold_kind = {.name = "fold", .run = fold_run, .tasks = fold_tasks};

Err bind_fold(Binder *b, const IrLayer *l, Step *s) {
    FoldAxis *own = NULL;
    TRY(bind_room(b, sizeof *own, &own));
    *own = *(const FoldAxis *)l->spec;
    s->spec = own;
    s->kind = &fold_kind;
    return ERR_OK;
}
