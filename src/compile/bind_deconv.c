// Transposed convolutions.
#include "compile/bind.h"
#include "compile/spec.h"
#include "kernel/deconv.h"

typedef struct DeconvStep {
    ConvShape    shape;
    Columns      columns;  // valid while a program is made
    const float *weights;
} DeconvStep;

static void deconv_step_run(const StepCall *c) {
    const DeconvStep *s = c->step->spec;
    Deconv            d = {.shape = s->shape,
                           .version = *c->version,
                           .finish = step_finish(c->step, c->space),
                           .x = operand_at(&c->step->in[0], c->space),
                           .weights = s->weights,
                           .y = operand_at(&c->step->out[0], c->space)};
    c->step->isa->deconv(&d, c->part);
}

static uint32_t deconv_step_tasks(const Step *s, const Version *v) {
    return deconv_tasks(&((const DeconvStep *)s->spec)->shape, s->isa, v);
}

static size_t deconv_step_scratch(const Step *s, const Version *v) {
    return deconv_scratch(&((const DeconvStep *)s->spec)->shape, s->isa, v);
}

static uint32_t deconv_step_versions(const Step *s, const CacheSizes *c, Version *out,
                                     uint32_t max) {
    return deconv_versions(&((const DeconvStep *)s->spec)->shape, s->isa, c, out, max);
}

static Traffic deconv_step_traffic(const Step *s, const Version *v, const CacheSizes *c,
                                   uint32_t parts) {
    return deconv_traffic(&((const DeconvStep *)s->spec)->shape, s->isa, v, c, parts);
}

static Err deconv_step_pack(const Step *s, const Version *v, Binder *b) {
    (void)v;  // one packing serves all versions
    DeconvStep      *d = s->spec;
    const ConvShape *p = &d->shape;
    float           *packed = NULL;
    if (d->weights != NULL) return ERR_OK;
    TRY(bind_room(b, deconv_pack_bytes(p, b->isa), &packed));
    deconv_pack(p, b->isa, bind_scaled(b, &d->columns, (size_t)p->kh * p->kw, p->ic), packed);
    d->weights = packed;
    return ERR_OK;
}

static void deconv_step_unpack(const Step *s) {
    DeconvStep *d = s->spec;
    d->weights = NULL;
}

static const Kind kind = {.name = "deconv",
                          .run = deconv_step_run,
                          .tasks = deconv_step_tasks,
                          .scratch = deconv_step_scratch,
                          .versions = deconv_step_versions,
                          .traffic = deconv_step_traffic,
                          .pack = deconv_step_pack,
                          .unpack = deconv_step_unpack};

Err bind_deconv(Binder *b, const IrLayer *l, Step *s) {
    const ConvSpec  *spec = l->spec;
    const ConvShape *p = &spec->shape;
    DeconvStep      *d = NULL;
    TRY(bind_room(b, sizeof *d, &d));
    *d = (DeconvStep){.shape = *p, .columns = spec->columns};
    TRY(bind_bias(b, &spec->columns, &s->finish.bias));
    s->kind = &kind;
    s->spec = d;
    s->weight = spec->columns.weight;
    s->macs = (double)p->n * p->oc * p->kh * p->kw * p->ic * p->ih * p->iw;
    s->key = bind_conv_key(b, "deconv", p);
    deconv_versions(p, b->isa, &b->caches, s->versions, 1);
    return ERR_OK;
}
