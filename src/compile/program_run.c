// One run: every part goes through the steps; a barrier stands where one step's parts meet the
// next.
#include <stdio.h>

#include "base/check.h"
#include "base/fpu.h"
#include "compile/frame.h"
#include "compile/program.h"
#include "compile/run.h"

enum { REF_SHIFT = 36, BARE_SHIFT = 16, PAGE = 4096 };

static Err init_bodies(Space *s, const Program *p) {
    s->bodies = arena_try_new(&s->ref_keep, Space, p->n_bodies);
    if (s->bodies == NULL) return err_set(ERR_LIMIT, "no memory for %u branches", p->n_bodies);
    for (uint32_t i = 0; i < p->n_bodies; i++) {
        TRY(space_init(&s->bodies[i], &p->bodies[i], 1));
        s->n_bodies++;
    }
    s->kept = s->ref_keep.used;
    return ERR_OK;
}

// Address space is for those who need it: a server has many spaces.
static size_t ref_room(const Program *p) {
    bool rents = p->done != NULL || p->n_bodies > 0;
    for (uint32_t i = 0; i < p->n_steps && !rents; i++) rents = p->steps[i].kind->rents;
    return (size_t)1 << (rents ? REF_SHIFT : BARE_SHIFT);
}

Err space_init(Space *s, const Program *p, uint32_t parts) {
    CHECK(!p->hollow);
    *s = (Space){.parts = parts, .scratch_stride = program_scratch(p)};
    size_t bytes = p->arena_bytes + PAGE + parts * s->scratch_stride;
    TRY(arena_init(&s->memory, bytes + PAGE));
    Err e = arena_init(&s->ref_scratch, ref_room(p));
    if (e == ERR_OK) e = arena_init(&s->ref_keep, ref_room(p));
    if (e == ERR_OK) {
        s->base = arena_try(&s->memory, p->arena_bytes, 1, TENSOR_ALIGN);
        s->scratch = arena_try(&s->memory, parts * s->scratch_stride, 1, TENSOR_ALIGN);
        if (s->base == NULL || s->scratch == NULL) e = err_set(ERR_LIMIT, "no memory for a run");
    }
    if (e == ERR_OK) e = init_bodies(s, p);
    if (e != ERR_OK) space_finish(s);
    return e;
}

void space_finish(Space *s) {
    for (uint32_t i = 0; i < s->n_bodies; i++) space_finish(&s->bodies[i]);
    arena_finish(&s->memory);
    arena_finish(&s->ref_scratch);
    arena_finish(&s->ref_keep);
    *s = (Space){0};
}

Err space_blank_inputs(Space *s, const Program *p, Arena *a) {
    const Graph *g = p->special->graph;
    Tensor      *in = arena_try_new(a, Tensor, g->n_inputs);
    if (in == NULL) return err_set(ERR_LIMIT, "too many inputs");
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        in[i] = p->special->values[g->inputs[i]];
        if (tensor_known(&in[i])) TRY(tensor_room(&in[i], a));
    }
    s->inputs = in;
    return ERR_OK;
}

void program_begin(const Program *p, Space *s, const Tensor *inputs) {
    (void)p;
    s->inputs = inputs;
    s->failed = ERR_OK;
    atomic_store_explicit(&s->stop, false, memory_order_relaxed);
    arena_rewind(&s->ref_keep, s->kept);
    arena_rewind(&s->ref_scratch, 0);
}

void space_halt(Space *s) {
    if (s->failed != ERR_OK || !space_stopped(s)) return;
    s->failed = ERR_LIMIT;
    (void)snprintf(s->why, sizeof s->why, "it was stopped: it took too long");
}

uint32_t program_layers(const Program *p) { return p->n_steps + (p->done != NULL ? 1 : 0); }

bool program_solo(const Program *p, uint32_t layer) {
    return layer >= p->n_steps || p->steps[layer].solo;
}

static void compute_step(const Program *p, Space *space, uint32_t i, const Version *v,
                         uint32_t index, uint32_t count) {
    const Step *s = &p->steps[i];
    char       *scratch = space->scratch + index * space->scratch_stride;
    StepCall    c = {s, v, space, {index, count, scratch}};
    s->kind->run(&c);
}

static Err run_rest(const Program *p, Space *s, Arena *a, Tensor *outputs);

static void compute_rest(const Program *p, Space *s, Tensor *outputs) {
    if (s->failed != ERR_OK) return;
    s->failed = run_rest(p, s, &s->ref_keep, outputs);
    if (s->failed != ERR_OK) snprintf(s->why, sizeof s->why, "%s", err_why());
}

void program_layer(const Program *p, Space *s, uint32_t layer, uint32_t version, uint32_t index,
                   uint32_t count, Tensor *outputs) {
    bool solo = program_solo(p, layer);
    if (solo && index != 0) return;
    if (layer >= p->n_steps)
        compute_rest(p, s, outputs);
    else
        compute_step(p, s, layer, &p->steps[layer].versions[version], index, solo ? 1 : count);
}

typedef struct Run {
    const Program *program;
    Space         *space;
    Team          *team;
} Run;

static void compute_part(void *ctx, uint32_t index, uint32_t count) {
    const Run     *r = ctx;
    const Program *p = r->program;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const Step *s = &p->steps[i];
        uint32_t    parts = s->solo ? 1 : count;
        if (index < parts) compute_step(p, r->space, i, step_version(s, parts), index, parts);
        bool alone = s->solo && i + 1 < p->n_steps && p->steps[i + 1].solo;
        if (count > 1 && !alone) team_barrier(r->team);
        if (index == 0 && count == 1) space_halt(r->space);
        if (r->space->failed != ERR_OK && !alone) return;
    }
}

static Err take_handed(const Program *p, const Space *s, Frame *f) {
    const Graph *g = p->special->graph;
    for (uint32_t i = 0; i < g->n_inputs; i++)
        frame_set(f, g->inputs[i], (Slot){.t = s->inputs[i]});
    for (uint32_t i = 0; i < g->n_captures; i++)
        frame_set(f, g->captures[i].inner, (Slot){.t = s->inputs[g->n_inputs + i]});
    for (uint32_t i = 0; i < g->n_values; i++) {
        const Operand *o = &p->handed[i];
        if (o->kind == OPERAND_NONE || o->kind == OPERAND_INPUT) continue;
        Slot slot = {.t = o->type};
        slot.t.data = operand_at(o, s);
        frame_set(f, i, slot);
    }
    return ERR_OK;
}

static Err copy_out(const Tensor *t, Arena *a, Tensor *out) {
    OpCall c = {.keep = a};
    return run_keep(&c, t, out);
}

static Err collect_rest(const Program *p, const Frame *f, Arena *a, Tensor *outputs) {
    const Graph *g = p->special->graph;
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        if (p->outputs[i].kind != OPERAND_NONE) continue;
        const Tensor *t = &f->slots[g->outputs[i]].t;
        if (t->data == NULL)
            return err_set(ERR_INVALID, "output '%s' was not computed",
                           g->values[g->outputs[i]].name);
        TRY(copy_out(t, a, &outputs[i]));
    }
    return ERR_OK;
}

// Shapes that only numbers decide, and control flow: node by node, behind everything else.
static Err run_rest(const Program *p, Space *s, Arena *a, Tensor *outputs) {
    Machine m = {.limits = p->limits,
                 .scratch = s->ref_scratch,
                 .keep = s->ref_keep,
                 .program = p,
                 .space = s};
    Frame   f;
    Err     e = frame_init(&f, &m, p->special);
    if (e == ERR_OK) e = take_handed(p, s, &f);
    if (e == ERR_OK) e = frame_run(&f, p->done);
    if (e == ERR_OK) e = collect_rest(p, &f, a, outputs);
    frame_finish(&f);
    s->ref_scratch = m.scratch;
    s->ref_keep = m.keep;
    return e;
}

Err program_collect(const Program *p, const Space *s, Arena *a, Tensor *outputs) {
    if (s->failed != ERR_OK) return err_set(s->failed, "%s", s->why);
    for (uint32_t i = 0; i < p->special->graph->n_outputs; i++) {
        const Operand *o = &p->outputs[i];
        if (o->kind == OPERAND_NONE) continue;
        Tensor t = o->type;
        t.data = operand_at(o, s);
        outputs[i] = t;
        if (a != NULL) TRY(copy_out(&t, a, &outputs[i]));
    }
    return ERR_OK;
}

Err program_run(const Program *p, Space *s, Team *team, const Tensor *inputs, Arena *a,
                Tensor *outputs) {
    Run r = {p, s, team};
    CHECK(team == NULL || team_size(team) <= s->parts);
    program_begin(p, s, inputs);
    if (team != NULL && team_size(team) > 1 && !p->brief) {
        team_run(team, compute_part, &r);
    } else {
        FpuState old = fpu_flush_denormals();
        compute_part(&r, 0, 1);
        fpu_restore(old);
    }
    if (s->failed != ERR_OK) return err_set(s->failed, "%s", s->why);
    if (p->done != NULL) TRY(run_rest(p, s, a != NULL ? a : &s->ref_keep, outputs));
    return program_collect(p, s, a, outputs);
}

Err program_once(const Special *s, const Tensor *inputs, const ProgramOptions *o, Arena *a,
                 Tensor *outputs) {
    Program p;
    Space   space = {0};
    TRY(program_make(&p, s, o));
    Err e = space_init(&space, &p, 1);
    if (e == ERR_OK) e = program_run(&p, &space, NULL, inputs, a, outputs);
    space_finish(&space);
    program_finish(&p);
    return e;
}
