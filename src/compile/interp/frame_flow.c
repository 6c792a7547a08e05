// Control flow in the interpreter. A body runs in its own frame; captured values are shared.
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/work_stop.h"
#include "compile/interp/frame.h"
#include "compile/interp/run_ops.h"
#include "model/control_flow.h"

// in[] and out[] match the body's inputs and outputs; in is consumed, out receives owned slots on
// success.
static Err run_body(Frame *f, const Graph *g, ValueSlot *in, ValueSlot *out) {
    const ShapedGraph *s = shaped_graph_body(f->shaped, g);
    Frame              sub = {.state = f->state};
    Err e = s != NULL ? frame_init(&sub, f->state, s) : err_set(ERR_INVALID, "no such branch");
    CHECK(in != NULL || g->n_inputs == 0);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        if (e == ERR_OK)
            frame_set(&sub, g->inputs[i], in[i]);
        else
            slot_drop(f->state, &in[i]);
        in[i] = (ValueSlot){0};
    }
    for (uint32_t i = 0; e == ERR_OK && i < g->n_captures; i++)
        frame_set(&sub, g->captures[i].inner, slot_share(&f->slots[g->captures[i].outer]));
    if (e == ERR_OK) e = frame_run(&sub, NULL);
    for (uint32_t i = 0; e == ERR_OK && i < g->n_outputs; i++)
        if (sub.slots[g->outputs[i]].t.data == NULL)
            e = err_set(ERR_INVALID, "output %u of the body was not computed", i);
    for (uint32_t i = 0; e == ERR_OK && i < g->n_outputs; i++)
        out[i] = slot_share(&sub.slots[g->outputs[i]]);
    frame_finish(&sub);
    return e;
}

static Err count_iteration(InterpState *m) {
    TRY(work_stop_check());
    if (m->limits.max_iterations != 0 && ++m->iterations > m->limits.max_iterations)
        return err_set(ERR_LIMIT, "loops exceed the allowed %llu iterations",
                       (unsigned long long)m->limits.max_iterations);
    return ERR_OK;
}

static Err read_bool(const Tensor *t, bool *out) {
    if (t->dtype != DT_BOOL || tensor_count(t) != 1)
        return err_set(ERR_INVALID, "a condition must be one bool");
    *out = *(const unsigned char *)t->data != 0;
    return ERR_OK;
}

static Err flow_run_if(Frame *f, const Node *n, ValueSlot *out) {
    ControlFlowBody yes, no;
    bool            truth = false;
    TRY(control_flow_if(n, &yes, &no));
    TRY(read_bool(&f->slots[n->in[0]].t, &truth));
    const Graph *taken = truth ? yes.graph : no.graph;
    if (frame_is_compiled(f, taken)) return frame_run_compiled(f, taken, out);
    return run_body(f, taken, NULL, out);
}

typedef struct Iterations {  // state of a Loop or Scan between iterations
    ControlFlowBody b;
    ValueSlot      *state, *in, *out;
    ScanOutput     *scan_outs;
} Iterations;

static Err iterations_begin(Frame *f, const ControlFlowBody *b, Iterations *r) {
    Arena *a = f->state->scratch;
    *r = (Iterations){.b = *b};
    r->state = arena_try_new(a, ValueSlot, b->n_state);
    r->in = arena_try_new(a, ValueSlot, b->graph->n_inputs);
    r->out = arena_try_new(a, ValueSlot, b->graph->n_outputs);
    r->scan_outs = arena_try_new(a, ScanOutput, b->n_stack);
    if (r->state != NULL && r->in != NULL && r->out != NULL && r->scan_outs != NULL) return ERR_OK;
    *r = (Iterations){0};
    return err_set(ERR_LIMIT, "too many carried values");
}

static void iterations_finish(InterpState *m, Iterations *r) {
    for (uint32_t i = 0; i < r->b.n_state; i++) slot_drop(m, &r->state[i]);
    for (uint32_t i = 0; i < r->b.n_stack; i++) scan_output_finish(m, &r->scan_outs[i]);
}

// Moves the outputs of an iteration, from index `at` on, into the state and the scan outputs.
static Err iterations_keep(InterpState *m, Iterations *r, uint32_t at) {
    Err e = ERR_OK;
    for (uint32_t i = 0; i < r->b.n_state; i++) {
        slot_drop(m, &r->state[i]);
        r->state[i] = r->out[at + i];
    }
    for (uint32_t i = 0; i < r->b.n_stack; i++) {
        ValueSlot *one = &r->out[at + r->b.n_state + i];
        if (e == ERR_OK) e = scan_output_push(m, &r->scan_outs[i], *one);
        if (e != ERR_OK) slot_drop(m, one);
    }
    return e;
}

static Err scalar(InterpState *m, DType t, int64_t v, ValueSlot *out) {
    out->t = (Tensor){.dtype = t};
    TRY(slot_alloc(m, out));
    if (t == DT_BOOL)
        *(unsigned char *)out->t.data = v != 0;
    else
        *(int64_t *)out->t.data = v;
    return ERR_OK;
}

static Err loop_iteration(Frame *f, Iterations *r, int64_t round, bool *cond) {
    InterpState *m = f->state;
    TRY(count_iteration(m));
    TRY(scalar(m, DT_I64, round, &r->in[0]));
    Err e = scalar(m, DT_BOOL, *cond, &r->in[1]);
    if (e != ERR_OK) {
        slot_drop(m, &r->in[0]);
        return e;
    }
    for (uint32_t i = 0; i < r->b.n_state; i++) r->in[2 + i] = slot_share(&r->state[i]);
    TRY(run_body(f, r->b.graph, r->in, r->out));
    e = read_bool(&r->out[0].t, cond);
    slot_drop(m, &r->out[0]);
    Err kept = iterations_keep(m, r, 1);
    return e != ERR_OK ? e : kept;
}

static Err loop_limits(const Frame *f, const Node *n, int64_t *trip_count, bool *cond,
                       bool *has_cond) {
    *trip_count = INT64_MAX;
    *cond = true;
    *has_cond = n->n_in > 1 && n->in[1] != NO_VALUE;
    if (n->n_in > 0 && n->in[0] != NO_VALUE) {
        const Tensor *t = &f->slots[n->in[0]].t;
        if (t->dtype != DT_I64 || tensor_count(t) != 1)
            return err_set(ERR_INVALID, "the trip count must be one int64");
        *trip_count = *(const int64_t *)t->data;
    }
    return *has_cond ? read_bool(&f->slots[n->in[1]].t, cond) : ERR_OK;
}

static const Tensor *body_output(const Frame *f, const Graph *g, uint32_t k) {
    const Tensor *t = &shaped_graph_body(f->shaped, g)->values[g->outputs[k]];
    return t->rank != RANK_UNKNOWN ? t : &g->values[g->outputs[k]].type;
}

static Err loop_iterations(Frame *f, const Node *n, Iterations *r, ValueSlot *out) {
    int64_t trip_count = 0;
    bool    cond = false, has_cond = false;
    TRY(loop_limits(f, n, &trip_count, &cond, &has_cond));
    for (uint32_t i = 0; i < r->b.n_state; i++) r->state[i] = slot_share(&f->slots[n->in[2 + i]]);
    for (int64_t i = 0; i < trip_count && (cond || !has_cond); i++)
        TRY(loop_iteration(f, r, i, &cond));
    for (uint32_t i = 0; i < r->b.n_stack; i++)
        TRY(scan_output_concat(f->state, &r->scan_outs[i], 0, false, r->scan_outs[i].n,
                               body_output(f, r->b.graph, 1 + r->b.n_state + i),
                               &out[r->b.n_state + i]));
    for (uint32_t i = 0; i < r->b.n_state; i++) out[i] = slot_share(&r->state[i]);
    return ERR_OK;
}

static Err flow_run_loop(Frame *f, const Node *n, ValueSlot *out) {
    ControlFlowBody b;
    Iterations      r = {0};
    TRY(control_flow_loop(n, &b));
    Err e = iterations_begin(f, &b, &r);
    if (e == ERR_OK) e = loop_iterations(f, n, &r, out);
    iterations_finish(f->state, &r);
    return e;
}

// `whole`: the inputs of the Scan, states first. A scanned input has one dimension more than its
// slices.
static Err scan_iteration(Frame *f, const Node *n, Iterations *r, const Tensor *whole, int64_t at,
                          int64_t length) {
    InterpState *m = f->state;
    TRY(count_iteration(m));
    Err e = ERR_OK;
    for (uint32_t i = 0; i < r->b.n_state; i++) r->in[i] = slot_share(&r->state[i]);
    for (uint32_t i = 0; i < r->b.n_scan_in; i++) {
        const Tensor *t = &whole[r->b.n_state + i];
        int32_t       axis = 0;
        bool          reverse = false;
        if (e == ERR_OK) e = control_flow_scan_axis(n, false, i, t->rank, &axis, &reverse);
        if (e == ERR_OK)
            e = slot_slice(m, t, axis, reverse ? length - 1 - at : at, &r->in[r->b.n_state + i]);
    }
    if (e != ERR_OK) {
        for (uint32_t i = 0; i < r->b.graph->n_inputs; i++) slot_drop(m, &r->in[i]);
        return e;
    }
    TRY(run_body(f, r->b.graph, r->in, r->out));
    return iterations_keep(m, r, 0);
}

static Err scan_length(const Node *n, const ControlFlowBody *b, const Tensor *whole,
                       int64_t *length) {
    *length = -1;
    for (uint32_t i = 0; i < b->n_scan_in; i++) {
        const Tensor *t = &whole[b->n_state + i];
        int32_t       axis = 0;
        bool          reverse = false;
        TRY(control_flow_scan_axis(n, false, i, t->rank, &axis, &reverse));
        if (*length >= 0 && *length != t->dims[axis])
            return err_set(ERR_INVALID, "scan inputs differ in length");
        *length = t->dims[axis];
    }
    return ERR_OK;
}

static Err scan_join(Frame *f, const Node *n, Iterations *r, int64_t length, ValueSlot *out) {
    for (uint32_t i = 0; i < r->b.n_stack; i++) {
        const Tensor *like = r->scan_outs[i].n > 0 ? &r->scan_outs[i].slots[0].t
                                                   : body_output(f, r->b.graph, r->b.n_state + i);
        int32_t       axis = 0;
        bool          reverse = false;
        TRY(control_flow_scan_axis(n, true, i, like->rank + 1, &axis, &reverse));
        TRY(scan_output_concat(f->state, &r->scan_outs[i], axis, reverse, length, like,
                               &out[r->b.n_state + i]));
    }
    for (uint32_t i = 0; i < r->b.n_state; i++) out[i] = slot_share(&r->state[i]);
    return ERR_OK;
}

static Err scan_once(Frame *f, const Node *n, const ControlFlowBody *b, const Tensor *whole,
                     const ValueSlot *states, int64_t iterations, ValueSlot *out) {
    int64_t    length = 0;
    Iterations r = {0};
    TRY(scan_length(n, b, whole, &length));
    Err e = iterations_begin(f, b, &r);
    for (uint32_t i = 0; e == ERR_OK && i < b->n_state; i++) r.state[i] = slot_share(&states[i]);
    if (iterations < 0 || iterations > length) iterations = length;
    for (int64_t i = 0; e == ERR_OK && i < iterations; i++)
        e = scan_iteration(f, n, &r, whole, i, iterations);
    if (e == ERR_OK) e = scan_join(f, n, &r, length, out);
    iterations_finish(f->state, &r);
    return e;
}

// Version 8: axis 0 of every input is a batch, and each sample has its own length.
static Err scan_batch(Frame *f, const Node *n, const ControlFlowBody *b, int64_t at,
                      ScanOutput *outs) {
    InterpState *m = f->state;
    uint32_t     n_in = b->n_state + b->n_scan_in;
    ValueSlot   *in = arena_try_new(m->scratch, ValueSlot, n_in);
    Tensor      *whole = arena_try_new(m->scratch, Tensor, n_in);
    ValueSlot   *out = arena_try_new(m->scratch, ValueSlot, n->n_out);
    Err          e = in != NULL && whole != NULL && out != NULL ? ERR_OK
                                                                : err_set(ERR_LIMIT, "no memory for a scan");
    int64_t      iterations = -1;
    if (e == ERR_OK && n->in[0] != NO_VALUE && f->slots[n->in[0]].t.dtype == DT_I64 &&
        at < tensor_count(&f->slots[n->in[0]].t))
        iterations = ((const int64_t *)f->slots[n->in[0]].t.data)[at];
    for (uint32_t i = 0; e == ERR_OK && i < n_in; i++) {
        e = slot_slice(m, &f->slots[n->in[b->first + i]].t, 0, at, &in[i]);
        whole[i] = in[i].t;
    }
    if (e == ERR_OK) e = scan_once(f, n, b, whole, in, iterations, out);
    for (uint32_t i = 0; in != NULL && i < n_in; i++) slot_drop(m, &in[i]);
    for (uint32_t i = 0; out != NULL && i < n->n_out; i++) {
        if (e == ERR_OK) e = scan_output_push(m, &outs[i], out[i]);
        if (e != ERR_OK) slot_drop(m, &out[i]);
    }
    return e;
}

static Err scan_batches(Frame *f, const Node *n, const ControlFlowBody *b, ValueSlot *out) {
    InterpState *m = f->state;
    int64_t      batch = -1;
    for (uint32_t i = b->first; i < n->n_in; i++) {
        const Tensor *t = &f->slots[n->in[i]].t;
        if (t->rank < 1 || (batch >= 0 && batch != t->dims[0]))
            return err_set(ERR_INVALID, "inputs differ in batch size");
        batch = t->dims[0];
    }
    if (batch < 1) return err_set(ERR_INVALID, "an empty batch is not supported");
    ScanOutput *outs = arena_try_new(m->scratch, ScanOutput, n->n_out);
    if (outs == NULL) return err_set(ERR_LIMIT, "too many outputs");
    Err e = ERR_OK;
    for (int64_t i = 0; e == ERR_OK && i < batch; i++) e = scan_batch(f, n, b, i, outs);
    for (uint32_t i = 0; i < n->n_out; i++) {
        if (e == ERR_OK) e = scan_output_concat(m, &outs[i], 0, false, batch, NULL, &out[i]);
        scan_output_finish(m, &outs[i]);
    }
    return e;
}

static Err flow_run_scan(Frame *f, const Node *n, ValueSlot *out) {
    ControlFlowBody b;
    TRY(control_flow_scan(n, &b));
    if (n->version < 9) return scan_batches(f, n, &b, out);
    uint32_t   n_in = b.n_state + b.n_scan_in;
    Tensor    *whole = arena_try_new(f->state->scratch, Tensor, n_in);
    ValueSlot *states = arena_try_new(f->state->scratch, ValueSlot, n_in);
    if (whole == NULL || states == NULL) return err_set(ERR_LIMIT, "too many inputs");
    for (uint32_t i = 0; i < n_in; i++) {
        states[i] = f->slots[n->in[i]];
        whole[i] = states[i].t;
    }
    return scan_once(f, n, &b, whole, states, -1, out);
}

static Err map_iteration(Frame *f, const Node *n, const ControlFlowBody *b, int64_t at,
                         ValueSlot *out) {
    ValueSlot *in = arena_try_new(f->state->scratch, ValueSlot, n->n_in);
    if (in == NULL) return err_set(ERR_LIMIT, "too many inputs");
    for (uint32_t i = 0; i < n->n_in; i++) {
        const Tensor *t = &f->slots[n->in[i]].t;
        if (t->dtype == DT_SEQ && at >= tensor_count(t))
            return err_set(ERR_INVALID, "sequence %u is shorter than the first", i);
        in[i].t = t->dtype == DT_SEQ ? ((const Tensor *)t->data)[at] : *t;
    }
    return run_body(f, b->graph, in, out);
}

static Err flow_run_map(Frame *f, const Node *n, ValueSlot *out) {
    ControlFlowBody b;
    InterpState    *m = f->state;
    TRY(control_flow_map(n, &b));
    const Tensor *first = &f->slots[n->in[0]].t;
    if (first->dtype != DT_SEQ) return err_set(ERR_INVALID, "the first input must be a sequence");
    int64_t count = tensor_count(first);
    for (uint32_t k = 0; k < n->n_out; k++) {
        out[k].t = (Tensor){.dtype = DT_SEQ, .rank = 1, .dims = {count}};
        TRY(slot_alloc(m, &out[k]));
    }
    ValueSlot *one = arena_try_new(m->scratch, ValueSlot, n->n_out);
    if (one == NULL) return err_set(ERR_LIMIT, "too many outputs");
    for (int64_t i = 0; i < count; i++) {
        TRY(map_iteration(f, n, &b, i, one));
        Err e = ERR_OK;
        for (uint32_t k = 0; k < n->n_out; k++) {
            if (e == ERR_OK) e = run_copy(m->keep, &one[k].t, &((Tensor *)out[k].t.data)[i]);
            slot_drop(m, &one[k]);
        }
        TRY(e);
    }
    return ERR_OK;
}

Err frame_flow(Frame *f, const Node *n, ValueSlot *out) {
    Err e = ERR_OK;
    switch (n->op) {
    case OP_If: e = flow_run_if(f, n, out); break;
    case OP_Loop: e = flow_run_loop(f, n, out); break;
    case OP_Scan: e = flow_run_scan(f, n, out); break;
    default: e = flow_run_map(f, n, out); break;
    }
    return e == ERR_OK ? e : op_failed(n, e);
}

Err scan_output_push(InterpState *m, ScanOutput *s, ValueSlot one) {
    if (s->n == s->cap) {
        uint32_t cap = s->cap == 0 ? 16 : 2 * s->cap;
        TRY(interp_take(m, (cap - s->cap) * sizeof one));
        ValueSlot *more = realloc(s->slots, cap * sizeof *more);
        if (more == NULL) {
            interp_give(m, (cap - s->cap) * sizeof one);
            return err_set(ERR_LIMIT, "no memory for %u iterations of a loop", cap);
        }
        s->slots = more;
        s->cap = cap;
    }
    s->slots[s->n++] = one;
    return ERR_OK;
}

void scan_output_finish(InterpState *m, ScanOutput *s) {
    for (uint32_t i = 0; i < s->n; i++) slot_drop(m, &s->slots[i]);
    interp_give(m, s->cap * sizeof *s->slots);
    free(s->slots);
    *s = (ScanOutput){0};
}

// Copies slice `at` along `axis` of a tensor to or from contiguous memory.
static void copy_slice(const Tensor *whole, int32_t axis, int64_t at, char *packed, bool in) {
    size_t size = dtype_size(whole->dtype);
    size_t inner = size, outer = 1;
    for (int32_t i = axis + 1; i < whole->rank; i++) inner *= (size_t)whole->dims[i];
    for (int32_t i = 0; i < axis; i++) outer *= (size_t)whole->dims[i];
    size_t step = inner * (size_t)whole->dims[axis];
    char  *base = (char *)whole->data + inner * (size_t)at;
    for (size_t i = 0; i < outer; i++) {
        if (i % WORK_BLOCK == 0 && work_stopped()) return;
        char *from = in ? packed + i * inner : base + i * step;
        work_copy(in ? base + i * step : packed + i * inner, from, inner);
    }
}

Err scan_output_concat(InterpState *m, const ScanOutput *s, int32_t axis, bool reverse,
                       int64_t length, const Tensor *like, ValueSlot *out) {
    const Tensor *one = s->n > 0 ? &s->slots[0].t : like;
    if (one->rank < 0 || one->rank >= TENSOR_MAX_RANK)
        return err_set(ERR_INVALID, "scan outputs of rank %d are not supported", one->rank);
    Tensor whole = {.dtype = one->dtype, .rank = one->rank + 1};
    for (int32_t i = 0; i < whole.rank; i++) {
        int64_t d = i == axis ? length : one->dims[i < axis ? i : i - 1];
        whole.dims[i] = d < 0 ? 0 : d;
    }
    out->t = whole;
    TRY(slot_alloc(m, out));
    for (uint32_t i = 0; i < s->n; i++) {
        const Tensor *t = &s->slots[i].t;
        if (t->dtype != one->dtype || !tensor_same_shape(t, one))
            return err_set(ERR_INVALID, "iteration %u gives a different shape than iteration 0", i);
        copy_slice(&out->t, axis, reverse ? s->n - 1 - i : i, t->data, true);
    }
    return ERR_OK;
}

Err slot_slice(InterpState *m, const Tensor *whole, int32_t axis, int64_t at, ValueSlot *out) {
    Tensor one = {.dtype = whole->dtype, .rank = whole->rank - 1};
    for (int32_t i = 0; i < one.rank; i++) one.dims[i] = whole->dims[i < axis ? i : i + 1];
    out->t = one;
    TRY(slot_alloc(m, out));
    copy_slice(whole, axis, at, out->t.data, false);
    return ERR_OK;
}
