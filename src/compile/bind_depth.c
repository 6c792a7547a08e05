// Depthwise convolutions.
#include "compile/bind.h"
#include "compile/cycles.h"
#include "compile/spec.h"
#include "kernel/depth.h"

typedef struct DepthStep {
    ConvShape    shape;
    Columns      columns;  // valid while a program is made
    const float *weights;
} DepthStep;

static void depth_step_run(const StepCall *c) {
    const DepthStep *s = c->step->spec;
    Depth            d = {.shape = s->shape,
                          .version = *c->version,
                          .x = operand_at(&c->step->in[0], c->space),
                          .weights = s->weights,
                          .y = operand_at(&c->step->out[0], c->space),
                          .finish = step_finish(c->step, c->space)};
    c->step->isa->depth_run(&d, c->part);
}

static uint32_t depth_step_tasks(const Step *s, const Version *v) {
    return depth_tasks(&((const DepthStep *)s->spec)->shape, s->isa, v);
}

static size_t depth_step_scratch(const Step *s, const Version *v) {
    return depth_scratch(&((const DepthStep *)s->spec)->shape, s->isa, v);
}

static uint32_t depth_step_versions(const Step *s, const CacheSizes *c, Version *out,
                                    uint32_t max) {
    return depth_versions(&((const DepthStep *)s->spec)->shape, s->isa, c, out, max);
}

static Traffic depth_step_traffic(const Step *s, const Version *v, const CacheSizes *c,
                                  uint32_t parts) {
    return depth_traffic(&((const DepthStep *)s->spec)->shape, s->isa, v, c, parts);
}

static double depth_step_cycles(const Step *s, const Version *v, uint32_t parts) {
    return cycles_depth(&((const DepthStep *)s->spec)->shape, s->isa, v, parts);
}

static Err depth_step_pack(const Step *s, const Version *v, Binder *b) {
    (void)v;  // one packing serves all versions
    DepthStep *d = s->spec;
    float     *packed = NULL;
    if (d->weights != NULL) return ERR_OK;
    TRY(bind_room(b, depth_weight_count(&d->shape, b->isa) * sizeof *packed, &packed));
    depth_pack(&d->shape, b->isa, bind_scaled(b, &d->columns, (size_t)d->shape.kh * d->shape.kw, 1),
               packed);
    d->weights = packed;
    return ERR_OK;
}

static void depth_step_unpack(const Step *s) {
    DepthStep *d = s->spec;
    d->weights = NULL;
}

static const Kind kind = {.name = "depthwise",
                          .run = depth_step_run,
                          .tasks = depth_step_tasks,
                          .scratch = depth_step_scratch,
                          .versions = depth_step_versions,
                          .traffic = depth_step_traffic,
                          .cycles = depth_step_cycles,
                          .pack = depth_step_pack,
                          .unpack = depth_step_unpack};

Err bind_depth(Binder *b, const IrLayer *l, Step *s) {
    const ConvSpec *spec = l->spec;
    DepthStep      *d = NULL;
    TRY(bind_room(b, sizeof *d, &d));
    *d = (DepthStep){.shape = spec->shape, .columns = spec->columns};
    TRY(bind_bias(b, &spec->columns, &s->finish.bias));
    s->kind = &kind;
    s->spec = d;
    s->weight = spec->columns.weight;
    s->macs = (double)spec->shape.n * spec->shape.oc * spec->shape.oh * spec->shape.ow *
              spec->shape.kh * spec->shape.kw;
    s->key = bind_conv_key(b, "depthwise", &spec->shape);
    depth_versions(&spec->shape, b->isa, &b->caches, s->versions, 1);
    return ERR_OK;
}
