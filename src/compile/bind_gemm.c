// Products with constant columns, and products of two computed tensors.
#include <inttypes.h>

#include "compile/bind.h"
#include "compile/spec.h"
#include "kernel/gemm.h"

typedef struct GemmStep {
    GemmShape    shape;
    const float *weights;  // packed; NULL when both sides are computed
} GemmStep;

static void gemm_run(const StepCall *c) {
    const GemmStep *s = c->step->spec;
    Gemm            g = {.shape = s->shape,
                         .version = *c->version,
                         .a = operand_at(&c->step->in[0], c->space),
                         .b = s->weights,
                         .y = operand_at(&c->step->out[0], c->space),
                         .finish = step_finish(c->step, c->space)};
    if (s->weights == NULL) g.b = operand_at(&c->step->in[1], c->space);
    c->step->isa->gemm(&g, c->part);
}

static uint32_t gemm_step_tasks(const Step *s, const Version *v) {
    return gemm_tasks(&((const GemmStep *)s->spec)->shape, s->isa, v);
}

static size_t gemm_step_scratch(const Step *s, const Version *v) {
    return gemm_scratch(&((const GemmStep *)s->spec)->shape, s->isa, v);
}

static uint32_t gemm_step_versions(const Step *s, const CacheSizes *c, Version *out, uint32_t max) {
    return gemm_versions(&((const GemmStep *)s->spec)->shape, s->isa, c, out, max);
}

static Traffic gemm_step_traffic(const Step *s, const Version *v, const CacheSizes *c,
                                 uint32_t parts) {
    return gemm_traffic(&((const GemmStep *)s->spec)->shape, s->isa, v, c, parts);
}

static const Kind gemm_kind = {.name = "gemm",
                               .run = gemm_run,
                               .tasks = gemm_step_tasks,
                               .scratch = gemm_step_scratch,
                               .versions = gemm_step_versions,
                               .traffic = gemm_step_traffic};

static void gemm_ready(Binder *b, Step *s, const GemmStep *g) {
    const GemmShape *p = &g->shape;
    s->kind = &gemm_kind;
    s->spec = (void *)(uintptr_t)g;
    s->macs = (double)p->m * p->n * p->k * gemm_places(p);
    s->key = arena_printf(b->keep, "%s m%u n%u k%u stack%u turned%d%d",
                          g->weights != NULL ? "gemm" : "matmul", p->m, p->n, p->k, gemm_places(p),
                          p->a.turned, p->b.turned);
    gemm_versions(p, b->isa, &b->caches, s->versions, 1);
}

Err bind_gemm(Binder *b, const IrLayer *l, Step *s) {
    const GemmSpec *spec = l->spec;
    uint32_t        n = (uint32_t)spec->n, k = (uint32_t)spec->k;
    GemmStep       *g = NULL;
    float          *packed = NULL;
    TRY(bind_room(b, sizeof *g, &g));
    TRY(bind_room(b, gemm_pack_bytes(n, k, b->isa), &packed));
    const float *w = spec->transposed ? bind_scaled(b, &spec->columns, k, 1)
                                      : bind_scaled(b, &spec->columns, 1, k);
    gemm_pack(n, k, w, spec->transposed ? k : n, spec->transposed, spec->alpha, b->isa, packed);
    *g = (GemmStep){gemm_shape((uint32_t)spec->m, n, k), packed};
    TRY(bind_bias(b, &spec->columns, &s->finish.bias));
    gemm_ready(b, s, g);
    return ERR_OK;
}

Err bind_matmul(Binder *b, const IrLayer *l, Step *s) {
    GemmStep *g = NULL;
    TRY(bind_room(b, sizeof *g, &g));
    g->shape = *(const GemmShape *)l->spec;
    gemm_ready(b, s, g);
    return ERR_OK;
}
