#include "compile/interp/frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/poison.h"
#include "base/work_stop.h"
#include "compile/interp/run_ops.h"
#include "compile/program.h"
#include "compile/step.h"
#include "model/work.h"

enum { PAY_STEP = 65536, MAPPED_MIN = VALUE_BLOCK_MAX, RECORD = 64, PAGE = 4096 };  // bytes

// Runs with fewer bytes use the heap alone: most runs have few small values.
enum { POOLED_FROM = 4 << 20 };

_Static_assert(sizeof(ValueBuf) <= RECORD, "a value follows its record");

// Takes from the budget in steps, so that small values cost no atomic operations.
static bool take_more(InterpState *m, size_t more) {
    size_t step = more > PAY_STEP ? more : PAY_STEP;
    if (!budget_take(m->budget, step)) {
        if (!budget_take(m->budget, more)) return false;
        step = more;
    }
    m->paid_bytes += step;
    return true;
}

static bool try_take(InterpState *m, size_t bytes) {
    size_t free_bytes = m->paid_bytes - m->live_bytes;
    if (bytes > free_bytes && !take_more(m, bytes - free_bytes)) return false;
    m->live_bytes += bytes;
    return true;
}

Err interp_take(InterpState *m, size_t bytes) {
    if (try_take(m, bytes)) return ERR_OK;
    interp_give(m, value_pool_trim(m->pool));
    if (try_take(m, bytes)) return ERR_OK;
    return run_over_budget(m->budget, bytes - (m->paid_bytes - m->live_bytes));
}

// Large amounts are given back at once, for other requests.
void interp_give(InterpState *m, size_t bytes) {
    m->live_bytes -= bytes;
    size_t free_bytes = m->paid_bytes - m->live_bytes;
    if (free_bytes < MAPPED_MIN) return;
    budget_give(m->budget, free_bytes);
    m->paid_bytes -= free_bytes;
}

static size_t frame_bytes(const ShapedGraph *s) {
    uint32_t n = s->graph->n_values;
    return (n > 0 ? n : 1) * sizeof(ValueSlot);
}

Err frame_init(Frame *f, InterpState *m, const ShapedGraph *s) {
    *f = (Frame){.state = m, .shaped = s};
    uint32_t n = s->graph->n_values;
    TRY(interp_take(m, frame_bytes(s)));
    f->slots = calloc(1, frame_bytes(s));
    if (f->slots == NULL) {
        interp_give(m, frame_bytes(s));
        return err_set(ERR_LIMIT, "no memory for %u values", n);
    }
    for (uint32_t i = 0; i < n; i++)
        if (s->values[i].data != NULL) f->slots[i].t = s->values[i];
    return ERR_OK;
}

void frame_finish(Frame *f) {
    if (f->slots == NULL) return;
    for (uint32_t i = 0; i < f->shaped->graph->n_values; i++) slot_drop(f->state, &f->slots[i]);
    interp_give(f->state, frame_bytes(f->shaped));
    free(f->slots);
    f->slots = NULL;
}

// Of a value in the heap or in memory of its own: its memory, its record, and what the allocator
// adds.
static size_t slot_cost(size_t room) { return room + RECORD + 2 * sizeof(size_t); }

static Err no_memory(size_t bytes) { return err_set(ERR_LIMIT, "no memory for %zu bytes", bytes); }

static Err alloc_mapped(InterpState *m, size_t bytes, size_t need, ValueBuf **out) {
    size_t room = (need / PAGE + 1) * PAGE;
    TRY(interp_take(m, slot_cost(room)));
    ValueBuf *b = malloc(sizeof *b);
    void     *data = b != NULL ? value_map(room) : NULL;
    if (data == NULL) {
        free(b);
        interp_give(m, slot_cost(room));
        return no_memory(bytes);
    }
    *b = (ValueBuf){.refs = 1, .bytes = bytes, .room = room, .data = data, .mapped = true};
    *out = b;
    return ERR_OK;
}

// NULL: the budget or the system has no slab.
static ValueBuf *alloc_pooled(InterpState *m, size_t bytes, size_t room) {
    ValueSlab *slab = NULL;
    ValueBuf  *b = value_pool_take(m->pool, RECORD + room, &slab);
    if (b == NULL) {
        if (!try_take(m, VALUE_SLAB)) return NULL;
        if (!value_pool_add(m->pool)) {
            interp_give(m, VALUE_SLAB);
            return NULL;
        }
        b = value_pool_take(m->pool, RECORD + room, &slab);
        CHECK(b != NULL);
    }
    *b = (ValueBuf){
        .refs = 1, .bytes = bytes, .room = room, .data = (char *)b + RECORD, .slab = slab};
    return b;
}

static Err alloc_heap(InterpState *m, size_t bytes, size_t room, ValueBuf **out) {
    TRY(interp_take(m, slot_cost(room)));
    ValueBuf *b = aligned_alloc(TENSOR_ALIGN, RECORD + room);
    if (b == NULL) {
        interp_give(m, slot_cost(room));
        return no_memory(bytes);
    }
    memset(b, 0, RECORD + room);
    *b = (ValueBuf){.refs = 1, .bytes = bytes, .room = room, .data = (char *)b + RECORD};
    *out = b;
    return ERR_OK;
}

static Err alloc_small(InterpState *m, size_t bytes, size_t room, ValueBuf **out) {
    if (m->live_bytes >= POOLED_FROM) *out = alloc_pooled(m, bytes, room);
    return *out != NULL ? ERR_OK : alloc_heap(m, bytes, room, out);
}

Err slot_alloc(InterpState *m, ValueSlot *s) {
    size_t    bytes = 0;
    ValueBuf *b = NULL;
    TRY(tensor_measure(&s->t, &bytes));
    size_t room = (bytes / TENSOR_ALIGN + 1) * TENSOR_ALIGN;
    if (RECORD + room > MAPPED_MIN)
        TRY(alloc_mapped(m, bytes, room, &b));
    else
        TRY(alloc_small(m, bytes, room, &b));
    s->buf = b;
    s->t.data = b->data;
    return ERR_OK;
}

ValueSlot slot_share(const ValueSlot *s) {
    if (s->buf != NULL) s->buf->refs++;
    return *s;
}

// Frees a value; returns what its run gets back. NULL: its run is over, nothing is kept.
static size_t buf_free(InterpState *m, ValueBuf *b) {
    poison_fill(b->data, b->bytes);
    if (b->slab != NULL) return value_slab_give(b->slab, b, m != NULL);
    size_t back = slot_cost(b->room);
    if (b->mapped) value_unmap(b->data, b->room);
    free(b);
    return back;
}

static void let_go(InterpState *m, ValueSlot *s) {
    size_t back = s->buf != NULL && --s->buf->refs == 0 ? buf_free(m, s->buf) : 0;
    if (m != NULL && back > 0) interp_give(m, back);
    *s = (ValueSlot){0};
}

void slot_release(ValueSlot *s) { let_go(NULL, s); }
void slot_drop(InterpState *m, ValueSlot *s) { let_go(m, s); }

void frame_set(Frame *f, uint32_t value, ValueSlot s) {
    slot_drop(f->state, &f->slots[value]);
    f->slots[value] = s;
}

Err frame_check_type(const Tensor *inferred, const Tensor *found) {
    if (inferred->dtype != DT_NONE && inferred->dtype != found->dtype)
        return err_set(ERR_INVALID, "type %s was inferred, %s was found",
                       dtype_name(inferred->dtype), dtype_name(found->dtype));
    if (inferred->rank == RANK_UNKNOWN || tensor_same_shape(inferred, found)) return ERR_OK;
    char a[96], b[96];
    tensor_shape_text(inferred, a, sizeof a);
    tensor_shape_text(found, b, sizeof b);
    return err_set(ERR_INVALID, "shape %s was inferred, %s was found", a, b);
}

static Err prepare(Frame *f, const Node *n, const OpCall *c, Tensor *out, ValueSlot *slots) {
    TRY(infer_node(c, out));
    for (uint32_t i = 0; i < n->n_out; i++) {
        Err e = ERR_OK;
        slots[i].t = out[i];
        if (n->out[i] != NO_VALUE) e = frame_check_type(&f->shaped->values[n->out[i]], &out[i]);
        if (e == ERR_OK) e = slot_alloc(f->state, &slots[i]);
        if (e != ERR_OK) return op_failed(n, e);
        out[i] = slots[i].t;
    }
    return ERR_OK;
}

static Err count_work(InterpState *m, const Node *n, const OpCall *c, const Tensor *out) {
    if (m->limits.max_macs == 0) return ERR_OK;
    int64_t macs = work_macs(n, c->in, out);
    if (macs > m->limits.max_macs - m->macs)
        return err_set(ERR_LIMIT, "needs more than the allowed %lld multiply-accumulates",
                       (long long)m->limits.max_macs);
    m->macs += macs;
    return ERR_OK;
}

static Err evaluate(Frame *f, const Node *n, const OpCall *c, Tensor *out, ValueSlot *slots) {
    TRY(prepare(f, n, c, out, slots));
    Err e = work_stop_check();
    if (e == ERR_OK) e = count_work(f->state, n, c, out);
    if (e == ERR_OK) e = run_op(n->op)(c, out);
    if (e == ERR_OK)
        e = work_stop_check();  // an operator told to stop leaves its result unfinished
    return e == ERR_OK ? e : op_failed(n, e);
}

static Err compute(Frame *f, const Node *n, ValueSlot *slots) {
    InterpState   *m = f->state;
    const Tensor **in = arena_try_new(m->scratch, const Tensor *, n->n_in);
    Tensor        *out = arena_try_new(m->scratch, Tensor, n->n_out);
    if (in == NULL || out == NULL) return err_set(ERR_LIMIT, "too many inputs or outputs");
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = n->in[i] != NO_VALUE ? &f->slots[n->in[i]].t : NULL;
    OpCall c = {.node = n, .in = in, .scratch = m->scratch, .keep = m->keep};
    m->scratch->refused = m->keep->refused = 0;
    Err e = evaluate(f, n, &c, out, slots);
    return e == ERR_LIMIT ? run_explain_limit(&c, m->budget) : e;
}

static void drop_if_dead(Frame *f, uint32_t value, uint32_t node) {
    if (value != NO_VALUE && f->shaped->last_use[value] <= node)
        slot_drop(f->state, &f->slots[value]);
}

static void drop_dead(Frame *f, const Node *n, uint32_t at) {
    for (uint32_t i = 0; i < n->n_in; i++) drop_if_dead(f, n->in[i], at);
    for (uint32_t i = 0; i < n->n_out; i++) drop_if_dead(f, n->out[i], at);
    for (uint32_t k = 0; k < n->n_attr; k++)
        if (n->attrs[k].kind == ATTR_GRAPH)
            for (uint32_t c = 0; c < n->attrs[k].v.g->n_captures; c++)
                drop_if_dead(f, n->attrs[k].v.g->captures[c].outer, at);
}

static Err run_node(Frame *f, uint32_t at) {
    const Node  *n = &f->shaped->graph->nodes[at];
    InterpState *m = f->state;
    size_t       mark = m->scratch->used;
    TRY(work_stop_check());
    ValueSlot *out = arena_try_new(m->scratch, ValueSlot, n->n_out);
    if (out == NULL) return err_set(ERR_LIMIT, "too many outputs");
    bool flow = op_is_control_flow(n->op);
    Err  e = flow ? frame_flow(f, n, out) : compute(f, n, out);
    if (e == ERR_OK) e = work_stop_check();
    for (uint32_t i = 0; i < n->n_out; i++) {
        if (e == ERR_OK && n->out[i] != NO_VALUE)
            frame_set(f, n->out[i], out[i]);
        else
            slot_drop(m, &out[i]);
    }
    arena_rewind(m->scratch, mark);
    if (e == ERR_OK) drop_dead(f, n, at);
    return e;
}

Err frame_run(Frame *f, const bool *done) {
    for (uint32_t i = 0; i < f->shaped->graph->n_nodes; i++)
        if (!f->shaped->folded[i] && (done == NULL || !done[i])) TRY(run_node(f, i));
    return ERR_OK;
}

static Err output_slot(const Frame *f, uint32_t i, const ValueSlot **out) {
    const Graph *g = f->shaped->graph;
    *out = &f->slots[g->outputs[i]];
    if ((*out)->t.data != NULL) return ERR_OK;
    return err_set(ERR_INVALID, "output '%s' was not computed", g->values[g->outputs[i]].name);
}

Err frame_copy_output(const Frame *f, uint32_t i, Arena *a, Tensor *out) {
    const ValueSlot *slot = NULL;
    TRY(output_slot(f, i, &slot));
    return run_copy(a, &slot->t, out);
}

Err frame_share_output(const Frame *f, uint32_t i, ValueSlot *out) {
    const ValueSlot *slot = NULL;
    TRY(output_slot(f, i, &slot));
    *out = slot_share(slot);
    return ERR_OK;
}

// Compiled branches of If nodes run as programs inside the interpreted tail.

static const Program *find_compiled(const Frame *f, const Graph *body, RunMemory **mem) {
    const Program *p = f->state->program;
    for (uint32_t i = 0; p != NULL && i < p->n_branches; i++)
        if (p->branches[i].shaped->graph == body) {
            *mem = &f->state->mem->branches[i];
            return &p->branches[i];
        }
    return NULL;
}

// Sequences, optionals and strings own memory in the interpreter.
static bool is_plain(const Tensor *t) {
    return t->dtype != DT_SEQ && t->dtype != DT_OPT && t->dtype != DT_STR;
}

bool frame_is_compiled(const Frame *f, const Graph *body) {
    RunMemory     *mem = NULL;
    const Program *p = find_compiled(f, body, &mem);
    if (p == NULL) return false;
    for (uint32_t i = 0; i < body->n_outputs; i++) {
        const Tensor *t = &p->shaped->values[body->outputs[i]];
        if (t->dtype == DT_NONE || !is_plain(t)) return false;
    }
    for (uint32_t i = 0; i < body->n_captures; i++) {
        const Tensor *now = &f->slots[body->captures[i].outer].t;
        const Tensor *was = &p->shaped->values[body->captures[i].inner];
        if (!tensor_known(was) || now->data == NULL || now->dtype != was->dtype ||
            !tensor_same_shape(now, was) || !is_plain(now))
            return false;
    }
    return true;
}

static Err copy_to_slot(InterpState *m, const Tensor *t, ValueSlot *out) {
    size_t bytes = 0;
    out->t = *t;
    TRY(slot_alloc(m, out));
    TRY(tensor_measure(t, &bytes));
    work_copy(out->t.data, t->data, bytes);
    return ERR_OK;
}

Err frame_run_compiled(Frame *f, const Graph *body, ValueSlot *out) {
    RunMemory     *mem = NULL;
    const Program *p = find_compiled(f, body, &mem);
    Arena         *a = f->state->scratch;
    Tensor        *in = arena_try_new(a, Tensor, body->n_inputs + body->n_captures);
    Tensor        *results = arena_try_new(a, Tensor, body->n_outputs);
    if (in == NULL || results == NULL) return err_set(ERR_LIMIT, "too many values of a branch");
    for (uint32_t i = 0; i < body->n_captures; i++)
        in[body->n_inputs + i] = f->slots[body->captures[i].outer].t;
    CHECK(p != NULL && mem != NULL);  // frame_is_compiled was true
    mem->outer = f->state->mem;
    mem->budget = f->state->budget;
    TRY(program_run(p, mem, NULL, in, NULL, results));
    Err e = ERR_OK;
    for (uint32_t i = 0; e == ERR_OK && i < body->n_outputs; i++)
        e = copy_to_slot(f->state, &results[i], &out[i]);
    run_memory_release(mem);
    return e;
}
