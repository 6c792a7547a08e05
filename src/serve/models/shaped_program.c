// ShapedProgram: a program for the input shapes of a request, run by the tenant of a compiled shape
// with open dimensions a little larger. All functions but `make` run on the loop's thread.
//
// Open dimensions are rounded up, so that a few tenants with their tables and execution contexts
// serve all sizes. Where the rounded shapes do not work, the exact ones get a tenant of their own.
#include <stdio.h>

#include "base/clock.h"
#include "serve/models/registry_int.h"

#define RETRY_NS INT64_C(10000000000)  // until a program that failed is made again

enum { SCRATCH_KEPT = 4 << 20 };  // bytes that compilation keeps for the next one

Err shaped_program_init(ModelVersion *mv) {
    uint32_t       n = mv->source.open ? (uint32_t)mv->from->serve.shapes : 0;
    uint32_t       inputs = mv->signature.n_inputs;
    ShapedProgram *all = arena_try_new(&mv->arena, ShapedProgram, n);
    mv->bucket = arena_try_new(&mv->arena, Tensor, inputs);
    if (all == NULL || mv->bucket == NULL)
        return err_set(ERR_LIMIT, "out of memory for %u shapes", n);
    for (uint32_t i = 0; i < n; i++) {
        all[i].owner = mv;
        all[i].shapes = arena_try_new(&mv->arena, Tensor, inputs);
        if (all[i].shapes == NULL) return err_set(ERR_LIMIT, "out of memory for %u shapes", n);
    }
    mv->programs = all;
    mv->n_programs = n;
    return ERR_OK;
}

// The shapes of the tenant for these inputs: mv->bucket. False: they are the inputs' own.
static bool find_bucket(ModelVersion *mv, const Tensor *inputs) {
    bool other = false;
    for (uint32_t i = 0; i < mv->signature.n_inputs; i++) {
        const TensorSpec *spec = &mv->signature.inputs[i];
        const Tensor     *declared = spec->reshaped ? &spec->own : &spec->type;
        Tensor           *t = &mv->bucket[i];
        *t = inputs[i];
        t->data = NULL;
        if (declared->rank != t->rank) continue;
        for (int32_t d = 0; d < t->rank; d++) {
            if (declared->dims[d] < 0) t->dims[d] = prepared_shape_round(t->dims[d]);
            other = other || t->dims[d] != inputs[i].dims[d];
        }
    }
    return other;
}

static ShapedProgram *find(ModelVersion *mv, const Tensor *inputs) {
    for (uint32_t i = 0; i < mv->n_programs; i++)
        if (mv->programs[i].state != SHAPED_PROGRAM_FREE &&
            compiled_shape_matches(mv->programs[i].shapes, inputs, mv->signature.n_inputs))
            return &mv->programs[i];
    return NULL;
}

static void drop(ShapedProgram *p) {
    prepared_shape_finish(&p->prepared);
    if (p->charged > 0) budget_give(&p->owner->info.memory, p->charged);
    p->charged = p->lacked = 0;
    p->of = NULL;
    p->state = SHAPED_PROGRAM_FREE;
}

void shaped_program_drop(const CompiledShape *cs) {
    ModelVersion *mv = cs->owner;
    for (uint32_t i = 0; i < mv->n_programs; i++)
        if (mv->programs[i].of == cs) drop(&mv->programs[i]);
}

// A free one, else the least recently used of those without requests.
static ShapedProgram *choose(ModelVersion *mv) {
    ShapedProgram *best = NULL;
    for (uint32_t i = 0; i < mv->n_programs; i++) {
        ShapedProgram *p = &mv->programs[i];
        if (p->state == SHAPED_PROGRAM_FREE) return p;
        if (p->state == SHAPED_PROGRAM_MAKING || p->running > 0) continue;
        if (best == NULL || p->used < best->used) best = p;
    }
    if (best != NULL) drop(best);
    return best;
}

static Err make(void *self) {  // on the shaper's thread
    ShapedProgram *p = self;
    Arena         *scratch = &p->owner->registry->scratch;
    Err e = prepared_shape_make(&p->prepared, &p->of->prepared, p->shapes, scratch, &p->fits);
    arena_shrink(scratch, SCRATCH_KEPT);
    return e;
}

static Err charge(ShapedProgram *p) {
    size_t bytes = p->fits ? p->prepared.bytes : 0;
    if (bytes == 0) return ERR_OK;
    if (!budget_take(&p->owner->info.memory, bytes))
        return err_set(ERR_LIMIT, "out of memory for these shapes (`buffered_mb`)");
    p->charged = bytes;
    return ERR_OK;
}

static void fail(ShapedProgram *p, Err e, const char *why) {
    CompiledShape *of = p->of;
    drop(p);
    p->of = of;
    p->state = e == ERR_OK ? SHAPED_PROGRAM_MISFIT : SHAPED_PROGRAM_FAILED;
    p->large = e == ERR_LIMIT;
    p->retry = clock_monotonic_ns() + RETRY_NS;
    (void)snprintf(p->why, sizeof p->why, "%s", why);
}

static void made(void *self, Err e, const char *why);

// One program of a model at a time, so that many shapes of one do not delay those of others.
static void make_next(ModelVersion *mv) {
    ShapedProgram *p = mv->pending;
    while (mv->making == NULL && p != NULL && p->waiters == NULL) {  // its requests were cancelled
        CompiledShape *of = p->of;
        mv->pending = p->next;
        drop(p);
        compiled_shape_release(of);
        p = mv->pending;
    }
    if (mv->making != NULL || p == NULL) return;
    mv->pending = p->next;
    mv->making = p;
    p->job = (LoaderJob){.work = make, .done = made, .self = p, .urgent = true, .quick = true};
    loader_put(mv->registry->shaper, &p->job);
}

static void make_later(ShapedProgram *p) {
    ModelVersion *mv = p->owner;
    p->next = NULL;
    if (mv->pending == NULL)
        mv->pending = p;
    else
        mv->last_pending->next = p;
    mv->last_pending = p;
    make_next(mv);
}

static void made(void *self, Err e, const char *why) {
    ShapedProgram *p = self;
    ModelVersion  *mv = p->owner;
    CompiledShape *of = p->of;
    size_t         lacked = 0;
    if (e == ERR_OK && charge(p) != ERR_OK) {
        e = ERR_LIMIT;
        why = err_why();
        lacked = p->prepared.bytes;
    }
    p->state = SHAPED_PROGRAM_READY;
    if (e != ERR_OK || !p->fits) fail(p, e, why);
    p->lacked = lacked;
    mv->making = NULL;
    make_next(mv);
    registry_pin(&mv->info);
    registry_wake(mv->registry, &p->waiters);
    compiled_shape_release(of);
    registry_release(mv->registry, &mv->info);
}

static void wait_for(ShapedProgram *p, LoopPost *when) {
    atomic_store_explicit(&when->next, p->waiters, memory_order_relaxed);
    p->waiters = when;
}

// Makes a program that the tenant of cs runs; cs is in use meanwhile. False: all slots are in use.
static bool start(ModelVersion *mv, CompiledShape *cs, const Tensor *inputs, LoopPost *when) {
    ShapedProgram *p = choose(mv);
    if (p == NULL) return false;
    for (uint32_t i = 0; i < mv->signature.n_inputs; i++) {
        p->shapes[i] = inputs[i];
        p->shapes[i].data = NULL;
    }
    p->of = cs;
    p->state = SHAPED_PROGRAM_MAKING;
    p->used = ++mv->registry->uses;
    wait_for(p, when);
    make_later(p);
    return true;
}

static ShapeLookup serve(CompiledShape *cs, ShapedProgram *p, ServedShape *out) {
    *out = (ServedShape){
        .tenant = cs->tenant, .target_ns = cs->target_ns, .compiled = cs, .shaped = p};
    if (p != NULL) {
        p->running++;
        out->program = &p->prepared.program;
    }
    return SHAPE_READY;
}

static ShapeLookup find_exact(ModelVersion *mv, const Tensor *inputs, size_t held, LoopPost *when,
                              ServedShape *out) {
    CompiledShape *cs = NULL;
    ShapeLookup    found = compiled_shape_find(mv, inputs, held, when, &cs);
    return found == SHAPE_READY ? serve(cs, NULL, out) : found;
}

// Shapes without a program. If the rounded ones fail, or other programs are in use, their own.
static ShapeLookup find_new(ModelVersion *mv, const Tensor *inputs, size_t held, LoopPost *when,
                            ServedShape *out) {
    CompiledShape *cs = NULL;
    if (mv->n_programs == 0 || compiled_shape_base(mv) == NULL || !find_bucket(mv, inputs))
        return find_exact(mv, inputs, held, when, out);
    ShapeLookup found = compiled_shape_find(mv, mv->bucket, held, when, &cs);
    if (found == SHAPE_COMPILING) return found;
    if (found != SHAPE_READY) return find_exact(mv, inputs, held, when, out);
    if (start(mv, cs, inputs, when)) return SHAPE_COMPILING;
    compiled_shape_release(cs);
    return find_exact(mv, inputs, held, when, out);
}

ShapeLookup registry_find_shape(ModelRegistry *r, ModelInfo *s, const Tensor *inputs, size_t held,
                                LoopPost *when, ServedShape *out) {
    ModelVersion  *mv = model_version_of(s);
    ShapedProgram *p = find(mv, inputs);
    bool           late = p != NULL && clock_monotonic_ns() >= p->retry;
    if (p == NULL) return find_new(mv, inputs, held, when, out);
    p->used = ++r->uses;
    switch (p->state) {
    case SHAPED_PROGRAM_READY:
        p->of->used = r->uses;
        p->of->used_at = loop_now(r->o.loop);
        p->of->running++;
        return serve(p->of, p, out);
    case SHAPED_PROGRAM_MAKING: wait_for(p, when); return SHAPE_COMPILING;
    case SHAPED_PROGRAM_MISFIT: return find_exact(mv, inputs, held, when, out);
    case SHAPED_PROGRAM_FAILED:
    case SHAPED_PROGRAM_FREE:
    default: break;
    }
    bool short_of = p->lacked > 0 && budget_short(&s->memory, p->lacked) != NULL;
    if (short_of || (!late && p->lacked == 0)) {
        (void)err_note("model '%s' does not compile for these shapes: %s", s->name, p->why);
        return short_of ? SHAPE_CROWDED : p->large ? SHAPE_TOO_LARGE : SHAPE_INVALID;
    }
    drop(p);
    return find_new(mv, inputs, held, when, out);
}

void registry_release_shape(ModelRegistry *r, ModelInfo *s, const ServedShape *shape) {
    (void)r, (void)s;
    if (shape->shaped != NULL) shape->shaped->running--;
    compiled_shape_release(shape->compiled);
}
