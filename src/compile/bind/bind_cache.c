// Rotary embedding, and caches of keys and values.
#include <inttypes.h>
#include <stdio.h>

#include "compile/bind/bind.h"
#include "compile/spec.h"
#include "kernel/rotate_heads.h"

static void fail(const StepCall *c, Err e) {
    if (c->part.index != 0) return;
    c->mem->failed = op_failed(c->step->node, e);
    (void)snprintf(c->mem->why, sizeof c->mem->why, "%s", err_why());
}

// Computed lengths are untrusted: a sequence that does not fit its cache fails the run.
static Err check_lengths(const GroupAttention *g, const int32_t *lengths) {
    int64_t total = 0;
    for (int64_t b = 0; lengths != NULL && b < g->heads.batch; b++)
        TRY(group_attention_length(g, lengths, b, &total));
    return ERR_OK;
}

static Err check_positions(const RotateHeads *r) {
    for (uint32_t b = 0; b < r->shape.batch; b++)
        for (uint32_t s = 0; s < r->shape.length; s++) {
            int64_t row = rotary_row(r, b, s);
            if (row < 0 || row >= r->shape.angles)
                return err_set(ERR_INVALID,
                               "rotary embedding: position %" PRId64 " is outside caches of %u",
                               row, r->shape.angles);
        }
    return ERR_OK;
}

static CacheLengths lengths_of(const GroupAttention *g, const int32_t *lengths) {
    return (CacheLengths){lengths, (uint32_t)g->heads.past, g->prompt};
}

static void rotary_step_run(const StepCall *c) {
    const RotarySpec *s = c->step->spec;
    const Operand    *in = c->step->in;
    RotateHeads       r = {.shape = s->shape,
                           .cosines = operand_at(&in[ROTARY_COSINES], c->mem),
                           .sines = operand_at(&in[ROTARY_SINES], c->mem),
                           .ids = operand_at(&in[ROTARY_POSITIONS], c->mem),
                           .cache = lengths_of(&s->group, operand_at(&in[ROTARY_LENGTHS], c->mem)),
                           .y = operand_at(&c->step->out[0], c->mem)};
    r.x = (const float *)operand_at(&in[ROTARY_X], c->mem) + s->x_at;
    Err e = c->slice > 0 ? ERR_OK : check_lengths(&s->group, r.cache.lengths);
    if (e == ERR_OK && c->slice == 0) e = check_positions(&r);
    if (e == ERR_OK)
        c->step->isa->rotate_heads(&r, c->part);
    else
        fail(c, e);
}

static uint32_t rotary_step_tasks(const Step *s, const Version *v) {
    (void)v;
    return rotate_heads_tasks(&((const RotarySpec *)s->spec)->shape);
}

static const StepKind rotary_kind = {
    .name = "rotary", .run = rotary_step_run, .tasks = rotary_step_tasks, .checks_inputs = true};

Err bind_rotary(Binder *b, const IrLayer *l, Step *s) {
    return bind_spec(b, l, &rotary_kind, sizeof(RotarySpec), s);
}

static void cache_step_run(const StepCall *c) {
    const CacheSpec *s = c->step->spec;
    const Operand   *in = c->step->in;
    CacheLengths     n = lengths_of(&s->group, operand_at(&in[CACHE_LENGTHS], c->mem));
    RotateHeads      r = {.shape = s->rotate,
                          .cosines = operand_at(&in[CACHE_COSINES], c->mem),
                          .sines = operand_at(&in[CACHE_SINES], c->mem),
                          .ids = operand_at(&in[CACHE_POSITIONS], c->mem),
                          .cache = n};
    CacheAppend      k = s->keys, v = s->values;
    Err              e = c->slice > 0 ? ERR_OK : check_lengths(&s->group, n.lengths);
    if (e == ERR_OK && c->slice == 0 && s->rotate.rotated > 0) e = check_positions(&r);
    if (e != ERR_OK) {
        fail(c, e);
        return;
    }
    k.cache = v.cache = n;
    if (s->rotate.rotated > 0) k.rotate = &r;
    k.old = operand_at(&in[CACHE_OLD_KEYS], c->mem);
    v.old = operand_at(&in[CACHE_OLD_VALUES], c->mem);
    k.x_at = (const float *)operand_at(&in[CACHE_KEYS], c->mem) + s->k_at;
    v.x_at = (const float *)operand_at(&in[CACHE_VALUES], c->mem) + s->v_at;
    k.y = operand_at(&c->step->out[0], c->mem);
    v.y = operand_at(&c->step->out[1], c->mem);
    c->step->isa->cache_append(&k, c->part);
    c->step->isa->cache_append(&v, c->part);
}

static uint32_t cache_step_tasks(const Step *s, const Version *v) {
    (void)v;
    return cache_append_tasks(&((const CacheSpec *)s->spec)->keys);
}

static const StepKind cache_kind = {
    .name = "cache", .run = cache_step_run, .tasks = cache_step_tasks, .checks_inputs = true};

Err bind_cache(Binder *b, const IrLayer *l, Step *s) {
    return bind_spec(b, l, &cache_kind, sizeof(CacheSpec), s);
}
