#include "compile/program.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/cpu.h"
#include "base/work_stop.h"
#include "compile/bind/bind.h"
#include "compile/versions.h"
#include "compile/lower/lower.h"
#include "compile/layout.h"

// Address space: weights of up to KEEP_FIRST bytes are contiguous.
enum { KEEP_FIRST = 1 << 28, IR_FIRST = 1 << 26 };
static const size_t ARENA_MOST = (size_t)1 << 37;
enum { HUGE_PAGE_MIN_BYTES = 4 << 20 };  // less needs no huge pages: TLBs cover it
enum { MACS_NS = 30, BYTES_NS = 20, SHORT_RUN_NS = 100000 };

static Err choose_caches(Program *p, const CacheSizes *given, Arena *a) {
    Cpu cpu;
    p->caches = *given;
    if (given->l1 != 0) return ERR_OK;
    TRY(cpu_read(a, &cgroup_roots, &cpu));
    p->caches = (CacheSizes){.l1 = cpu.l1d_bytes != 0 ? cpu.l1d_bytes : 32 << 10,
                             .l2 = cpu.l2_bytes != 0 ? cpu.l2_bytes : 512 << 10,
                             .l3 = cpu.l3_bytes != 0 ? cpu.l3_bytes : 8 << 20};
    return ERR_OK;
}

static void idle(const StepCall *c) { (void)c; }

// Schedulers need at least one step, also if the interpreter does all the work.
static void add_idle(Program *p) {
    static const StepKind kind = {.name = "idle", .run = idle, .tasks = step_one_task};
    p->steps[p->n_steps++] =
        (Step){.kind = &kind, .name = "interpreted", .weight = IR_NONE, .n_versions = 1};
}

static Err bind_steps(Program *p, Binder *b, bool at_least_one_step) {
    const Ir *ir = b->ir;
    p->steps = arena_try_new(&p->keep, Step, (size_t)ir->n_layers + 1);
    if (p->steps == NULL) return err_set(ERR_LIMIT, "no memory for %u layers", ir->n_layers);
    for (uint32_t i = 0; i < ir->n_layers; i++) {
        size_t mark = ir->arena->used;
        Step  *s = &p->steps[p->n_steps];
        TRY(work_stop_check());
        Err e = bind_layer(b, &ir->layers[i], s);
        if (e != ERR_OK) return ir->layers[i].node != NULL ? op_failed(ir->layers[i].node, e) : e;
        arena_rewind(ir->arena, mark);
        if (s->kind != NULL) p->n_steps++;
    }
    if (p->n_steps == 0 && at_least_one_step) add_idle(p);
    return ERR_OK;
}

// Pending uses of each constant: as a weight to pack, or as an output.
static uint32_t *count_uses(const Program *p, const Binder *b) {
    const Ir *ir = b->ir;
    uint32_t *uses = arena_new(ir->arena, uint32_t, ir->n_values);
    for (uint32_t i = 0; i < ir->n_values; i++) uses[i] = ir->values[i].output ? 1 : 0;
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].weight != IR_NONE) uses[p->steps[i].weight]++;
    return uses;
}

// Returns the whole pages of a constant that has no more uses to the system.
static void release_pages(const Binder *b, uint32_t weight) {
    const Tensor *t = ir_type(b->ir, weight);
    uintptr_t     page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)t->data;
    uintptr_t     end = begin + (uintptr_t)tensor_count(t) * dtype_size(t->dtype);
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    if (begin < end) (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

static Err pack_offered(const Step *s, Binder *b) {
    Version *all = arena_try_new(b->ir->arena, Version, PROFILE_CANDIDATES);
    if (all == NULL) return err_set(ERR_LIMIT, "no memory for versions");
    uint32_t n = s->kind->versions(s, &b->caches, all, PROFILE_CANDIDATES);
    for (uint32_t i = 0; i < n; i++) TRY(s->kind->pack(s, &all[i], b));
    return ERR_OK;
}

// A scheduler may run any version of a step at any time, so all their weights are packed now.
static Err pack_steps(Program *p, Binder *b, const ProgramOptions *o) {
    uint32_t *uses = count_uses(p, b);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        Step  *s = &p->steps[i];
        size_t mark = b->ir->arena->used;
        TRY(work_stop_check());
        s->serial = s->kind->tasks(s, &s->versions[0]) <= 1;
        for (uint32_t v = 0; s->kind->pack != NULL && v < s->n_versions; v++)
            TRY(s->kind->pack(s, &s->versions[v], b));
        if (o->pack_all_versions && s->key != NULL && s->kind->pack != NULL)
            TRY(pack_offered(s, b));
        arena_rewind(b->ir->arena, mark);
        if (s->weight != IR_NONE && --uses[s->weight] == 0 && o->release_weights)
            release_pages(b, s->weight);
    }
    return ERR_OK;
}

// Locates the graph outputs and the values that the interpreted tail reads.
static Err bind_outputs(Program *p, Binder *b) {
    const Graph *g = p->shaped->graph;
    const Ir    *ir = b->ir;
    bool         has_tail = false;
    TRY(bind_alloc(b, g->n_outputs * sizeof *p->outputs, &p->outputs));
    TRY(bind_alloc(b, g->n_nodes * sizeof *p->done, &p->done));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        TRY(bind_operand(b, ir->of_value[g->outputs[i]], &p->outputs[i]));
    // An output without a place in the program, such as a string input, is the interpreter's.
    for (uint32_t i = 0; i < g->n_outputs; i++)
        has_tail = has_tail || p->outputs[i].kind == OPERAND_NONE;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        p->done[i] = ir->lowered[i];
        has_tail = has_tail || !ir->lowered[i];
    }
    if (has_tail) TRY(bind_alloc(b, g->n_values * sizeof *p->tail_inputs, &p->tail_inputs));
    for (uint32_t i = 0; has_tail && i < g->n_values; i++) {
        uint32_t v = ir->of_value[i];
        if (v != IR_NONE && ir->values[v].output) TRY(bind_operand(b, v, &p->tail_inputs[i]));
    }
    if (!has_tail) p->done = NULL;
    return ERR_OK;
}

static Err check_room(const Program *p) {
    size_t most = p->limits.max_bytes;
    if (most == 0 || p->arena_bytes <= most) return ERR_OK;
    const char *setting = p->limits.setting;
    return err_set(ERR_LIMIT, "uses %zu bytes for intermediate values; %zu are allowed%s%s%s",
                   p->arena_bytes, most, setting != NULL ? " (`" : "",
                   setting != NULL ? setting : "", setting != NULL ? "`)" : "");
}

static Err build(Program *p, const ProgramOptions *o, Arena *a) {
    Ir         ir;
    MemoryPlan plan;
    p->isa = o->isa;
    if (p->isa == NULL) TRY(isa_choose(&p->isa));
    TRY(choose_caches(p, &o->caches, a));
    TRY(lower_graph(p->shaped, p->isa->lanes, o->shape_only, a, &ir));
    fuse_norms(&ir);
    fuse_attention(&ir);
    fuse_concats(&ir);
    fuse_integer_casts(&ir);
    fuse_elementwise(&ir);
    fuse_bytes(&ir);
    fuse_residuals(&ir);
    fuse_elementwise(&ir);
    fuse_channel_scale(&ir);
    layout_assign(&ir);
    memory_plan_make(&ir, &plan);
    p->arena_bytes = plan.bytes;
    if (o->needed != NULL) *o->needed = plan.bytes;
    TRY(check_room(p));
    Binder b = {.ir = &ir,
                .plan = &plan,
                .isa = p->isa,
                .caches = p->caches,
                .keep = &p->keep,
                .packed = o->packed,
                .width = o->weights,
                .report = o->report};
    b.constants = arena_try_new(a, Operand, ir.n_values);
    if (b.constants == NULL) return err_set(ERR_LIMIT, "no memory for %u values", ir.n_values);
    TRY(bind_steps(p, &b, o->at_least_one_step));
    TRY(versions_choose(p, &b, o));
    if (!versions_are_like(p, o->like)) TRY(versions_fit_pack_budget(p, &b));
    if (!o->shape_only) TRY(pack_steps(p, &b, o));
    return bind_outputs(p, &b);
}

// Only branches without loops are compiled: the interpreter alone counts loop iterations.
static bool has_loops(const Graph *g) {
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (op_is_control_flow(g->nodes[i].op) && g->nodes[i].op != OP_If) return true;
    return false;
}

static bool is_compilable(const ShapedGraph *s, const Attr *a) {
    if (a->kind != ATTR_GRAPH || has_loops(a->v.g)) return false;
    const ShapedGraph *body = shaped_graph_body(s, a->v.g);
    return body != NULL && body->graph->n_nodes > 0;
}

// Compiles the branches of If nodes in the interpreted tail.
static Err make_branches(Program *p, const ProgramOptions *o) {
    const Graph   *g = p->shaped->graph;
    ProgramOptions inner = *o;
    uint32_t       n = 0;
    inner.tune = NULL;
    inner.needed = NULL;
    inner.release_weights = false;
    inner.at_least_one_step = false;
    for (uint32_t i = 0; p->done != NULL && i < g->n_nodes; i++)
        for (uint32_t k = 0; g->nodes[i].op == OP_If && k < g->nodes[i].n_attr; k++)
            n += !p->done[i] && is_compilable(p->shaped, &g->nodes[i].attrs[k]);
    p->branches = arena_try_new(&p->keep, Program, n);
    if (p->branches == NULL) return err_set(ERR_LIMIT, "no memory for %u branches", n);
    for (uint32_t i = 0; p->done != NULL && i < g->n_nodes; i++)
        for (uint32_t k = 0; g->nodes[i].op == OP_If && k < g->nodes[i].n_attr; k++) {
            const Attr *a = &g->nodes[i].attrs[k];
            if (p->done[i] || !is_compilable(p->shaped, a)) continue;
            TRY(program_make(&p->branches[p->n_branches], shaped_graph_body(p->shaped, a->v.g),
                             &inner));
            p->n_branches++;
        }
    return ERR_OK;
}

// Estimate at typical compute and memory rates: the run ends before other threads wake up.
static bool is_short_run(const Program *p) {
    double ns = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const Step *s = &p->steps[i];
        ns += s->macs / MACS_NS;
        for (uint32_t k = 0; k < s->n_in; k++) ns += (double)s->in[k].bytes / BYTES_NS;
        for (uint32_t k = 0; k < s->n_out; k++) ns += (double)s->out[k].bytes / BYTES_NS;
    }
    return ns < SHORT_RUN_NS;
}

Err program_make(Program *p, const ShapedGraph *s, const ProgramOptions *o) {
    Arena  a = {0};
    size_t mark = o->scratch != NULL ? o->scratch->used : 0;
    CHECK(!o->shape_only || o->tune == NULL);
    CHECK(o->packed == NULL || (!o->release_weights && !o->shape_only));
    *p = (Program){.shaped = s,
                   .limits = o->limits,
                   .weights = o->weights,
                   .shape_only = o->shape_only,
                   .shares_weights = o->packed != NULL};
    TRY(arena_init_growing(&p->keep, KEEP_FIRST, ARENA_MOST));
    arena_use_huge_pages(&p->keep, HUGE_PAGE_MIN_BYTES);
    Err e = o->scratch == NULL ? arena_init_growing(&a, IR_FIRST, ARENA_MOST) : ERR_OK;
    if (e == ERR_OK) e = build(p, o, o->scratch != NULL ? o->scratch : &a);
    if (o->scratch != NULL) arena_rewind(o->scratch, mark);
    if (o->scratch == NULL) arena_finish(&a);
    if (e == ERR_OK) e = make_branches(p, o);
    p->short_run = is_short_run(p);
    p->weight_bytes = arena_in_use(&p->keep);
    arena_trim(&p->keep);
    if (e != ERR_OK) program_finish(p);
    return e;
}

void program_finish(Program *p) {
    for (uint32_t i = 0; i < p->n_branches; i++) program_finish(&p->branches[i]);
    arena_finish(&p->keep);
    *p = (Program){0};
}

static size_t used_scratch(const Program *p) {
    size_t most = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const Step *s = &p->steps[i];
        for (uint32_t v = 0; s->kind->scratch != NULL && v < s->n_versions; v++) {
            size_t bytes = s->kind->scratch(s, &s->versions[v]);
            if (bytes > most) most = bytes;
        }
    }
    return most;
}

// Smaller shapes may have versions that stage more.
size_t program_scratch(const Program *p) {
    size_t most = used_scratch(p);
    if (p->shares_weights) most += most / 2;
    return (most + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
}

bool program_same_layers(const Program *p, const Program *other) {
    if (p->n_steps != other->n_steps) return false;
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].kind != other->steps[i].kind || p->steps[i].node != other->steps[i].node)
            return false;
    return true;
}

bool program_fits(const Program *p, const Program *other) {
    if (!versions_are_like(p, other) || (p->done == NULL) != (other->done == NULL)) return false;
    if (p->n_branches > 0 || other->n_branches > 0) return false;
    return p->arena_bytes <= other->arena_bytes && used_scratch(p) <= program_scratch(other);
}

size_t program_peak_bytes(const Program *p, uint32_t parts) {
    return p->weight_bytes + p->arena_bytes + parts * program_scratch(p);
}
