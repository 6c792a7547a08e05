// Attention: both products and the softmax between them.
#include "compile/bind.h"
#include "compile/cycles.h"
#include "kernel/attend.h"

static void attend_run(const StepCall *c) {
    const Operand *in = c->step->in;
    Attend         a = {.shape = *(const AttendShape *)c->step->spec,
                        .version = *c->version,
                        .q = operand_at(&in[0], c->space),
                        .k = operand_at(&in[1], c->space),
                        .v = operand_at(&in[2], c->space),
                        .mask = operand_at(&in[3], c->space),
                        .y = operand_at(&c->step->out[0], c->space)};
    c->step->isa->attend(&a, c->part);
}

static uint32_t attend_step_tasks(const Step *s, const Version *v) {
    return attend_tasks(s->spec, s->isa, v);
}

static size_t attend_step_scratch(const Step *s, const Version *v) {
    return attend_scratch(s->spec, s->isa, v);
}

static uint32_t attend_step_versions(const Step *s, const CacheSizes *c, Version *out,
                                     uint32_t max) {
    return attend_versions(s->spec, s->isa, c, out, max);
}

static Traffic attend_step_traffic(const Step *s, const Version *v, const CacheSizes *c,
                                   uint32_t parts) {
    return attend_traffic(s->spec, s->isa, v, c, parts);
}

static double attend_step_cycles(const Step *s, const Version *v, uint32_t parts) {
    return cycles_attend(s->spec, s->isa, v, parts);
}

static const Kind kind = {.name = "attention",
                          .run = attend_run,
                          .tasks = attend_step_tasks,
                          .scratch = attend_step_scratch,
                          .versions = attend_step_versions,
                          .traffic = attend_step_traffic,
                          .cycles = attend_step_cycles};

Err bind_attend(Binder *b, const IrLayer *l, Step *s) {
    AttendShape *a = NULL;
    TRY(bind_room(b, sizeof *a, &a));
    *a = *(const AttendShape *)l->spec;
    s->spec = a;
    s->kind = &kind;
    s->macs = (double)a->batch * a->heads * a->queries * a->keys * ((double)a->size + a->v_size);
    s->key = arena_printf(
        b->keep, "attend b%u h%u/%u q%u k%u size%u/%u steps%zu,%zu,%zu,%zu turned%d mask%d",
        a->batch, a->heads, a->kv_heads, a->queries, a->keys, a->size, a->v_size, a->q.step,
        a->k.step, a->v.step, a->y.step, a->k_turned, l->in[3] != IR_NONE);
    attend_versions(a, b->isa, &b->caches, s->versions, 1);
    return ERR_OK;
}
