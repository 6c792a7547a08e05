// Matrix products with constant or computed right operand, attention, GRU and LSTM.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "compile/bind/bind.h"
#include "compile/spec.h"
#include "kernel/fused_attention.h"
#include "kernel/gated_rnn.h"
#include "kernel/gemm.h"

typedef struct GemmStep {
    GemmShape       shape;
    const GemmSpec *spec;     // NULL: both operands are computed; valid while compiling
    const void     *weights;  // packed
    bool            rounded;  // the file has floats, the kernel fewer bits
    LayerWeights   *row;      // of the report; NULL: none
} GemmStep;

static void gemm_step_run(const StepCall *c) {
    const GemmStep *s = c->step->spec;
    Gemm            g = {.shape = s->shape,
                         .version = *c->version,
                         .a = operand_at(&c->step->in[0], c->mem),
                         .b = s->weights,
                         .y = operand_at(&c->step->out[0], c->mem),
                         .epilogue = step_epilogue(c->step, c->mem)};
    if (s->spec == NULL) g.b = operand_at(&c->step->in[1], c->mem);
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

static Err pack_narrow(GemmStep *g, Binder *b) {
    BlockWeights w = g->spec->blocks;
    void        *packed = NULL;
    w.column_scale = g->spec->channels.scale;
    TRY(bind_alloc(b, narrow_pack_bytes(&g->shape, b->isa), &packed));
    if (g->spec->half != NULL)
        narrow_pack_half(&g->shape, g->spec->half, g->spec->transposed, b->isa, packed);
    else
        narrow_pack(&g->shape, &w, b->isa, packed);
    g->weights = packed;
    return ERR_OK;
}

static Err gemm_step_pack(const Step *s, const Version *v, Binder *b) {
    (void)v;  // all versions share one packed form
    GemmStep *g = s->spec;
    if (g->spec == NULL || g->weights != NULL) return ERR_OK;
    const GemmSpec *spec = g->spec;
    if (g->rounded) return bind_narrow_pack(b, spec, &g->shape, g->row, &g->weights);
    if (g->shape.weights != GEMM_F32) return pack_narrow(g, b);
    uint32_t n = g->shape.n, k = g->shape.k;
    float   *packed = NULL;
    bool     made = false;
    PackKey  key = bind_pack_key(b, "gemm", &spec->channels);
    key.sizes[2] = k;
    key.sizes[3] = spec->transposed;
    key.alpha = spec->alpha;
    TRY(bind_packed(b, &key, gemm_pack_bytes(n, k, b->isa), &packed, &made));
    if (!made) {
        const float *w = spec->transposed ? bind_scaled(b, &spec->channels, k, 1)
                                          : bind_scaled(b, &spec->channels, 1, k);
        gemm_pack(n, k, w, spec->transposed ? k : n, spec->transposed, spec->alpha, b->isa, packed);
    }
    bind_packed_made(b);
    g->weights = packed;
    return ERR_OK;
}

static void gemm_step_unpack(const Step *s) {
    GemmStep *g = s->spec;
    g->weights = NULL;
}

// A column of a large batch is a long task, and each slice of columns would read all rows again.
static void gemm_step_refine(const Step *s, Version *v) {
    if (((const GemmStep *)s->spec)->shape.packed && v->split == SPLIT_COLUMNS)
        v->split = SPLIT_ROWS;
}

static const StepKind gemm_kind = {.name = "gemm",
                                   .run = gemm_step_run,
                                   .refine = gemm_step_refine,
                                   .tasks = gemm_step_tasks,
                                   .scratch = gemm_step_scratch,
                                   .versions = gemm_step_versions,
                                   .traffic = gemm_step_traffic,
                                   .cycles = gemm_step_cycles,
                                   .pack = gemm_step_pack,
                                   .unpack = gemm_step_unpack};

static void bind_gemm_step(Binder *b, Step *s, GemmStep *g) {
    const GemmShape *p = &g->shape;
    s->kind = &gemm_kind;
    s->spec = g;
    s->macs = (double)p->m * p->n * p->k * gemm_batch_count(p);
    s->key = arena_printf(b->keep, "%s m%u n%u k%u batch%u transposed%d%d",
                          g->spec != NULL ? "gemm" : "matmul", p->m, p->n, p->k,
                          gemm_batch_count(p), p->a.transposed, p->b.transposed);
    if (p->weights != GEMM_F32)
        s->key = arena_printf(b->keep, "%s weights%u block%u zeros%d", s->key, narrow_bits(p),
                              p->block, p->zeros);
    gemm_versions(p, b->isa, &b->caches, s->versions, 1);
}

// Halves that a fused scale multiplies are packed as floats.
static void keep_form(const GemmSpec *spec, GemmShape *shape) {
    if (spec->weights == GEMM_F32 || (spec->half != NULL && spec->channels.scale != NULL)) return;
    shape->packed = false;
    shape->weights = spec->weights;
    shape->block = spec->block;
    shape->zeros = spec->blocks.zeros != NULL || spec->blocks.float_zeros != NULL;
}

static Err choose_form(Binder *b, const GemmSpec *spec, const Step *s, GemmStep *g) {
    const char *kept = NULL;
    keep_form(spec, &g->shape);
    if (b->width == WEIGHTS_FP32) return ERR_OK;
    TRY(bind_narrow_choose(b, spec, &g->shape, &kept));
    g->rounded = kept == NULL;
    const Tensor *t = ir_type(b->ir, spec->channels.weight);
    g->row = bind_narrow_row(b, s, (size_t)tensor_count(t) * dtype_size(t->dtype), kept);
    if (!g->rounded) g->row = NULL;
    return ERR_OK;
}

Err bind_gemm(Binder *b, const IrLayer *l, Step *s) {
    const GemmSpec *spec = l->spec;
    GemmStep       *g = NULL;
    TRY(bind_alloc(b, sizeof *g, &g));
    g->shape = gemm_shape((uint32_t)spec->m, (uint32_t)spec->n, (uint32_t)spec->k);
    g->spec = spec;
    TRY(choose_form(b, spec, s, g));
    s->weight = spec->channels.weight;
    TRY(bind_bias(b, &spec->channels, &s->epilogue.bias));
    bind_gemm_step(b, s, g);
    return ERR_OK;
}

Err bind_matmul(Binder *b, const IrLayer *l, Step *s) {
    GemmStep *g = NULL;
    TRY(bind_alloc(b, sizeof *g, &g));
    g->shape = *(const GemmShape *)l->spec;
    bind_gemm_step(b, s, g);
    return ERR_OK;
}

// Attention: both products and the softmax in one kernel.

// The layer that made the cache has checked the lengths, unless this step runs alone to be
// measured.
static bool lengths_fit(const FusedAttention *a) {
    int64_t least = a->shape.last ? a->shape.queries : 1;
    for (uint32_t b = 0; a->lengths != NULL && b < a->shape.batch; b++)
        if ((int64_t)a->lengths[b] + 1 < least || (int64_t)a->lengths[b] + 1 > a->shape.keys)
            return false;
    return true;
}

static void attention_step_run(const StepCall *c) {
    const Operand *in = c->step->in;
    FusedAttention a = {.shape = *(const FusedAttentionShape *)c->step->spec,
                        .version = *c->version,
                        .q = operand_at(&in[ATTENTION_Q], c->mem),
                        .k = operand_at(&in[ATTENTION_K], c->mem),
                        .v = operand_at(&in[ATTENTION_V], c->mem),
                        .mask = operand_at(&in[ATTENTION_MASK], c->mem),
                        .lengths = operand_at(&in[ATTENTION_LENGTHS], c->mem),
                        .y = operand_at(&c->step->out[0], c->mem)};
    if (!lengths_fit(&a)) return;
    c->step->isa->attention(&a, c->part);
}

static uint32_t attention_step_tasks(const Step *s, const Version *v) {
    return fused_attention_tasks(s->spec, s->isa, v);
}

static size_t attention_step_scratch(const Step *s, const Version *v) {
    return fused_attention_scratch(s->spec, s->isa, v);
}

static uint32_t attention_step_versions(const Step *s, const CacheSizes *c, Version *out,
                                        uint32_t max) {
    return fused_attention_versions(s->spec, s->isa, c, out, max);
}

static Traffic attention_step_traffic(const Step *s, const Version *v, const CacheSizes *c,
                                      uint32_t parts) {
    return fused_attention_traffic(s->spec, s->isa, v, c, parts);
}

static double attention_step_cycles(const Step *s, const Version *v, uint32_t parts) {
    return cycles_attention(s->spec, s->isa, v, parts);
}

static const StepKind attention_kind = {.name = "attention",
                                        .run = attention_step_run,
                                        .tasks = attention_step_tasks,
                                        .scratch = attention_step_scratch,
                                        .versions = attention_step_versions,
                                        .traffic = attention_step_traffic,
                                        .cycles = attention_step_cycles};

Err bind_attention(Binder *b, const IrLayer *l, Step *s) {
    TRY(bind_spec(b, l, &attention_kind, sizeof(FusedAttentionShape), s));
    const FusedAttentionShape *a = s->spec;
    s->macs = (double)a->batch * a->heads * a->queries * a->keys * ((double)a->size + a->v_size);
    s->key = arena_printf(
        b->keep, "attention b%u h%u/%u q%u k%u size%u/%u steps%zu,%zu,%zu,%zu transposed%d mask%d",
        a->batch, a->heads, a->kv_heads, a->queries, a->keys, a->size, a->v_size, a->q.step,
        a->k.step, a->v.step, a->y.step, a->k_transposed,
        (l->in[ATTENTION_MASK] != IR_NONE) + a->chosen);
    if (a->causal || a->window > 0 || a->softcap > 0)
        s->key = arena_printf(b->keep, "%s causal%d past%u window%u cap%d lengths%d", s->key,
                              a->causal, a->past, a->window, a->softcap > 0, a->lengths);
    fused_attention_versions(a, b->isa, &b->caches, s->versions, 1);
    return ERR_OK;
}

// GRU and LSTM.

typedef struct RnnStep {
    GatedRnnShape shape;
    const float  *packed;
} RnnStep;

// Lengths are untrusted: one that the sequences do not have fails the run.
static bool sequence_lengths_fit(const StepCall *c, const GatedRnn *r) {
    for (uint32_t i = 0; r->lens != NULL && i < r->shape.batch; i++) {
        if (r->lens[i] >= 0 && (uint32_t)r->lens[i] <= r->shape.steps) continue;
        if (c->part.index == 0) {
            Err e = err_set(ERR_INVALID, "sequence length %d is outside 0..%u", r->lens[i],
                            r->shape.steps);
            c->mem->failed = op_failed(c->step->node, e);
            (void)snprintf(c->mem->why, sizeof c->mem->why, "%s", err_why());
        }
        return false;
    }
    return true;
}

static void rnn_step_run(const StepCall *c) {
    const RnnStep *s = c->step->spec;
    const Operand *in = c->step->in, *out = c->step->out;
    GatedRnn       r = {.shape = s->shape,
                        .version = *c->version,
                        .packed = s->packed,
                        .x = operand_at(&in[RNN_X], c->mem),
                        .lens = operand_at(&in[RNN_LENS], c->mem),
                        .h0 = operand_at(&in[RNN_H0], c->mem),
                        .c0 = operand_at(&in[RNN_C0], c->mem),
                        .y = operand_at(&out[0], c->mem),
                        .yh = operand_at(&out[1], c->mem),
                        .yc = operand_at(&out[2], c->mem)};
    if (c->slice > 0 || sequence_lengths_fit(c, &r)) c->step->isa->gated_rnn(&r, c->part);
}

static uint32_t rnn_step_tasks(const Step *s, const Version *v) {
    return gated_rnn_tasks(&((const RnnStep *)s->spec)->shape, s->isa, v);
}

static size_t rnn_step_scratch(const Step *s, const Version *v) {
    return gated_rnn_scratch(&((const RnnStep *)s->spec)->shape, s->isa, v);
}

static uint32_t rnn_step_versions(const Step *s, const CacheSizes *c, Version *out, uint32_t max) {
    return gated_rnn_versions(&((const RnnStep *)s->spec)->shape, s->isa, c, out, max);
}

static Traffic rnn_step_traffic(const Step *s, const Version *v, const CacheSizes *c,
                                uint32_t parts) {
    return gated_rnn_traffic(&((const RnnStep *)s->spec)->shape, s->isa, v, c, parts);
}

static const StepKind rnn_kind = {.name = "rnn",
                                  .run = rnn_step_run,
                                  .tasks = rnn_step_tasks,
                                  .scratch = rnn_step_scratch,
                                  .versions = rnn_step_versions,
                                  .traffic = rnn_step_traffic,
                                  .checks_inputs = true};

static PackKey rnn_pack_key(const Binder *b, const RnnSpec *spec) {
    const GatedRnnShape   *s = &spec->shape;
    const GatedRnnWeights *w = &spec->weights;
    PackKey                key = {.sources = {w->w, w->r}, .form = "rnn"};
    uint32_t               n = 2;
    if (w->b != NULL) key.sources[n++] = w->b;
    if (w->p != NULL) key.sources[n++] = w->p;
    uint32_t sizes[] = {b->isa->lanes, (uint32_t)s->kind, s->directions,
                        s->input,      s->hidden,         s->peepholes,
                        w->b != NULL,  w->p != NULL,      s->linear_before_reset};
    memcpy(key.sizes, sizes, sizeof sizes);
    return key;
}

Err bind_rnn(Binder *b, const IrLayer *l, Step *s) {
    const RnnSpec *spec = l->spec;
    RnnStep       *r = NULL;
    float         *packed = NULL;
    bool           made = false;
    PackKey        key = rnn_pack_key(b, spec);
    TRY(bind_alloc(b, sizeof *r, &r));
    TRY(bind_packed(b, &key, gated_rnn_pack_bytes(&spec->shape, b->isa), &packed, &made));
    if (!b->ir->shape_only && !made) gated_rnn_pack(&spec->shape, &spec->weights, b->isa, packed);
    bind_packed_made(b);
    *r = (RnnStep){spec->shape, packed};
    const GatedRnnShape *p = &r->shape;
    uint32_t             gates = p->kind == GATED_RNN_LSTM ? 4 : 3;
    s->kind = &rnn_kind;
    s->spec = r;
    s->macs =
        (double)p->steps * p->batch * p->directions * gates * p->hidden * (p->input + p->hidden);
    s->key = arena_printf(b->keep, "rnn kind%d t%u n%u i%u h%u d%u", (int)p->kind, p->steps,
                          p->batch, p->input, p->hidden, p->directions);
    gated_rnn_versions(p, b->isa, &b->caches, s->versions, 1);
    return ERR_OK;
}
