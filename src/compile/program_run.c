// One run: each thread computes its part of every step; a barrier separates dependent steps.
#include <stdio.h>

#include "base/err.h"
#include "base/fp.h"
#include "base/poison.h"
#include "base/work_stop.h"
#include "compile/interp/frame.h"
#include "compile/program.h"
#include "compile/interp/run_ops.h"

enum { REF_FIRST = 1 << 18, PAGE = 4096, HUGE_PAGE = 2 << 20 };  // bytes
enum { SLICES_MOST = 1 << 20 };

static const size_t REF_MOST = (size_t)1 << 36;

static Err init_branches(RunMemory *s, const Program *p) {
    s->branches = arena_try_new(&s->ref_keep, RunMemory, p->n_branches);
    if (s->branches == NULL) return err_set(ERR_LIMIT, "no memory for %u branches", p->n_branches);
    for (uint32_t i = 0; i < p->n_branches; i++) {
        TRY(run_memory_init(&s->branches[i], &p->branches[i], 1));
        s->n_branches++;
    }
    s->kept = s->ref_keep.used;
    return ERR_OK;
}

// Buffers and scratch of more than a huge page begin at one. Kernels read and write many streams at
// once: with small pages, most of their accesses would miss the first-level TLB.
static Err reserve_buffers(RunMemory *s, const Program *p) {
    size_t scratch = s->parts * s->scratch_stride, planned = p->arena_bytes + PAGE;
    size_t align = planned + scratch >= HUGE_PAGE ? HUGE_PAGE : TENSOR_ALIGN;
    TRY(arena_init(&s->memory, planned + scratch + align + PAGE));
    if (align == HUGE_PAGE) arena_use_huge_pages(&s->memory, 1);
    size_t past = (uintptr_t)s->memory.base % align;
    void  *gap = arena_try(&s->memory, past > 0 ? align - past : 0, 1, TENSOR_ALIGN);
    s->base = arena_try(&s->memory, p->arena_bytes, 1, TENSOR_ALIGN);
    s->scratch = arena_try(&s->memory, scratch, 1, TENSOR_ALIGN);
    if (gap != NULL && s->base != NULL && s->scratch != NULL) return ERR_OK;
    run_memory_finish(s);
    return err_set(ERR_LIMIT, "no memory for a run");
}

Err run_memory_init(RunMemory *s, const Program *p, uint32_t parts) {
    CHECK(!p->shape_only);
    *s = (RunMemory){.parts = parts, .scratch_stride = program_scratch(p)};
    TRY(reserve_buffers(s, p));
    Err e = arena_init_growing(&s->ref_scratch, REF_FIRST, REF_MOST);
    if (e == ERR_OK) e = arena_init_growing(&s->ref_keep, REF_FIRST, REF_MOST);
    if (e == ERR_OK) {
        arena_use_huge_pages(&s->ref_scratch, REF_FIRST);
        arena_use_huge_pages(&s->ref_keep, REF_FIRST);
    }
    if (e == ERR_OK) e = init_branches(s, p);
    if (e != ERR_OK) run_memory_finish(s);
    return e;
}

Err run_memory_charge(RunMemory *s, const InterpLimits *limits) {
    s->limit.whole = s->budget;
    s->limit.most = limits->max_bytes;
    s->limit.setting = limits->setting;
    s->ref_scratch.refused = s->ref_keep.refused = 0;
    if (arena_charge(&s->ref_scratch, &s->limit) && arena_charge(&s->ref_keep, &s->limit))
        return ERR_OK;
    return run_over_budget(&s->limit, s->ref_scratch.high + s->ref_keep.high);
}

void run_memory_settle(RunMemory *s) {
    (void)arena_charge(&s->ref_scratch, NULL);
    (void)arena_charge(&s->ref_keep, NULL);
    if (s->paid > 0) budget_give(&s->limit, s->paid);
    s->paid = 0;
}

void run_memory_release(RunMemory *s) {
    for (uint32_t i = 0; i < s->n_held; i++) slot_release(&s->held[i]);
    s->held = NULL;
    s->n_held = 0;
    arena_rewind(&s->ref_keep, s->kept);
    arena_rewind(&s->ref_scratch, 0);
    run_memory_settle(s);
    if (s->ref_keep.base == NULL) return;
    arena_shrink(&s->ref_keep, s->kept > REF_FIRST ? s->kept : REF_FIRST);
    arena_shrink(&s->ref_scratch, REF_FIRST);
}

void run_memory_finish(RunMemory *s) {
    run_memory_release(s);
    for (uint32_t i = 0; i < s->n_branches; i++) run_memory_finish(&s->branches[i]);
    arena_finish(&s->memory);
    arena_finish(&s->ref_scratch);
    arena_finish(&s->ref_keep);
    *s = (RunMemory){0};
}

Err run_memory_zero_inputs(RunMemory *s, const Program *p, Arena *a) {
    const Graph *g = p->shaped->graph;
    Tensor      *in = arena_try_new(a, Tensor, g->n_inputs);
    if (in == NULL) return err_set(ERR_LIMIT, "too many inputs");
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        in[i] = p->shaped->values[g->inputs[i]];
        if (tensor_known(&in[i])) TRY(tensor_alloc(&in[i], a));
    }
    s->inputs = in;
    return ERR_OK;
}

void program_begin(const Program *p, RunMemory *s, const Tensor *inputs) {
    (void)p;
    run_memory_release(s);
    poison_fill(s->memory.base, s->memory.used);
    s->inputs = inputs;
    s->failed = ERR_OK;
    s->complete = false;
    atomic_store_explicit(&s->stop, WORK_GO, memory_order_relaxed);
}

void run_memory_check_stop(RunMemory *s) {
    if (s->failed != ERR_OK || !run_memory_stopped(s)) return;
    s->failed = ERR_LIMIT;
    (void)snprintf(s->why, sizeof s->why, "stopped: the run took too long");
}

uint32_t program_layer_count(const Program *p) { return p->n_steps + (p->done != NULL ? 1 : 0); }

bool program_is_serial(const Program *p, uint32_t layer) {
    return layer >= p->n_steps || p->steps[layer].serial;
}

bool program_checks_inputs(const Program *p, uint32_t layer) {
    return layer < p->n_steps && p->steps[layer].kind->checks_inputs;
}

static Version slice_version(const Step *s, const Version *v) {
    Version own = *v;
    if (s->kind->refine != NULL) s->kind->refine(s, &own);
    return own;
}

static void compute_step(const Program *p, RunMemory *mem, uint32_t i, const Version *v,
                         StepSlice slice, uint32_t index, uint32_t count) {
    const Step *s = &p->steps[i];
    char       *scratch = mem->scratch + index * mem->scratch_stride;
    Part        part = {slice.at * count + index, slice.of * count, scratch};
    Version     own = slice.of > 1 ? slice_version(s, v) : *v;
    StepCall    c = {s, &own, mem, part, slice.at};
    s->kind->run(&c);
}

uint32_t program_slices(const Program *p, uint32_t layer, uint32_t version, uint32_t count) {
    if (program_is_serial(p, layer)) return 1;
    const Step *s = &p->steps[layer];
    Version     v = slice_version(s, &s->versions[version]);
    uint32_t    n = s->kind->tasks(s, &v) / count;
    return n < 1 ? 1 : n < SLICES_MOST ? n : SLICES_MOST;
}

static Err run_tail(const Program *p, RunMemory *s, Arena *a, Tensor *outputs);

static void compute_tail(const Program *p, RunMemory *s, Tensor *outputs) {
    if (s->failed != ERR_OK) return;
    s->failed = run_tail(p, s, NULL, outputs);
    if (s->failed == ERR_OK) return;
    (void)snprintf(s->why, sizeof s->why, "%s", err_why());
    run_memory_release(s);
}

void program_run_slice(const Program *p, RunMemory *s, uint32_t layer, uint32_t version,
                       StepSlice slice, uint32_t index, uint32_t count, Tensor *outputs) {
    bool serial = program_is_serial(p, layer);
    if (serial && index != 0) return;
    if (layer >= p->n_steps)
        compute_tail(p, s, outputs);
    else
        compute_step(p, s, layer, &p->steps[layer].versions[version], slice, index,
                     serial ? 1 : count);
}

void program_run_layer(const Program *p, RunMemory *s, uint32_t layer, uint32_t version,
                       uint32_t index, uint32_t count, Tensor *outputs) {
    program_run_slice(p, s, layer, version, (StepSlice){0, 1}, index, count, outputs);
}

typedef struct Run {
    const Program *program;
    RunMemory     *mem;
    Team          *team;
} Run;

static void compute_part(void *ctx, uint32_t index, uint32_t count) {
    const Run     *r = ctx;
    const Program *p = r->program;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const Step *s = &p->steps[i];
        uint32_t    parts = s->serial ? 1 : count;
        if (index < parts)
            compute_step(p, r->mem, i, step_version(s, parts), (StepSlice){0, 1}, index, parts);
        bool alone = s->serial && i + 1 < p->n_steps && p->steps[i + 1].serial;
        if (count > 1 && !alone) team_barrier(r->team);
        if (index == 0 && count == 1) run_memory_check_stop(r->mem);
        if (r->mem->failed != ERR_OK && !alone) return;
    }
}

static Err set_tail_inputs(const Program *p, const RunMemory *s, Frame *f) {
    const Graph *g = p->shaped->graph;
    for (uint32_t i = 0; i < g->n_inputs; i++)
        frame_set(f, g->inputs[i], (ValueSlot){.t = s->inputs[i]});
    for (uint32_t i = 0; i < g->n_captures; i++)
        frame_set(f, g->captures[i].inner, (ValueSlot){.t = s->inputs[g->n_inputs + i]});
    for (uint32_t i = 0; i < g->n_values; i++) {
        const Operand *o = &p->tail_inputs[i];
        if (o->kind == OPERAND_NONE || o->kind == OPERAND_INPUT) continue;
        ValueSlot slot = {.t = o->type};
        slot.t.data = operand_at(o, s);
        frame_set(f, i, slot);
    }
    return ERR_OK;
}

// Keeps the memory of an output that the tail computed until the next run.
static Err hold_output(RunMemory *s, const Frame *f, uint32_t i, Tensor *out) {
    if (s->held == NULL)
        s->held = arena_try_new(&s->ref_keep, ValueSlot, f->shaped->graph->n_outputs);
    if (s->held == NULL) return err_set(ERR_LIMIT, "no memory for the outputs");
    TRY(frame_share_output(f, i, &s->held[s->n_held]));
    *out = s->held[s->n_held++].t;
    return ERR_OK;
}

static Err run_frame(const Program *p, RunMemory *s, Frame *f, Arena *a, Tensor *outputs) {
    TRY(set_tail_inputs(p, s, f));
    TRY(frame_run(f, p->done));
    for (uint32_t i = 0; i < p->shaped->graph->n_outputs; i++) {
        if (p->outputs[i].kind != OPERAND_NONE) continue;
        TRY(a != NULL ? frame_copy_output(f, i, a, &outputs[i])
                      : hold_output(s, f, i, &outputs[i]));
    }
    return ERR_OK;
}

// The interpreted tail: data-dependent shapes and control flow, node by node. Without an arena, its
// outputs stay in the RunMemory.
static Err run_tail(const Program *p, RunMemory *s, Arena *a, Tensor *outputs) {
    TRY(run_memory_charge(s, &p->limits));
    InterpState m = {.limits = p->limits,
                     .budget = &s->limit,
                     .scratch = &s->ref_scratch,
                     .keep = &s->ref_keep,
                     .pool = &s->pool,
                     .program = p,
                     .mem = s};
    Frame       f;
    WorkFlag   *before = work_stop_watch(run_memory_stop_flag(s));
    Err         e = frame_init(&f, &m, p->shaped);
    if (e == ERR_OK) e = run_frame(p, s, &f, a, outputs);
    (void)work_stop_watch(before);
    frame_finish(&f);
    interp_give(&m, value_pool_trim(&s->pool));
    arena_rewind(&s->ref_scratch, 0);
    arena_shrink(&s->ref_scratch, REF_FIRST);
    budget_give(&s->limit, m.paid_bytes - m.live_bytes);
    s->paid = m.live_bytes;
    return e;
}

Err program_outputs(const Program *p, RunMemory *s, Arena *a, Tensor *outputs) {
    if (s->failed != ERR_OK) return err_set(s->failed, "%s", s->why);
    for (uint32_t i = 0; i < p->shaped->graph->n_outputs; i++) {
        const Operand *o = &p->outputs[i];
        if (o->kind == OPERAND_NONE) continue;
        Tensor t = o->type;
        t.data = operand_at(o, s);
        outputs[i] = t;
        if (a != NULL) TRY(run_copy(a, &t, &outputs[i]));
    }
    return ERR_OK;
}

Err program_run(const Program *p, RunMemory *s, Team *team, const Tensor *inputs, Arena *a,
                Tensor *outputs) {
    Run r = {p, s, team};
    CHECK(team == NULL || team_size(team) <= s->parts);
    program_begin(p, s, inputs);
    if (team != NULL && team_size(team) > 1 && !p->short_run) {
        team_run(team, compute_part, &r);
    } else {
        FpuState old = fpu_flush_denormals();
        compute_part(&r, 0, 1);
        fpu_restore(old);
    }
    if (s->failed != ERR_OK) return err_set(s->failed, "%s", s->why);
    Err e = p->done != NULL ? run_tail(p, s, a, outputs) : ERR_OK;
    if (e == ERR_OK) e = program_outputs(p, s, a, outputs);
    if (e != ERR_OK || a != NULL) run_memory_release(s);
    return e;
}

Err program_run_once(const ShapedGraph *s, const Tensor *inputs, const ProgramOptions *o, Arena *a,
                     Tensor *outputs) {
    Program   p;
    RunMemory mem = {0};
    TRY(program_make(&p, s, o));
    Err e = run_memory_init(&mem, &p, 1);
    if (e == ERR_OK) e = program_run(&p, &mem, NULL, inputs, a, outputs);
    run_memory_finish(&mem);
    program_finish(&p);
    return e;
}
