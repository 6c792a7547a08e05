// Convolutions (direct, Winograd, depthwise, transposed), pooling and resizing.
//
// Direct and Winograd convolution have packed forms of their own, made when the first version needs
// one.
#include <string.h>

#include "base/err.h"
#include "compile/bind/bind.h"
#include "compile/spec.h"
#include "kernel/conv.h"
#include "kernel/deconv.h"
#include "kernel/depthwise.h"
#include "kernel/pool.h"
#include "kernel/resample.h"
#include "kernel/winograd.h"

typedef struct ConvStep {
    ConvShape      shape;
    bool           plain;  // reads the plain layout
    OutputChannels channels;
    const float   *packed[ALGO_COUNT];  // NULL until a version needs it
} ConvStep;

static bool is_winograd(const Version *v) {
    return v->algo == ALGO_WINOGRAD2 || v->algo == ALGO_WINOGRAD4;
}

static void conv_step_run(const StepCall *c) {
    const ConvStep *s = c->step->spec;
    const float    *x = operand_at(&c->step->in[0], c->mem);
    float          *y = operand_at(&c->step->out[0], c->mem);
    Epilogue        epilogue = step_epilogue(c->step, c->mem);
    const float    *packed = s->packed[c->version->algo];
    CHECK(packed != NULL);
    if (is_winograd(c->version)) {
        Winograd w = {s->shape, *c->version, epilogue, x, packed, y};
        c->step->isa->winograd(&w, c->part);
    } else {
        Conv d = {s->shape, *c->version, epilogue, x, packed, y};
        c->step->isa->conv(&d, c->part);
    }
}

static uint32_t conv_step_tasks(const Step *s, const Version *v) {
    const ConvStep *c = s->spec;
    return is_winograd(v) ? winograd_tasks(&c->shape, s->isa, v) : conv_tasks(&c->shape, s->isa, v);
}

static size_t conv_step_scratch(const Step *s, const Version *v) {
    const ConvStep *c = s->spec;
    return is_winograd(v) ? winograd_scratch(&c->shape, s->isa, v)
                          : conv_scratch(&c->shape, s->isa, v);
}

// Winograd is faster if there are enough tiles and channels.
static bool prefers_winograd(const ConvStep *c) {
    const ConvShape *s = &c->shape;
    return !c->plain && winograd_fits(s) && s->ic >= 16 && s->oc >= 16 && s->oh * s->ow >= 100;
}

static uint32_t conv_step_versions(const Step *s, const CacheSizes *caches, Version *out,
                                   uint32_t max) {
    const ConvStep *c = s->spec;
    bool            wino = !c->plain && winograd_fits(&c->shape), first = prefers_winograd(c);
    uint32_t        n = 0;
    if (wino && first) n = winograd_versions(&c->shape, s->isa, caches, out, max);
    n += max > n ? conv_versions(&c->shape, s->isa, c->plain, caches, out + n, max - n) : 0;
    if (wino && !first && max > n)
        n += winograd_versions(&c->shape, s->isa, caches, out + n, max - n);
    return n;
}

static Traffic conv_step_traffic(const Step *s, const Version *v, const CacheSizes *caches,
                                 uint32_t parts) {
    const ConvStep *c = s->spec;
    return is_winograd(v) ? winograd_traffic(&c->shape, s->isa, v, caches, parts)
                          : conv_traffic(&c->shape, s->isa, v, caches, parts);
}

static double conv_step_cycles(const Step *s, const Version *v, uint32_t parts) {
    const ConvStep *c = s->spec;
    return is_winograd(v) ? cycles_winograd(&c->shape, s->isa, v, parts)
                          : cycles_conv(&c->shape, s->isa, v, parts);
}

static size_t conv_step_pack_bytes(const Step *s, const Version *v) {
    const ConvStep *c = s->spec;
    return is_winograd(v) ? winograd_pack_bytes(&c->shape, s->isa, (Algo)v->algo)
                          : conv_pack_bytes(&c->shape, s->isa, c->plain);
}

// What packed weights of any kind of convolution depend on.
static PackKey conv_pack_key(const Binder *b, const char *form, const OutputChannels *c,
                             const ConvShape *p) {
    PackKey  key = bind_pack_key(b, form, c);
    uint32_t sizes[] = {p->ic, p->groups, p->kh, p->kw, p->kd};
    memcpy(key.sizes + 2, sizes, sizeof sizes);
    return key;
}

static Err conv_step_pack(const Step *s, const Version *v, Binder *b) {
    ConvStep *c = s->spec;
    if (c->packed[v->algo] != NULL) return ERR_OK;
    const ConvShape *p = &c->shape;
    float           *packed = NULL;
    bool             made = false;
    PackKey          key = conv_pack_key(b, is_winograd(v) ? "winograd" : "conv", &c->channels, p);
    key.sizes[11] = is_winograd(v) ? v->algo : c->plain;
    TRY(bind_packed(b, &key, conv_step_pack_bytes(s, v), &packed, &made));
    if (!made) {
        size_t       taps = (size_t)(p->kd > 0 ? p->kd : 1) * p->kh * p->kw;
        const float *w = bind_scaled(b, &c->channels, (size_t)p->ic / p->groups * taps, 1);
        if (is_winograd(v))
            winograd_pack(p, s->isa, (Algo)v->algo, w, packed);
        else
            conv_pack(p, s->isa, c->plain, w, packed);
    }
    bind_packed_made(b);
    c->packed[v->algo] = packed;
    return ERR_OK;
}

static void conv_step_unpack(const Step *s) {
    ConvStep *c = s->spec;
    for (int i = 0; i < ALGO_COUNT; i++) c->packed[i] = NULL;
}

static void conv_step_refine(const Step *s, Version *v) {
    (void)s;
    if (is_winograd(v)) v->split = SPLIT_BOTH;
}

static const StepKind conv_kind = {.name = "conv",
                                   .run = conv_step_run,
                                   .refine = conv_step_refine,
                                   .tasks = conv_step_tasks,
                                   .scratch = conv_step_scratch,
                                   .versions = conv_step_versions,
                                   .traffic = conv_step_traffic,
                                   .cycles = conv_step_cycles,
                                   .pack_bytes = conv_step_pack_bytes,
                                   .pack = conv_step_pack,
                                   .unpack = conv_step_unpack};

char *bind_conv_key(Binder *b, const char *what, const ConvShape *s) {
    char *key = arena_printf(b->keep, "%s n%u i%ux%ux%u o%ux%ux%u k%ux%u s%ux%u d%ux%u p%ux%u g%u",
                             what, s->n, s->ic, s->ih, s->iw, s->oc, s->oh, s->ow, s->kh, s->kw,
                             s->sh, s->sw, s->dh, s->dw, s->pt, s->pl, s->groups);
    if (s->kd == 0) return key;
    return arena_printf(b->keep, "%s depth i%u o%u k%u s%u d%u p%u", key, s->id, s->od, s->kd,
                        s->sd, s->dd, s->pf);
}

Err bind_conv(Binder *b, const IrLayer *l, Step *s) {
    const ConvSpec  *spec = l->spec;
    const ConvShape *p = &spec->shape;
    ConvStep        *c = NULL;
    TRY(bind_alloc(b, sizeof *c, &c));
    *c = (ConvStep){.shape = *p, .plain = spec->plain_in, .channels = spec->channels};
    s->kind = &conv_kind;
    s->spec = c;
    s->weight = spec->channels.weight;
    s->macs = (double)p->n * p->oc * p->oh * p->ow * p->kh * p->kw *
              (double)(uint32_t)(p->ic / p->groups);
    if (p->kd > 0) s->macs *= (double)p->od * p->kd;
    s->key = bind_conv_key(b, spec->plain_in ? "conv plain" : "conv", p);
    TRY(bind_bias(b, &spec->channels, &s->epilogue.bias));
    conv_step_versions(s, &b->caches, s->versions, 1);
    return ERR_OK;
}

// Depthwise and transposed convolution: all versions share one packed form.

typedef struct SharedPackStep {
    ConvShape      shape;
    OutputChannels channels;  // valid while compiling
    const float   *packed;    // NULL until a version needs it
} SharedPackStep;

static const ConvShape *shape_of(const Step *s) {
    return &((const SharedPackStep *)s->spec)->shape;
}

static void shared_unpack(const Step *s) { ((SharedPackStep *)s->spec)->packed = NULL; }

static Err bind_shared_pack(Binder *b, const IrLayer *l, const StepKind *kind, Step *s) {
    const ConvSpec *spec = l->spec;
    SharedPackStep *own = NULL;
    TRY(bind_alloc(b, sizeof *own, &own));
    *own = (SharedPackStep){.shape = spec->shape, .channels = spec->channels};
    TRY(bind_bias(b, &spec->channels, &s->epilogue.bias));
    s->kind = kind;
    s->spec = own;
    s->weight = spec->channels.weight;
    s->key = bind_conv_key(b, kind->name, &spec->shape);
    kind->versions(s, &b->caches, s->versions, 1);
    return ERR_OK;
}

static void depthwise_step_run(const StepCall *c) {
    const SharedPackStep *s = c->step->spec;
    Depthwise             d = {.shape = s->shape,
                               .version = *c->version,
                               .x = operand_at(&c->step->in[0], c->mem),
                               .weights = s->packed,
                               .y = operand_at(&c->step->out[0], c->mem),
                               .epilogue = step_epilogue(c->step, c->mem)};
    c->step->isa->depthwise(&d, c->part);
}

static uint32_t depthwise_step_tasks(const Step *s, const Version *v) {
    return depthwise_tasks(shape_of(s), s->isa, v);
}

static size_t depthwise_step_scratch(const Step *s, const Version *v) {
    return depthwise_scratch(shape_of(s), s->isa, v);
}

static uint32_t depthwise_step_versions(const Step *s, const CacheSizes *c, Version *out,
                                        uint32_t max) {
    return depthwise_versions(shape_of(s), s->isa, c, out, max);
}

static Traffic depthwise_step_traffic(const Step *s, const Version *v, const CacheSizes *c,
                                      uint32_t parts) {
    return depthwise_traffic(shape_of(s), s->isa, v, c, parts);
}

static double depthwise_step_cycles(const Step *s, const Version *v, uint32_t parts) {
    return cycles_depthwise(shape_of(s), s->isa, v, parts);
}

static Err depthwise_step_pack(const Step *s, const Version *v, Binder *b) {
    (void)v;
    SharedPackStep *d = s->spec;
    float          *packed = NULL;
    bool            made = false;
    if (d->packed != NULL) return ERR_OK;
    PackKey key = conv_pack_key(b, "depthwise", &d->channels, &d->shape);
    size_t  bytes = depthwise_weight_count(&d->shape, b->isa) * sizeof *packed;
    TRY(bind_packed(b, &key, bytes, &packed, &made));
    if (!made)
        depthwise_pack(&d->shape, b->isa,
                       bind_scaled(b, &d->channels, (size_t)d->shape.kh * d->shape.kw, 1), packed);
    bind_packed_made(b);
    d->packed = packed;
    return ERR_OK;
}

static const StepKind depthwise_kind = {.name = "depthwise",
                                        .run = depthwise_step_run,
                                        .tasks = depthwise_step_tasks,
                                        .scratch = depthwise_step_scratch,
                                        .versions = depthwise_step_versions,
                                        .traffic = depthwise_step_traffic,
                                        .cycles = depthwise_step_cycles,
                                        .pack = depthwise_step_pack,
                                        .unpack = shared_unpack};

Err bind_depthwise(Binder *b, const IrLayer *l, Step *s) {
    TRY(bind_shared_pack(b, l, &depthwise_kind, s));
    const ConvShape *p = shape_of(s);
    s->macs = (double)p->n * p->oc * p->oh * p->ow * p->kh * p->kw;
    return ERR_OK;
}

static void deconv_step_run(const StepCall *c) {
    const SharedPackStep *s = c->step->spec;
    Deconv                d = {.shape = s->shape,
                               .version = *c->version,
                               .epilogue = step_epilogue(c->step, c->mem),
                               .x = operand_at(&c->step->in[0], c->mem),
                               .weights = s->packed,
                               .y = operand_at(&c->step->out[0], c->mem)};
    c->step->isa->deconv(&d, c->part);
}

static uint32_t deconv_step_tasks(const Step *s, const Version *v) {
    return deconv_tasks(shape_of(s), s->isa, v);
}

static size_t deconv_step_scratch(const Step *s, const Version *v) {
    return deconv_scratch(shape_of(s), s->isa, v);
}

static uint32_t deconv_step_versions(const Step *s, const CacheSizes *c, Version *out,
                                     uint32_t max) {
    return deconv_versions(shape_of(s), s->isa, c, out, max);
}

static Traffic deconv_step_traffic(const Step *s, const Version *v, const CacheSizes *c,
                                   uint32_t parts) {
    return deconv_traffic(shape_of(s), s->isa, v, c, parts);
}

// Its weights are [ic][oc / groups][taps]: channels of the output inside those of the input.
static const float *deconv_scaled(Binder *b, const OutputChannels *c, const ConvShape *p) {
    const float *w = ir_floats(b->ir, c->weight);
    uint32_t     each = p->oc / p->groups;
    size_t       taps = (size_t)(p->kd > 0 ? p->kd : 1) * p->kh * p->kw;
    if (c->scale == NULL) return w;
    float *own = arena_new(b->ir->arena, float, p->ic *each *taps);
    for (size_t i = 0; i < p->ic * each * taps; i++) {
        size_t group = i / taps / each / (p->ic / p->groups);
        own[i] = w[i] * c->scale[group * each + i / taps % each];
    }
    return own;
}

static Err deconv_step_pack(const Step *s, const Version *v, Binder *b) {
    (void)v;
    SharedPackStep  *d = s->spec;
    const ConvShape *p = &d->shape;
    float           *packed = NULL;
    bool             made = false;
    if (d->packed != NULL) return ERR_OK;
    PackKey  key = conv_pack_key(b, "deconv", &d->channels, p);
    uint32_t phases[] = {p->sh, p->sw, p->dh, p->dw, p->pt, p->pl, p->sd, p->dd, p->pf};
    memcpy(key.sizes + 7, phases, sizeof phases);
    TRY(bind_packed(b, &key, deconv_pack_bytes(p, b->isa), &packed, &made));
    if (!made) deconv_pack(p, b->isa, deconv_scaled(b, &d->channels, p), packed);
    bind_packed_made(b);
    d->packed = packed;
    return ERR_OK;
}

static const StepKind deconv_kind = {.name = "deconv",
                                     .run = deconv_step_run,
                                     .tasks = deconv_step_tasks,
                                     .scratch = deconv_step_scratch,
                                     .versions = deconv_step_versions,
                                     .traffic = deconv_step_traffic,
                                     .pack = deconv_step_pack,
                                     .unpack = shared_unpack};

Err bind_deconv(Binder *b, const IrLayer *l, Step *s) {
    TRY(bind_shared_pack(b, l, &deconv_kind, s));
    const ConvShape *p = shape_of(s);
    uint32_t         channels = p->ic / p->groups;
    s->macs = (double)p->n * p->oc * p->kh * p->kw * channels * p->ih * p->iw;
    if (p->kd > 0) s->macs *= (double)p->id * p->kd;
    return ERR_OK;
}

// Pooling and resizing.

static void pool_step_run(const StepCall *c) {
    Pool p = *(const Pool *)c->step->spec;
    p.x = operand_at(&c->step->in[0], c->mem);
    p.y = operand_at(&c->step->out[0], c->mem);
    c->step->isa->pool(&p, c->part);
}

static uint32_t pool_step_tasks(const Step *s, const Version *v) {
    (void)v;
    return pool_tasks(s->spec, s->isa);
}

static size_t pool_step_scratch(const Step *s, const Version *v) {
    (void)v;
    return pool_scratch(s->spec, s->isa);
}

static const StepKind pool_kind = {
    .name = "pool", .run = pool_step_run, .tasks = pool_step_tasks, .scratch = pool_step_scratch};

Err bind_pool(Binder *b, const IrLayer *l, Step *s) {
    TRY(bind_spec(b, l, &pool_kind, sizeof(Pool), s));
    ((Pool *)s->spec)->plain = b->ir->values[l->out[0]].layout == LAYOUT_PLAIN;
    return ERR_OK;
}

static void resize_step_run(const StepCall *c) {
    Resample r = *(const Resample *)c->step->spec;
    r.x = operand_at(&c->step->in[0], c->mem);
    r.y = operand_at(&c->step->out[0], c->mem);
    c->step->isa->resample(&r, c->part);
}

static uint32_t resize_step_tasks(const Step *s, const Version *v) {
    (void)v;
    return resample_tasks(s->spec, s->isa);
}

static size_t resize_step_scratch(const Step *s, const Version *v) {
    (void)v;
    return resample_scratch(s->spec, s->isa);
}

static const StepKind resize_kind = {.name = "resize",
                                     .run = resize_step_run,
                                     .tasks = resize_step_tasks,
                                     .scratch = resize_step_scratch};

static Err keep_taps(Binder *b, const ResampleTap **taps, uint32_t n) {
    ResampleTap *own = NULL;
    TRY(bind_alloc(b, n * sizeof *own, &own));
    memcpy(own, *taps, n * sizeof *own);
    *taps = own;
    return ERR_OK;
}

Err bind_resize(Binder *b, const IrLayer *l, Step *s) {
    TRY(bind_spec(b, l, &resize_kind, sizeof(Resample), s));
    Resample *own = s->spec;
    own->plain = b->ir->values[l->out[0]].layout == LAYOUT_PLAIN;
    TRY(keep_taps(b, &own->rows, own->oh));
    return keep_taps(b, &own->columns, own->ow);
}
