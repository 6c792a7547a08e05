// Equal: runs every version that kernels offer of every heavy layer, and compares with the
// reference.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "base/fpu.h"
#include "base/rng.h"
#include "compile/layout.h"
#include "compile/program.h"
#include "tests/compile/cut.h"

enum { EQUAL_GUARD = 64, EQUAL_PARTS = 3, EQUAL_VERSIONS = PROFILE_CANDIDATES };

// Of the largest number of the output. Winograd's larger tiles divide and multiply by larger
// numbers on the way.
static const double equal_tolerance = 2e-4, equal_tolerance_wino4 = 1e-3;

typedef struct Equal {
    const Isa *isa;
    double     max_macs;   // layers beyond it are looked at over a smaller picture; 0: none
    double     skip_macs;  // layers that are larger even then are left out; 0: none
    Map        seen;       // layers by shape and by what follows them
    Arena      keep;       // of their names
    uint32_t   layers, shapes, shrunk, skipped, versions, failed;
    double     worst, worst_wino4;
    void (*tell)(const char *what);  // of every version that fails
} Equal;

static inline Err equal_init(Equal *q, const Isa *isa, void (*tell)(const char *what)) {
    *q = (Equal){.isa = isa, .tell = tell};
    TRY(arena_init(&q->keep, (size_t)1 << 30));
    map_init(&q->seen, &q->keep);
    return ERR_OK;
}

static inline void equal_finish(Equal *q) { arena_finish(&q->keep); }

static inline size_t equal_rounded(size_t bytes) {
    return (bytes + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
}

// Room between two guards; all of it is NaN.
static inline char *equal_room(size_t bytes) {
    size_t all = equal_rounded(bytes) + 2 * EQUAL_GUARD;
    char  *at = aligned_alloc(TENSOR_ALIGN, all);
    if (at == NULL) abort();
    memset(at, 0xff, all);
    return at + EQUAL_GUARD;
}

// Gives the room back; false when something was written around it.
static inline bool equal_leave(void *room, size_t bytes) {
    unsigned char *at = room;
    bool           clean = true;
    for (size_t i = 0; i < EQUAL_GUARD; i++)
        clean = clean && at[(ptrdiff_t)i - EQUAL_GUARD] == 0xff;
    for (size_t i = bytes; i < equal_rounded(bytes) + EQUAL_GUARD; i++)
        clean = clean && at[i] == 0xff;
    free(at - EQUAL_GUARD);
    return clean;
}

// Lanes of a blocked tensor beyond its channels may hold anything: here they do.
static inline void equal_poison(const Operand *o, uint32_t lanes, float *at) {
    if (o->bytes == (size_t)tensor_count(&o->type) * sizeof *at) return;
    Images im = layout_images(&o->type);
    size_t blocks = (im.c + lanes - 1) / lanes, used = im.c - (blocks - 1) * lanes;
    for (size_t n = 0; n < im.n; n++)
        for (size_t i = 0; i < im.pixels; i++)
            for (size_t l = used; l < lanes; l++)
                at[(((n + 1) * blocks - 1) * im.pixels + i) * lanes + l] = NAN;
}

// The operand moves out of the arena, into room of exactly its size.
static inline void equal_move(Operand *o, const Space *space, uint32_t lanes, bool copy) {
    if (o->kind != OPERAND_ARENA && o->kind != OPERAND_INPUT) return;
    char *room = equal_room(o->bytes + EQUAL_GUARD);  // a vector more may be read, never written
    if (copy) {
        memcpy(room, operand_at(o, space), o->bytes);
        if (o->type.dtype == DT_F32) equal_poison(o, lanes, (float *)(void *)room);
    }
    *o = (Operand){.kind = OPERAND_CONST, .at = room, .type = o->type, .bytes = o->bytes};
}

// A step that reads and writes outside the arena, so that it can be run again and again.
typedef struct EqualStep {
    const Step *of;
    Step        step;
    Space      *space;
    char       *before;  // the arena as the step finds it
} EqualStep;

static inline void equal_take(EqualStep *e, const Step *s, Space *space, size_t arena_bytes) {
    *e = (EqualStep){.of = s, .step = *s, .space = space};
    e->before = malloc(arena_bytes + 1);
    e->step.in = calloc(s->n_in + 1, sizeof *s->in);
    e->step.out = calloc(s->n_out + 1, sizeof *s->out);
    if (e->step.in == NULL || e->step.out == NULL || e->before == NULL) abort();
    memcpy(e->before, space->base, arena_bytes);
    for (uint32_t i = 0; i < s->n_in; i++) {
        e->step.in[i] = s->in[i];
        equal_move(&e->step.in[i], space, s->isa->lanes, true);
    }
    equal_move(&e->step.finish.add, space, s->isa->lanes, true);
    for (uint32_t i = 1; s->finish.chain != NULL && i < s->finish.chain->n_args; i++)
        equal_move(&e->step.finish.args[i], space, s->isa->lanes, true);
}

static inline bool equal_drop(const Operand *was, const Operand *is) {
    if (was->kind != OPERAND_ARENA && was->kind != OPERAND_INPUT) return true;
    return equal_leave(is->at, is->bytes);
}

static inline bool equal_give(EqualStep *e) {
    const Step *s = e->of;
    bool        clean = equal_drop(&s->finish.add, &e->step.finish.add);
    for (uint32_t i = 0; i < s->n_in; i++) clean = equal_drop(&s->in[i], &e->step.in[i]) && clean;
    for (uint32_t i = 1; s->finish.chain != NULL && i < s->finish.chain->n_args; i++)
        clean = equal_drop(&s->finish.args[i], &e->step.finish.args[i]) && clean;
    free(e->step.in);
    free(e->step.out);
    free(e->before);
    return clean;
}

// Runs a version part by part and puts its results where the step's own would be. False when it
// wrote anywhere else.
static inline bool equal_run(EqualStep *e, const Version *v, uint32_t parts) {
    const Step *s = e->of;
    size_t      scratch = s->kind->scratch != NULL ? s->kind->scratch(s, v) : 0;
    bool        clean = true;
    for (uint32_t i = 0; i < s->n_out; i++) {
        e->step.out[i] = s->out[i];
        equal_move(&e->step.out[i], e->space, 0, false);
    }
    for (uint32_t i = 0; i < parts; i++) {
        char    *room = equal_room(scratch);
        StepCall c = {&e->step, v, e->space, {i, parts, room}};
        s->kind->run(&c);
        clean = equal_leave(room, scratch) && clean;
    }
    for (uint32_t i = 0; i < s->n_out; i++) {
        if (s->out[i].kind == OPERAND_NONE) continue;
        memcpy(operand_at(&s->out[i], e->space), e->step.out[i].at, s->out[i].bytes);
        clean = equal_drop(&s->out[i], &e->step.out[i]) && clean;
    }
    return clean;
}

static inline void equal_plain(const Program *p, Space *space, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) {
        const Step *s = &p->steps[i];
        StepCall    c = {s, &s->versions[0], space, {0, 1, space->scratch}};
        s->kind->run(&c);
    }
}

// The largest difference as a share of the largest number; infinite where there is no number.
static inline double equal_apart(const Tensor *want, const float *got) {
    const float *x = want->data;
    double       most = 1e-6, apart = 0;
    for (int64_t i = 0; i < tensor_count(want); i++) {
        double d = fabs((double)x[i] - (double)got[i]);
        most = fmax(most, fabs((double)x[i]));
        if (!(d <= apart)) apart = isnan(d) ? INFINITY : d;
    }
    return apart / most;
}

static inline double equal_outputs(const Program *p, const Space *space, const Tensor *want) {
    double most = 0;
    for (uint32_t i = 0; i < p->special->graph->n_outputs; i++)
        if (p->outputs[i].kind != OPERAND_NONE && want[i].dtype == DT_F32)
            most = fmax(most, equal_apart(&want[i], operand_at(&p->outputs[i], space)));
    return most;
}

static inline void equal_judge(Equal *q, const Step *s, const Version *v, uint32_t parts,
                               bool clean, double apart) {
    bool    wino4 = v->algo == ALGO_WINOGRAD4;
    double *worst = wino4 ? &q->worst_wino4 : &q->worst;
    char    what[512];
    *worst = fmax(*worst, apart);
    if (clean && apart <= (wino4 ? equal_tolerance_wino4 : equal_tolerance)) return;
    q->failed++;
    snprintf(what, sizeof what,
             "'%s' (%s) on %s, %u parts: %s order %u split %u tile %ux%u pack %u rows %u columns "
             "%u depth %u: %s, %.3g of the largest output apart",
             s->name, s->key, s->isa->name, parts, algo_name((Algo)v->algo), v->order, v->split,
             v->tile_rows, v->tile_vecs, v->pack, v->rows, v->columns, v->depth,
             clean ? "wrong" : "writes elsewhere", apart);
    q->tell(what);
}

// One version, in its place in the program: everything behind it runs on what it gave.
static inline void equal_version(Equal *q, const Program *p, EqualStep *e, const Version *v,
                                 uint32_t parts, const Tensor *want) {
    memcpy(e->space->base, e->before, p->arena_bytes);
    bool clean = equal_run(e, v, parts);
    equal_plain(p, e->space, (uint32_t)(e->of - p->steps) + 1, p->n_steps);
    equal_judge(q, e->of, v, parts, clean, equal_outputs(p, e->space, want));
}

static inline void equal_step(Equal *q, const Program *p, Space *space, const Step *s,
                              const Tensor *want) {
    Version  *all = calloc(EQUAL_VERSIONS, sizeof *all);
    EqualStep e;
    if (all == NULL) abort();
    uint32_t n = s->kind->versions(s, &p->caches, all, EQUAL_VERSIONS);
    equal_take(&e, s, space, p->arena_bytes);
    for (uint32_t i = 0; i < n; i++) {
        equal_version(q, p, &e, &all[i], 1, want);
        equal_version(q, p, &e, &all[i], EQUAL_PARTS, want);
    }
    memcpy(space->base, e.before, p->arena_bytes);
    (void)equal_run(&e, &s->versions[0], 1);
    q->versions += n;
    if (!equal_give(&e)) q->failed++, q->tell("an input was overwritten by one of these versions");
    free(all);
}

static inline void equal_steps(Equal *q, const Program *p, Space *space, const Tensor *want) {
    FpuState old = fpu_flush_denormals();
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const Step *s = &p->steps[i];
        if (s->key != NULL && s->kind->versions != NULL)
            equal_step(q, p, space, s, want);
        else
            equal_plain(p, space, i, i + 1);
    }
    fpu_restore(old);
}

static inline Err equal_fill(const Tensor *types, uint32_t n, Rng r, Arena *a, Tensor **out) {
    Tensor *in = arena_new(a, Tensor, n);
    for (uint32_t i = 0; i < n; i++) {
        in[i] = types[i];
        TRY(tensor_room(&in[i], a));
        for (int64_t k = 0; k < tensor_count(&in[i]); k++) {
            if (in[i].dtype == DT_F32) ((float *)in[i].data)[k] = (float)rng_normal(&r);
            if (in[i].dtype == DT_I64) ((int64_t *)in[i].data)[k] = (int64_t)rng_below(&r, 2);
        }
    }
    *out = in;
    return ERR_OK;
}

static inline bool equal_has(const Program *p, const Step *like, bool same_size) {
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const Step *s = &p->steps[i];
        if (s->key == NULL || s->kind != like->kind) continue;
        if (!same_size || strcmp(s->key, like->key) == 0) return true;
    }
    return false;
}

static inline bool equal_too_large(const Equal *q, const Program *p) {
    double macs = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) macs += p->steps[i].macs;
    return q->skip_macs > 0 && macs > q->skip_macs;
}

static inline Err equal_program(Equal *q, const Program *p, const Tensor *in, Arena *a) {
    Tensor *want = arena_new(a, Tensor, p->special->graph->n_outputs);
    Space   space;
    TRY(interp_run(p->special, in, &(InterpLimits){0}, a, want));
    TRY(space_init(&space, p, 1));
    space.inputs = in;
    equal_steps(q, p, &space, want);
    Err e = space.failed;
    space_finish(&space);
    return e;
}

// Every heavy layer of the graph in every version, against the interpreter's outputs of all of it.
// One of them must be like that step, which comes from elsewhere and may be NULL.
static inline Err equal_graph(Equal *q, const Graph *g, const Tensor *types, const Step *like,
                              bool same_size, Arena *a) {
    Special *s = NULL;
    Tensor  *in = NULL;
    Program  p;
    TRY(equal_fill(types, g->n_inputs, (Rng){11}, a, &in));
    TRY(special_make(g, in, interp_eval, a, &s));
    TRY(program_make(&p, s, &(ProgramOptions){.isa = q->isa, .pack_all = true}));
    Err e = ERR_OK;
    if (like != NULL && !equal_has(&p, like, same_size))
        e = err_set(ERR_INVALID, "alone it is compiled into something else than %s", like->key);
    else if (equal_too_large(q, &p))
        q->skipped++;
    else
        e = equal_program(q, &p, in, a);
    program_finish(&p);
    return e;
}

// A layer's shape and what follows its sums.
static inline const char *equal_name(const Step *s, Arena *a) {
    const StepFinish *f = &s->finish;
    char             *name =
        arena_printf(a, "%s%s%s clip %g %g", s->key, f->bias != NULL ? " bias" : "",
                     f->add.kind != OPERAND_NONE ? " add" : "", (double)f->lo, (double)f->hi);
    for (uint32_t i = 0; f->chain != NULL && i < f->chain->n_steps; i++)
        name = arena_printf(a, "%s %s", name, chain_op_name((ChainOp)f->chain->steps[i].op));
    for (uint32_t i = 1; f->chain != NULL && i < f->chain->n_args; i++)
        name = arena_printf(a, "%s %d", name, f->modes[i]);
    return name;
}

static inline Err equal_layer(Equal *q, const Special *s, const Step *step, Arena *a) {
    size_t mark = a->used;
    Cut    c;
    cut_layer(s, step, a, &c);
    if (q->max_macs > 0 && step->macs > q->max_macs) cut_shrink(s, q->max_macs / step->macs, a, &c);
    q->shrunk += c.shrunk;
    Err e = equal_graph(q, &c.graph, c.inputs, step, !c.shrunk, a);
    arena_rewind(a, mark);
    return e == ERR_OK ? e : err_add(e, "layer '%s'", step->name);
}

// The heavy layers of a network, one of each shape that was not seen before.
static inline Err equal_layers(Equal *q, const Special *s, Arena *a) {
    Program p;
    Err     e = ERR_OK;
    TRY(program_make(&p, s, &(ProgramOptions){.isa = q->isa}));
    for (uint32_t i = 0; e == ERR_OK && i < p.n_steps; i++) {
        const Step *step = &p.steps[i];
        if (step->key == NULL || step->kind->versions == NULL) continue;
        q->layers++;
        size_t      mark = q->keep.used;
        const char *name = equal_name(step, &q->keep);
        if (map_get(&q->seen, name) != MAP_NONE) {
            arena_rewind(&q->keep, mark);
            continue;
        }
        map_put(&q->seen, name, 0);
        q->shapes++;
        e = equal_layer(q, s, step, a);
    }
    program_finish(&p);
    return e;
}
