#include "model/control_flow.h"

#include <inttypes.h>

#include "base/err.h"
#include "model/infer/infer.h"

static Err need_body(const Node *n, const char *name, uint32_t n_in, uint32_t n_out,
                     ControlFlowBody *b) {
    b->graph = attr_graph(n, name);
    if (b->graph == NULL) return err_set(ERR_INVALID, "attribute '%s' is missing", name);
    if (b->graph->n_inputs != n_in || b->graph->n_outputs != n_out)
        return err_set(ERR_INVALID, "%s takes %u inputs and gives %u outputs, expected %u and %u",
                       name, b->graph->n_inputs, b->graph->n_outputs, n_in, n_out);
    return ERR_OK;
}

Err control_flow_if(const Node *n, ControlFlowBody *then_body, ControlFlowBody *else_body) {
    *then_body = *else_body = (ControlFlowBody){0};
    TRY(need_body(n, "then_branch", 0, n->n_out, then_body));
    return need_body(n, "else_branch", 0, n->n_out, else_body);
}

Err control_flow_loop(const Node *n, ControlFlowBody *b) {
    *b = (ControlFlowBody){.first = 2, .n_state = n->n_in > 2 ? n->n_in - 2 : 0};
    if (n->n_out < b->n_state)
        return err_set(ERR_INVALID, "has %u outputs for %u loop-carried values", n->n_out,
                       b->n_state);
    for (uint32_t i = 2; i < n->n_in; i++)
        if (n->in[i] == NO_VALUE)
            return err_set(ERR_INVALID, "loop-carried input %u is missing", i);
    b->n_stack = n->n_out - b->n_state;
    return need_body(n, "body", b->n_state + 2, b->n_state + 1 + b->n_stack, b);
}

Err control_flow_scan(const Node *n, ControlFlowBody *b) {
    *b = (ControlFlowBody){.first = n->version < 9 ? 1 : 0};
    int64_t  scans = attr_int(n, "num_scan_inputs", -1);
    uint32_t n_in = n->n_in > b->first ? n->n_in - b->first : 0;
    if (scans < 1 || scans > n_in)
        return err_set(ERR_INVALID, "num_scan_inputs is %" PRId64 ", must be 1 to %u", scans, n_in);
    for (uint32_t i = b->first; i < n->n_in; i++)
        if (n->in[i] == NO_VALUE) return err_set(ERR_INVALID, "input %u is missing", i);
    b->n_scan_in = (uint32_t)scans;
    b->n_state = n_in - b->n_scan_in;
    if (n->n_out < b->n_state)
        return err_set(ERR_INVALID, "has %u outputs for %u states", n->n_out, b->n_state);
    b->n_stack = n->n_out - b->n_state;
    return need_body(n, "body", n_in, n->n_out, b);
}

Err control_flow_map(const Node *n, ControlFlowBody *b) {
    *b = (ControlFlowBody){.n_stack = n->n_out};
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] == NO_VALUE) return err_set(ERR_INVALID, "input %u is missing", i);
    return need_body(n, "body", n->n_in, n->n_out, b);
}

Err control_flow_scan_axis(const Node *n, bool output, uint32_t k, int32_t rank, int32_t *axis,
                           bool *reverse) {
    uint32_t       n_axes = 0, n_dirs = 0;
    const int64_t *axes = attr_ints(n, output ? "scan_output_axes" : "scan_input_axes", &n_axes);
    const char    *old = output ? "" : "directions";
    const char    *now = output ? "scan_output_directions" : "scan_input_directions";
    const int64_t *dirs = attr_ints(n, n->version < 9 ? old : now, &n_dirs);
    *reverse = k < n_dirs && dirs[k] == 1;
    if (rank < 1) return err_set(ERR_INVALID, "scanned value %u is a scalar", k);
    return infer_axis(k < n_axes ? axes[k] : 0, rank, axis);
}

static void set_unknown(Tensor *t) { *t = (Tensor){.dtype = t->dtype, .rank = RANK_UNKNOWN}; }

static void merge(const Tensor *other, Tensor *t) {
    if (t->dtype != other->dtype || !tensor_same_shape(t, other)) set_unknown(t);
    t->data = NULL;
}

static Err add_body(InferContext *x, ShapedGraph *s, const Graph *g, const Tensor *inputs,
                    bool runs, ShapedGraph **made) {
    x->conditional += !runs;
    Err e = shaped_graph_infer(x, g, inputs, s, made);
    x->conditional -= !runs;
    TRY(e);
    for (uint32_t i = 0; i < s->n_bodies; i++)
        if (s->bodies[i].graph == g) {
            s->bodies[i].shaped = *made;
            return ERR_OK;
        }
    s->bodies[s->n_bodies++] = (ShapedBody){g, *made};
    return ERR_OK;
}

static Err new_body_inputs(InferContext *x, const ControlFlowBody *b, Tensor **in) {
    *in = arena_try_new(&x->scratch, Tensor, b->graph->n_inputs);
    return *in != NULL ? ERR_OK : err_set(ERR_LIMIT, "the body has too many inputs");
}

static Tensor output_type(const ShapedGraph *s, uint32_t k) {
    return s->values[s->graph->outputs[k]];
}

static Err infer_if(InferContext *x, ShapedGraph *s, const OpCall *c, Tensor *out) {
    ControlFlowBody then_body, else_body;
    TRY(control_flow_if(c->node, &then_body, &else_body));
    const Tensor *cond = c->in[0];
    if (cond->dtype != DT_NONE) TRY(infer_check_type(cond, dtype_bit(DT_BOOL), "cond"));
    bool         known = cond->data != NULL && tensor_known(cond) && tensor_count(cond) == 1;
    bool         truth = known && *(const bool *)cond->data;
    ShapedGraph *one = NULL, *two = NULL;
    if (!known || truth) TRY(add_body(x, s, then_body.graph, NULL, known, &one));
    if (!known || !truth) TRY(add_body(x, s, else_body.graph, NULL, known, &two));
    CHECK(one != NULL || two != NULL);
    for (uint32_t i = 0; i < c->node->n_out; i++) {
        out[i] = output_type(one != NULL ? one : two, i);
        Tensor other = output_type(two != NULL ? two : one, i);
        if (!known) merge(&other, &out[i]);
    }
    return ERR_OK;
}

// The types of loop-carried values hold in every iteration: one that an iteration changes becomes
// unknown. Three passes reach the fixed point: shapes, then types, then all of them unknown.
static Err infer_loop_body(InferContext *x, ShapedGraph *s, const ControlFlowBody *b, Tensor *in,
                           uint32_t state_at, uint32_t out_at, ShapedGraph **made) {
    for (int pass = 0; pass < 3; pass++) {
        TRY(add_body(x, s, b->graph, in, false, made));
        bool stable = true;
        for (uint32_t i = 0; i < b->n_state; i++) {
            Tensor now = output_type(*made, out_at + i), *was = &in[state_at + i];
            if (now.dtype == was->dtype && tensor_same_shape(&now, was)) continue;
            stable = was->rank == RANK_UNKNOWN && was->dtype == DT_NONE && stable;
            *was = (Tensor){.dtype = pass == 0 ? was->dtype : DT_NONE, .rank = RANK_UNKNOWN};
        }
        if (stable) return ERR_OK;
        if (pass == 1)
            for (uint32_t i = 0; i < b->n_state; i++)
                in[state_at + i] = (Tensor){.rank = RANK_UNKNOWN};
    }
    return ERR_OK;
}

static Err infer_loop(InferContext *x, ShapedGraph *s, const OpCall *c, Tensor *out) {
    ControlFlowBody b;
    TRY(control_flow_loop(c->node, &b));
    Tensor *in = NULL;
    TRY(new_body_inputs(x, &b, &in));
    in[0] = (Tensor){.dtype = DT_I64};
    in[1] = (Tensor){.dtype = DT_BOOL};
    for (uint32_t i = 0; i < b.n_state; i++) in[2 + i] = infer_like(c->in[2 + i]);
    ShapedGraph *body = NULL;
    TRY(infer_loop_body(x, s, &b, in, 2, 1, &body));
    for (uint32_t i = 0; i < b.n_state; i++) out[i] = in[2 + i];
    for (uint32_t i = 0; i < b.n_stack; i++)
        out[b.n_state + i].dtype = output_type(body, 1 + b.n_state + i).dtype;
    return ERR_OK;
}

static Err slice_type(const Node *n, uint32_t k, const Tensor *whole, int64_t *length,
                      Tensor *one) {
    int32_t axis = 0;
    bool    reverse = false;
    TRY(control_flow_scan_axis(n, false, k, whole->rank, &axis, &reverse));
    if (*length >= 0 && *length != whole->dims[axis])
        return err_set(ERR_INVALID, "scan inputs differ in length: %" PRId64 " and %" PRId64,
                       *length, whole->dims[axis]);
    *length = whole->dims[axis];
    *one = (Tensor){.dtype = whole->dtype, .rank = whole->rank - 1};
    for (int32_t i = 0; i < one->rank; i++) one->dims[i] = whole->dims[i < axis ? i : i + 1];
    return ERR_OK;
}

static Err stack_type(const Node *n, uint32_t k, const Tensor *one, int64_t length, Tensor *whole) {
    if (!tensor_known(one)) {
        whole->dtype = one->dtype;
        return ERR_OK;
    }
    if (one->rank == TENSOR_MAX_RANK)
        return err_set(ERR_INVALID, "a stacked output exceeds rank %d", TENSOR_MAX_RANK);
    int32_t axis = 0;
    bool    reverse = false;
    TRY(control_flow_scan_axis(n, true, k, one->rank + 1, &axis, &reverse));
    *whole = (Tensor){.dtype = one->dtype, .rank = one->rank + 1};
    for (int32_t i = 0; i < whole->rank; i++)
        whole->dims[i] = i == axis ? length : one->dims[i < axis ? i : i - 1];
    return ERR_OK;
}

static Err infer_scan(InferContext *x, ShapedGraph *s, const OpCall *c, Tensor *out) {
    ControlFlowBody b;
    TRY(control_flow_scan(c->node, &b));
    Tensor *in = NULL;
    TRY(new_body_inputs(x, &b, &in));
    int64_t length = -1;
    for (uint32_t i = 0; i < b.graph->n_inputs; i++) {
        in[i] = infer_like(c->in[b.first + i]);
        if (c->node->version < 9 || !tensor_known(&in[i]))
            set_unknown(&in[i]);
        else if (i >= b.n_state)
            TRY(slice_type(c->node, i - b.n_state, c->in[b.first + i], &length, &in[i]));
    }
    ShapedGraph *body = NULL;
    TRY(infer_loop_body(x, s, &b, in, 0, 0, &body));
    if (c->node->version < 9) return ERR_OK;
    for (uint32_t i = 0; i < b.n_state; i++) out[i] = in[i];
    for (uint32_t i = 0; i < b.n_stack && length >= 0; i++) {
        Tensor one = output_type(body, b.n_state + i);
        TRY(stack_type(c->node, i, &one, length, &out[b.n_state + i]));
    }
    return ERR_OK;
}

static Err infer_map(InferContext *x, ShapedGraph *s, const OpCall *c, Tensor *out) {
    ControlFlowBody b;
    TRY(control_flow_map(c->node, &b));
    Tensor *in = NULL;
    TRY(new_body_inputs(x, &b, &in));
    for (uint32_t i = 0; i < b.graph->n_inputs; i++) in[i].rank = RANK_UNKNOWN;
    for (uint32_t i = 0; i < c->node->n_out; i++) out[i].dtype = DT_SEQ;
    ShapedGraph *body = NULL;
    return add_body(x, s, b.graph, in, false, &body);
}

Err control_flow_infer(InferContext *x, ShapedGraph *s, const OpCall *c, Tensor *out) {
    Err e = ERR_OK;
    switch (c->node->op) {
    case OP_If: e = infer_if(x, s, c, out); break;
    case OP_Loop: e = infer_loop(x, s, c, out); break;
    case OP_Scan: e = infer_scan(x, s, c, out); break;
    default: e = infer_map(x, s, c, out); break;
    }
    return e == ERR_OK ? e : op_failed(c->node, e);
}
