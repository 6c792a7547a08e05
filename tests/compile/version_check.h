// VersionCheck: compares every kernel version of every heavy layer with the reference.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "base/fp.h"
#include "base/rng.h"
#include "compile/layout.h"
#include "compile/program.h"
#include "tests/compile/extract_layer.h"

enum {
    VERSION_CHECK_GUARD = 64,
    VERSION_CHECK_PARTS = 3,
    VERSION_CHECK_VERSIONS = PROFILE_CANDIDATES
};

// Relative to the largest output. Large Winograd tiles lose precision.
static const double version_check_tolerance = 2e-4, version_check_tolerance_wino4 = 1e-3;

typedef struct VersionCheck {
    const Isa *isa;
    double     max_macs;   // larger layers are shrunk; 0: none
    double     skip_macs;  // layers that are larger even then are skipped; 0: none
    StringMap  seen;       // layers by shape and epilogue
    Arena      keep;       // of their keys
    uint32_t   layers, shapes, shrunk, skipped, versions, failed;
    double     worst, worst_wino4;
    void (*tell)(const char *what);  // called for every version that fails
} VersionCheck;

static inline Err version_check_init(VersionCheck *q, const Isa *isa,
                                     void (*tell)(const char *what)) {
    *q = (VersionCheck){.isa = isa, .tell = tell};
    TRY(arena_init(&q->keep, (size_t)1 << 30));
    string_map_init(&q->seen, &q->keep);
    return ERR_OK;
}

static inline void version_check_finish(VersionCheck *q) { arena_finish(&q->keep); }

static inline size_t version_check_rounded(size_t bytes) {
    return (bytes + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
}

// Memory between two guards, filled with NaN.
static inline char *version_check_room(size_t bytes) {
    size_t all = version_check_rounded(bytes) + 2 * VERSION_CHECK_GUARD;
    char  *at = aligned_alloc(TENSOR_ALIGN, all);
    if (at == NULL) abort();
    memset(at, 0xff, all);
    return at + VERSION_CHECK_GUARD;
}

// Frees it; false: a guard was overwritten.
static inline bool version_check_leave(void *room, size_t bytes) {
    unsigned char *at = room;
    bool           clean = true;
    for (size_t i = 0; i < VERSION_CHECK_GUARD; i++)
        clean = clean && at[(ptrdiff_t)i - VERSION_CHECK_GUARD] == 0xff;
    for (size_t i = bytes; i < version_check_rounded(bytes) + VERSION_CHECK_GUARD; i++)
        clean = clean && at[i] == 0xff;
    free(at - VERSION_CHECK_GUARD);
    return clean;
}

// Fills the lanes beyond the last channel of a blocked tensor, which may hold anything.
static inline void version_check_poison(const Operand *o, uint32_t lanes, float *at) {
    if (o->bytes == (size_t)tensor_count(&o->type) * sizeof *at) return;
    ImageDims im = layout_image_dims(&o->type);
    size_t    blocks = (im.c + lanes - 1) / lanes, used = im.c - (blocks - 1) * lanes;
    for (size_t n = 0; n < im.n; n++)
        for (size_t i = 0; i < im.pixels; i++)
            for (size_t l = used; l < lanes; l++)
                at[(((n + 1) * blocks - 1) * im.pixels + i) * lanes + l] = NAN;
}

// Moves the operand out of the arena into memory of exactly its size.
static inline void version_check_move(Operand *o, const RunMemory *mem, uint32_t lanes, bool copy) {
    if (o->kind != OPERAND_ARENA && o->kind != OPERAND_INPUT) return;
    char *room = version_check_room(
        o->bytes + VERSION_CHECK_GUARD);  // kernels may read one vector more, never write it
    if (copy) {
        memcpy(room, operand_at(o, mem), o->bytes);
        if (o->type.dtype == DT_F32) version_check_poison(o, lanes, (float *)(void *)room);
    }
    *o = (Operand){.kind = OPERAND_CONST, .at = room, .type = o->type, .bytes = o->bytes};
}

// A step with operands outside of the arena, so that it can run repeatedly.
typedef struct EqualStep {
    const Step *of;
    Step        step;
    RunMemory  *mem;
    char       *before;  // copy of the arena before the step
} EqualStep;

static inline void version_check_take(EqualStep *e, const Step *s, RunMemory *mem,
                                      size_t arena_bytes) {
    *e = (EqualStep){.of = s, .step = *s, .mem = mem};
    e->before = malloc(arena_bytes + 1);
    e->step.in = calloc(s->n_in + 1, sizeof *s->in);
    e->step.out = calloc(s->n_out + 1, sizeof *s->out);
    if (e->step.in == NULL || e->step.out == NULL || e->before == NULL) abort();
    memcpy(e->before, mem->base, arena_bytes);
    for (uint32_t i = 0; i < s->n_in; i++) {
        e->step.in[i] = s->in[i];
        version_check_move(&e->step.in[i], mem, s->isa->lanes, true);
    }
    version_check_move(&e->step.epilogue.add, mem, s->isa->lanes, true);
    for (uint32_t i = 1; s->epilogue.program != NULL && i < s->epilogue.program->n_args; i++)
        version_check_move(&e->step.epilogue.args[i], mem, s->isa->lanes, true);
}

static inline bool version_check_drop(const Operand *was, const Operand *is) {
    if (was->kind != OPERAND_ARENA && was->kind != OPERAND_INPUT) return true;
    return version_check_leave(is->at, is->bytes);
}

static inline bool version_check_give(EqualStep *e) {
    const Step *s = e->of;
    bool        clean = version_check_drop(&s->epilogue.add, &e->step.epilogue.add);
    for (uint32_t i = 0; i < s->n_in; i++)
        clean = version_check_drop(&s->in[i], &e->step.in[i]) && clean;
    for (uint32_t i = 1; s->epilogue.program != NULL && i < s->epilogue.program->n_args; i++)
        clean = version_check_drop(&s->epilogue.args[i], &e->step.epilogue.args[i]) && clean;
    free(e->step.in);
    free(e->step.out);
    free(e->before);
    return clean;
}

// Runs a version part by part and copies its results into the step's outputs. False: it wrote
// elsewhere.
static inline bool version_check_run(EqualStep *e, const Version *v, uint32_t parts) {
    const Step *s = e->of;
    size_t      scratch = s->kind->scratch != NULL ? s->kind->scratch(s, v) : 0;
    bool        clean = true;
    for (uint32_t i = 0; i < s->n_out; i++) {
        e->step.out[i] = s->out[i];
        version_check_move(&e->step.out[i], e->mem, 0, false);
    }
    for (uint32_t i = 0; i < parts; i++) {
        char    *room = version_check_room(scratch);
        StepCall c = {&e->step, v, e->mem, {i, parts, room}, 0};
        s->kind->run(&c);
        clean = version_check_leave(room, scratch) && clean;
    }
    for (uint32_t i = 0; i < s->n_out; i++) {
        if (s->out[i].kind == OPERAND_NONE) continue;
        memcpy(operand_at(&s->out[i], e->mem), e->step.out[i].at, s->out[i].bytes);
        clean = version_check_drop(&s->out[i], &e->step.out[i]) && clean;
    }
    return clean;
}

static inline void version_check_plain(const Program *p, RunMemory *mem, uint32_t from,
                                       uint32_t to) {
    for (uint32_t i = from; i < to; i++) {
        const Step *s = &p->steps[i];
        StepCall    c = {s, &s->versions[0], mem, {0, 1, mem->scratch}, 0};
        s->kind->run(&c);
    }
}

// Largest difference relative to the largest value; infinite if one is not finite.
static inline double version_check_apart(const Tensor *want, const float *got) {
    const float *x = want->data;
    double       most = 1e-6, apart = 0;
    for (int64_t i = 0; i < tensor_count(want); i++) {
        double d = fabs((double)x[i] - (double)got[i]);
        most = fmax(most, fabs((double)x[i]));
        if (!(d <= apart)) apart = isnan(d) ? INFINITY : d;
    }
    return apart / most;
}

static inline double version_check_outputs(const Program *p, const RunMemory *mem,
                                           const Tensor *want) {
    double most = 0;
    for (uint32_t i = 0; i < p->shaped->graph->n_outputs; i++)
        if (p->outputs[i].kind != OPERAND_NONE && want[i].dtype == DT_F32)
            most = fmax(most, version_check_apart(&want[i], operand_at(&p->outputs[i], mem)));
    return most;
}

static inline void version_check_judge(VersionCheck *q, const Step *s, const Version *v,
                                       uint32_t parts, bool clean, double apart) {
    bool    wino4 = v->algo == ALGO_WINOGRAD4;
    double *worst = wino4 ? &q->worst_wino4 : &q->worst;
    char    what[512];
    *worst = fmax(*worst, apart);
    if (clean && apart <= (wino4 ? version_check_tolerance_wino4 : version_check_tolerance)) return;
    q->failed++;
    snprintf(what, sizeof what,
             "'%s' (%s) on %s, %u parts: %s order %u split %u tile %ux%u pack %u rows %u columns "
             "%u depth %u: %s, %.3g of the largest output apart",
             s->name, s->key, s->isa->name, parts, algo_name((Algo)v->algo), v->order, v->split,
             v->tile_rows, v->tile_vecs, v->pack, v->rows, v->columns, v->depth,
             clean ? "wrong" : "writes elsewhere", apart);
    q->tell(what);
}

// One version within the program: all later steps run on its result.
static inline void version_check_version(VersionCheck *q, const Program *p, EqualStep *e,
                                         const Version *v, uint32_t parts, const Tensor *want) {
    memcpy(e->mem->base, e->before, p->arena_bytes);
    bool clean = version_check_run(e, v, parts);
    version_check_plain(p, e->mem, (uint32_t)(e->of - p->steps) + 1, p->n_steps);
    version_check_judge(q, e->of, v, parts, clean, version_check_outputs(p, e->mem, want));
}

static inline void version_check_step(VersionCheck *q, const Program *p, RunMemory *mem,
                                      const Step *s, const Tensor *want) {
    Version  *all = calloc(VERSION_CHECK_VERSIONS, sizeof *all);
    EqualStep e;
    if (all == NULL) abort();
    uint32_t n = s->kind->versions(s, &p->caches, all, VERSION_CHECK_VERSIONS);
    version_check_take(&e, s, mem, p->arena_bytes);
    for (uint32_t i = 0; i < n; i++) {
        version_check_version(q, p, &e, &all[i], 1, want);
        version_check_version(q, p, &e, &all[i], VERSION_CHECK_PARTS, want);
    }
    memcpy(mem->base, e.before, p->arena_bytes);
    (void)version_check_run(&e, &s->versions[0], 1);
    q->versions += n;
    if (!version_check_give(&e))
        q->failed++, q->tell("an input was overwritten by one of these versions");
    free(all);
}

static inline void version_check_steps(VersionCheck *q, const Program *p, RunMemory *mem,
                                       const Tensor *want) {
    FpuState old = fpu_flush_denormals();
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const Step *s = &p->steps[i];
        if (s->key != NULL && s->kind->versions != NULL)
            version_check_step(q, p, mem, s, want);
        else
            version_check_plain(p, mem, i, i + 1);
    }
    fpu_restore(old);
}

static inline Err version_check_fill(const Tensor *types, uint32_t n, Rng r, Arena *a,
                                     Tensor **out) {
    Tensor *in = arena_new(a, Tensor, n);
    for (uint32_t i = 0; i < n; i++) {
        in[i] = types[i];
        TRY(tensor_alloc(&in[i], a));
        for (int64_t k = 0; k < tensor_count(&in[i]); k++) {
            if (in[i].dtype == DT_F32) ((float *)in[i].data)[k] = (float)rng_normal(&r);
            if (in[i].dtype == DT_I64) ((int64_t *)in[i].data)[k] = (int64_t)rng_below(&r, 2);
        }
    }
    *out = in;
    return ERR_OK;
}

static inline bool version_check_has(const Program *p, const Step *like, bool same_size) {
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const Step *s = &p->steps[i];
        if (s->key == NULL || s->kind != like->kind) continue;
        if (!same_size || strcmp(s->key, like->key) == 0) return true;
    }
    return false;
}

static inline bool version_check_too_large(const VersionCheck *q, const Program *p) {
    double macs = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) macs += p->steps[i].macs;
    return q->skip_macs > 0 && macs > q->skip_macs;
}

static inline Err version_check_program(VersionCheck *q, const Program *p, const Tensor *in,
                                        Arena *a) {
    Tensor   *want = arena_new(a, Tensor, p->shaped->graph->n_outputs);
    RunMemory mem;
    TRY(interp_run(p->shaped, in, &(InterpLimits){0}, a, want));
    TRY(run_memory_init(&mem, p, 1));
    mem.inputs = in;
    version_check_steps(q, p, &mem, want);
    Err e = mem.failed;
    run_memory_finish(&mem);
    return e;
}

// Every heavy layer of the graph in every version, against the interpreter's outputs. One layer
// must have the key of `like` (may be NULL).
static inline Err version_check_graph(VersionCheck *q, const Graph *g, const Tensor *types,
                                      const Step *like, bool same_size, Arena *a) {
    ShapedGraph *s = NULL;
    Tensor      *in = NULL;
    Program      p;
    TRY(version_check_fill(types, g->n_inputs, (Rng){11}, a, &in));
    TRY(shaped_graph_make(g, in, interp_eval, a, &s));
    TRY(program_make(&p, s, &(ProgramOptions){.isa = q->isa, .pack_all_versions = true}));
    Err e = ERR_OK;
    if (like != NULL && !version_check_has(&p, like, same_size))
        e = err_set(ERR_INVALID, "alone it is compiled into something else than %s", like->key);
    else if (version_check_too_large(q, &p))
        q->skipped++;
    else
        e = version_check_program(q, &p, in, a);
    program_finish(&p);
    return e;
}

// A layer's shape and epilogue.
static inline const char *version_check_name(const Step *s, Arena *a) {
    const StepEpilogue *f = &s->epilogue;
    char               *name =
        arena_printf(a, "%s%s%s clip %g %g", s->key, f->bias != NULL ? " bias" : "",
                     f->add.kind != OPERAND_NONE ? " add" : "", (double)f->lo, (double)f->hi);
    for (uint32_t i = 0; f->program != NULL && i < f->program->n_steps; i++)
        name =
            arena_printf(a, "%s %s", name, ewise_op_name((ElementwiseOp)f->program->steps[i].op));
    for (uint32_t i = 1; f->program != NULL && i < f->program->n_args; i++)
        name = arena_printf(a, "%s %d", name, f->modes[i]);
    return name;
}

static inline Err version_check_layer(VersionCheck *q, const ShapedGraph *s, const Step *step,
                                      Arena *a) {
    size_t         mark = a->used;
    ExtractedLayer c;
    extract_layer(s, step, a, &c);
    if (q->max_macs > 0 && step->macs > q->max_macs)
        extract_shrink(s, q->max_macs / step->macs, a, &c);
    q->shrunk += c.shrunk;
    Err e = version_check_graph(q, &c.graph, c.inputs, step, !c.shrunk, a);
    arena_rewind(a, mark);
    return e == ERR_OK ? e : err_add(e, "layer '%s'", step->name);
}

// The heavy layers of a network, once per shape.
static inline Err version_check_layers(VersionCheck *q, const ShapedGraph *s, Arena *a) {
    Program p;
    Err     e = ERR_OK;
    TRY(program_make(&p, s, &(ProgramOptions){.isa = q->isa}));
    for (uint32_t i = 0; e == ERR_OK && i < p.n_steps; i++) {
        const Step *step = &p.steps[i];
        if (step->key == NULL || step->kind->versions == NULL) continue;
        q->layers++;
        size_t      mark = q->keep.used;
        const char *name = version_check_name(step, &q->keep);
        if (string_map_get(&q->seen, name) != STRING_MAP_NONE) {
            arena_rewind(&q->keep, mark);
            continue;
        }
        string_map_put(&q->seen, name, 0);
        q->shapes++;
        e = version_check_layer(q, s, step, a);
    }
    program_finish(&p);
    return e;
}
