// Pools and resizing.
#include <string.h>

#include "compile/bind.h"
#include "kernel/pool.h"
#include "kernel/resample.h"

static void pool_step_run(const StepCall *c) {
    Pool p = *(const Pool *)c->step->spec;
    p.x = operand_at(&c->step->in[0], c->space);
    p.y = operand_at(&c->step->out[0], c->space);
    c->step->isa->pool_run(&p, c->part);
}

static uint32_t pool_step_tasks(const Step *s, const Version *v) {
    (void)v;
    return pool_tasks(s->spec, s->isa);
}

static size_t pool_step_scratch(const Step *s, const Version *v) {
    (void)v;
    return pool_scratch(s->spec, s->isa);
}

static const Kind kind = {
    .name = "pool", .run = pool_step_run, .tasks = pool_step_tasks, .scratch = pool_step_scratch};

Err bind_pool(Binder *b, const IrLayer *l, Step *s) {
    Pool *own = NULL;
    TRY(bind_room(b, sizeof *own, &own));
    *own = *(const Pool *)l->spec;
    own->plain = b->ir->values[l->out[0]].layout == LAYOUT_PLAIN;
    s->spec = own;
    s->kind = &kind;
    return ERR_OK;
}

static void resize_run(const StepCall *c) {
    Resample r = *(const Resample *)c->step->spec;
    r.x = operand_at(&c->step->in[0], c->space);
    r.y = operand_at(&c->step->out[0], c->space);
    c->step->isa->resample_run(&r, c->part);
}

static uint32_t resize_tasks(const Step *s, const Version *v) {
    (void)v;
    return resample_tasks(s->spec, s->isa);
}

static size_t resize_scratch(const Step *s, const Version *v) {
    (void)v;
    return resample_scratch(s->spec, s->isa);
}

static const Kind resize_kind = {
    .name = "resize", .run = resize_run, .tasks = resize_tasks, .scratch = resize_scratch};

static Err keep_taps(Binder *b, const ResampleTap **taps, uint32_t n) {
    ResampleTap *own = NULL;
    TRY(bind_room(b, n * sizeof *own, &own));
    memcpy(own, *taps, n * sizeof *own);
    *taps = own;
    return ERR_OK;
}

Err bind_resize(Binder *b, const IrLayer *l, Step *s) {
    Resample *own = NULL;
    TRY(bind_room(b, sizeof *own, &own));
    *own = *(const Resample *)l->spec;
    own->plain = b->ir->values[l->out[0]].layout == LAYOUT_PLAIN;
    TRY(keep_taps(b, &own->rows, own->oh));
    TRY(keep_taps(b, &own->columns, own->ow));
    s->spec = own;
    s->kind = &resize_kind;
    return ERR_OK;
}
