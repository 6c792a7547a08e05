// GRU and LSTM.
#include "compile/bind.h"
#include "compile/spec.h"
#include "kernel/recur.h"

typedef struct RecurStep {
    RecurShape   shape;
    const float *packed;
} RecurStep;

static void recur_run(const StepCall *c) {
    const RecurStep *s = c->step->spec;
    const Operand   *in = c->step->in, *out = c->step->out;
    Recur            r = {.shape = s->shape,
                          .version = *c->version,
                          .packed = s->packed,
                          .x = operand_at(&in[0], c->space),
                          .h0 = operand_at(&in[1], c->space),
                          .c0 = operand_at(&in[2], c->space),
                          .y = operand_at(&out[0], c->space),
                          .yh = operand_at(&out[1], c->space),
                          .yc = operand_at(&out[2], c->space)};
    c->step->isa->recur(&r, c->part);
}

static uint32_t recur_step_tasks(const Step *s, const Version *v) {
    return recur_tasks(&((const RecurStep *)s->spec)->shape, s->isa, v);
}

static size_t recur_step_scratch(const Step *s, const Version *v) {
    return recur_scratch(&((const RecurStep *)s->spec)->shape, s->isa, v);
}

static uint32_t recur_step_versions(const Step *s, const CacheSizes *c, Version *out,
                                    uint32_t max) {
    return recur_versions(&((const RecurStep *)s->spec)->shape, s->isa, c, out, max);
}

static Traffic recur_step_traffic(const Step *s, const Version *v, const CacheSizes *c,
                                  uint32_t parts) {
    return recur_traffic(&((const RecurStep *)s->spec)->shape, s->isa, v, c, parts);
}

static const Kind kind = {.name = "recurrent",
                          .run = recur_run,
                          .tasks = recur_step_tasks,
                          .scratch = recur_step_scratch,
                          .versions = recur_step_versions,
                          .traffic = recur_step_traffic};

Err bind_recur(Binder *b, const IrLayer *l, Step *s) {
    const RecurSpec *spec = l->spec;
    RecurStep       *r = NULL;
    float           *packed = NULL;
    TRY(bind_room(b, sizeof *r, &r));
    TRY(bind_room(b, recur_pack_bytes(&spec->shape, b->isa), &packed));
    if (!b->ir->hollow) recur_pack(&spec->shape, &spec->weights, b->isa, packed);
    *r = (RecurStep){spec->shape, packed};
    const RecurShape *p = &r->shape;
    uint32_t          gates = p->kind == RECUR_LSTM ? 4 : 3;
    s->kind = &kind;
    s->spec = r;
    s->macs =
        (double)p->steps * p->batch * p->directions * gates * p->hidden * (p->input + p->hidden);
    s->key = arena_printf(b->keep, "recurrent kind%d t%u n%u i%u h%u d%u", (int)p->kind, p->steps,
                          p->batch, p->input, p->hidden, p->directions);
    recur_versions(p, b->isa, &b->caches, s->versions, 1);
    return ERR_OK;
}
