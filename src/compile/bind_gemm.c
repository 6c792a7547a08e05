// Products with constant columns, and products of two computed tensors.
#include <inttypes.h>

#include "compile/bind.h"
#include "compile/cycles.h"
#include "compile/spec.h"
#include "kernel/gemm.h"

typedef struct GemmStep {
    GemmShape       shape;
    const GemmSpec *spec;     // NULL when both sides are computed; valid while a program is made
    const float    *weights;  // packed
} GemmStep;

static void gemm_run(const StepCall *c) {
    const GemmStep *s = c->step->spec;
    Gemm            g = {.shape = s->shape,
                         .version = *c->version,
                         .a = operand_at(&c->step->in[0], c->space),
                         .b = s->weights,
                         .y = operand_at(&c->step->out[0], c->space),
                         .finish = step_finish(c->step, c->space)};
    if (s->spec == NULL) g.b = operand_at(&c->step->in[1], c->space);
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

static double gemm_step_cycles(const Step *s, const Version *v, uint32_t parts) {
    return cycles_gemm(&((const GemmStep *)s->spec)->shape, s->isa, v, parts);
}

static Err gemm_step_pack(const Step *s, const Version *v, Binder *b) {
    (void)v;  // one packing serves all versions
    GemmStep *g = s->spec;
    if (g->spec == NULL || g->weights != NULL) return ERR_OK;
    const GemmSpec *spec = g->spec;
    uint32_t        n = g->shape.n, k = g->shape.k;
    float          *packed = NULL;
    TRY(bind_room(b, gemm_pack_bytes(n, k, b->isa), &packed));
    const float *w = spec->transposed ? bind_scaled(b, &spec->columns, k, 1)
                                      : bind_scaled(b, &spec->columns, 1, k);
    gemm_pack(n, k, w, spec->transposed ? k : n, spec->transposed, spec->alpha, b->isa, packed);
    g->weights = packed;
    return ERR_OK;
}

static void gemm_step_unpack(const Step *s) {
    GemmStep *g = s->spec;
    g->weights = NULL;
}

static const Kind gemm_kind = {.name = "gemm",
                               .run = gemm_run,
                               .tasks = gemm_step_tasks,
                               .scratch = gemm_step_scratch,
                               .versions = gemm_step_versions,
                               .traffic = gemm_step_traffic,
                               .cycles = gemm_step_cycles,
                               .pack = gemm_step_pack,
                               .unpack = gemm_step_unpack};

static void gemm_ready(Binder *b, Step *s, GemmStep *g) {
    const GemmShape *p = &g->shape;
    s->kind = &gemm_kind;
    s->spec = g;
    s->macs = (double)p->m * p->n * p->k * gemm_places(p);
    s->key = arena_printf(b->keep, "%s m%u n%u k%u stack%u turned%d%d",
                          g->spec != NULL ? "gemm" : "matmul", p->m, p->n, p->k, gemm_places(p),
                          p->a.turned, p->b.turned);
    gemm_versions(p, b->isa, &b->caches, s->versions, 1);
}

Err bind_gemm(Binder *b, const IrLayer *l, Step *s) {
    const GemmSpec *spec = l->spec;
    GemmStep       *g = NULL;
    TRY(bind_room(b, sizeof *g, &g));
    *g =
        (GemmStep){gemm_shape((uint32_t)spec->m, (uint32_t)spec->n, (uint32_t)spec->k), spec, NULL};
    s->weight = spec->columns.weight;
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
