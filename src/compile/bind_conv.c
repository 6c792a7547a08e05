// Convolutions: direct, or by Winograd where that fits. Each algorithm has a packing of its own,
// made when the first version needs it.
#include "base/check.h"
#include "compile/bind.h"
#include "compile/cycles.h"
#include "compile/spec.h"
#include "kernel/conv.h"
#include "kernel/wino.h"

typedef struct ConvStep {
    ConvShape    shape;
    bool         plain;  // reads the plain layout
    Columns      columns;
    const float *packed[ALGO_COUNT];  // NULL until a version needs it
} ConvStep;

static bool is_winograd(const Version *v) {
    return v->algo == ALGO_WINOGRAD2 || v->algo == ALGO_WINOGRAD4;
}

static void conv_step_run(const StepCall *c) {
    const ConvStep *s = c->step->spec;
    const float    *x = operand_at(&c->step->in[0], c->space);
    float          *y = operand_at(&c->step->out[0], c->space);
    Finish          finish = step_finish(c->step, c->space);
    const float    *packed = s->packed[c->version->algo];
    CHECK(packed != NULL);
    if (is_winograd(c->version)) {
        Wino w = {s->shape, *c->version, finish, x, packed, y};
        c->step->isa->wino_run(&w, c->part);
    } else {
        Conv d = {s->shape, *c->version, finish, x, packed, y};
        c->step->isa->conv(&d, c->part);
    }
}

static uint32_t conv_step_tasks(const Step *s, const Version *v) {
    const ConvStep *c = s->spec;
    return is_winograd(v) ? wino_tasks(&c->shape, s->isa, v) : conv_tasks(&c->shape, s->isa, v);
}

static size_t conv_step_scratch(const Step *s, const Version *v) {
    const ConvStep *c = s->spec;
    return is_winograd(v) ? wino_scratch(&c->shape, s->isa, v) : conv_scratch(&c->shape, s->isa, v);
}

// Winograd pays when there are enough tiles and channels to make its matrix products worthwhile.
static bool prefers_winograd(const ConvStep *c) {
    const ConvShape *s = &c->shape;
    return !c->plain && wino_fits(s) && s->ic >= 16 && s->oc >= 16 && s->oh * s->ow >= 100;
}

static uint32_t conv_step_versions(const Step *s, const CacheSizes *caches, Version *out,
                                   uint32_t max) {
    const ConvStep *c = s->spec;
    bool            wino = !c->plain && wino_fits(&c->shape), first = prefers_winograd(c);
    uint32_t        n = 0;
    if (wino && first) n = wino_versions(&c->shape, s->isa, caches, out, max);
    n += max > n ? conv_versions(&c->shape, s->isa, c->plain, caches, out + n, max - n) : 0;
    if (wino && !first && max > n) n += wino_versions(&c->shape, s->isa, caches, out + n, max - n);
    return n;
}

static Traffic conv_step_traffic(const Step *s, const Version *v, const CacheSizes *caches,
                                 uint32_t parts) {
    const ConvStep *c = s->spec;
    return is_winograd(v) ? wino_traffic(&c->shape, s->isa, v, caches, parts)
                          : conv_traffic(&c->shape, s->isa, v, caches, parts);
}

static double conv_step_cycles(const Step *s, const Version *v, uint32_t parts) {
    const ConvStep *c = s->spec;
    return is_winograd(v) ? cycles_wino(&c->shape, s->isa, v, parts)
                          : cycles_conv(&c->shape, s->isa, v, parts);
}

static size_t conv_step_pack_bytes(const Step *s, const Version *v) {
    const ConvStep *c = s->spec;
    return is_winograd(v) ? wino_pack_bytes(&c->shape, s->isa, (Algo)v->algo)
                          : conv_pack_bytes(&c->shape, s->isa, c->plain);
}

static Err conv_step_pack(const Step *s, const Version *v, Binder *b) {
    ConvStep *c = s->spec;
    if (c->packed[v->algo] != NULL) return ERR_OK;
    const ConvShape *p = &c->shape;
    float           *packed = NULL;
    TRY(bind_room(b, conv_step_pack_bytes(s, v), &packed));
    const float *w = bind_scaled(b, &c->columns, (size_t)p->ic / p->groups * p->kh * p->kw, 1);
    if (is_winograd(v))
        wino_pack(p, s->isa, (Algo)v->algo, w, packed);
    else
        conv_pack(p, s->isa, c->plain, w, packed);
    c->packed[v->algo] = packed;
    return ERR_OK;
}

static void conv_step_unpack(const Step *s) {
    ConvStep *c = s->spec;
    for (int i = 0; i < ALGO_COUNT; i++) c->packed[i] = NULL;
}

static const Kind kind = {.name = "conv",
                          .run = conv_step_run,
                          .tasks = conv_step_tasks,
                          .scratch = conv_step_scratch,
                          .versions = conv_step_versions,
                          .traffic = conv_step_traffic,
                          .cycles = conv_step_cycles,
                          .pack_bytes = conv_step_pack_bytes,
                          .pack = conv_step_pack,
                          .unpack = conv_step_unpack};

char *bind_conv_key(Binder *b, const char *what, const ConvShape *s) {
    return arena_printf(b->keep, "%s n%u i%ux%ux%u o%ux%ux%u k%ux%u s%ux%u d%ux%u p%ux%u g%u", what,
                        s->n, s->ic, s->ih, s->iw, s->oc, s->oh, s->ow, s->kh, s->kw, s->sh, s->sw,
                        s->dh, s->dw, s->pt, s->pl, s->groups);
}

Err bind_conv(Binder *b, const IrLayer *l, Step *s) {
    const ConvSpec  *spec = l->spec;
    const ConvShape *p = &spec->shape;
    ConvStep        *c = NULL;
    TRY(bind_room(b, sizeof *c, &c));
    *c = (ConvStep){.shape = *p, .plain = spec->plain_in, .columns = spec->columns};
    s->kind = &kind;
    s->spec = c;
    s->weight = spec->columns.weight;
    s->macs = (double)p->n * p->oc * p->oh * p->ow * p->kh * p->kw *
              (double)(uint32_t)(p->ic / p->groups);
    s->key = bind_conv_key(b, spec->plain_in ? "conv plain" : "conv", p);
    TRY(bind_bias(b, &spec->columns, &s->finish.bias));
    conv_step_versions(s, &b->caches, s->versions, 1);
    return ERR_OK;
}
