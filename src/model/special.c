#include "model/special.h"

#include <string.h>

#include "base/check.h"
#include "model/flow.h"
#include "model/fold.h"
#include "model/infer.h"

enum {
    FOLD_TOTAL = 1 << 28,
    FOLD_BYTES = 1 << 20,   // values larger than this are computed when the graph runs
    VISIT_LIMIT = 1 << 23,  // nodes looked at, counting every pass over nested bodies
    ARENA_SHIFT = 34,
};

const Special *special_body(const Special *s, const Graph *body) {
    for (uint32_t i = 0; i < s->n_bodies; i++)
        if (s->bodies[i].graph == body) return s->bodies[i].special;
    return NULL;
}

static void use(Special *s, uint32_t value, uint32_t node) {
    if (value != NO_VALUE && s->last_use[value] < node) s->last_use[value] = node;
}

static void find_last_uses(Special *s) {
    const Graph *g = s->graph;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const Node *n = &g->nodes[i];
        for (uint32_t k = 0; k < n->n_in; k++) use(s, n->in[k], i);
        for (uint32_t k = 0; k < n->n_out; k++) use(s, n->out[k], i);
        for (uint32_t k = 0; k < n->n_attr; k++)
            if (n->attrs[k].kind == ATTR_GRAPH)
                for (uint32_t c = 0; c < n->attrs[k].v.g->n_captures; c++)
                    use(s, n->attrs[k].v.g->captures[c].outer, i);
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) use(s, g->outputs[i], g->n_nodes);
}

static Err create(const Graph *g, Arena *a, Special **out) {
    Special *s = arena_try_new(a, Special, 1);
    if (s != NULL) {
        s->graph = g;
        s->values = arena_try_new(a, Tensor, g->n_values);
        s->folded = arena_try_new(a, bool, g->n_nodes);
        s->last_use = arena_try_new(a, uint32_t, g->n_values);
        uint32_t n_bodies = 0;
        for (uint32_t i = 0; i < g->n_nodes; i++)
            for (uint32_t k = 0; k < g->nodes[i].n_attr; k++)
                n_bodies += g->nodes[i].attrs[k].kind == ATTR_GRAPH;
        s->bodies = arena_try_new(a, SpecialBody, n_bodies);
    }
    if (s == NULL || s->values == NULL || s->folded == NULL || s->last_use == NULL ||
        s->bodies == NULL)
        return err_set(ERR_LIMIT, "the model is too large to be specialised");
    for (uint32_t i = 0; i < g->n_values; i++)
        s->values[i] = g->values[i].constant ? g->values[i].type : (Tensor){.rank = RANK_UNKNOWN};
    *out = s;
    return ERR_OK;
}

static bool inputs_known(const Node *n, const Tensor *const *in) {
    for (uint32_t i = 0; i < n->n_in; i++)
        if (in[i] != NULL && !tensor_known(in[i])) return false;
    return true;
}

static Err visit(FlowCtx *x, Special *s, uint32_t at, Tensor *out) {
    const Node    *n = &s->graph->nodes[at];
    const Tensor **in = arena_try_new(&x->scratch, const Tensor *, n->n_in);
    if (in == NULL) return err_set(ERR_LIMIT, "too many inputs");
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = n->in[i] != NO_VALUE ? &s->values[n->in[i]] : NULL;
    OpCall call = {.node = n, .in = in, .scratch = &x->scratch};
    if (op_is_flow(n->op)) return flow_infer(x, s, &call, out);
    if (!inputs_known(n, in)) return ERR_OK;
    TRY(infer_node(&call, out));
    s->folded[at] = fold_call(&call, x->eval, &x->room, out);
    return ERR_OK;
}

// Exporters leave branches that fit no input this model will ever get; they are not taken then.
static Err visit_maybe(FlowCtx *x, Special *s, uint32_t at, Tensor *out) {
    Err e = visit(x, s, at, out);
    if (e == ERR_OK || e == ERR_LIMIT || x->maybe == 0) return e;
    for (uint32_t k = 0; k < s->graph->nodes[at].n_out; k++)
        out[k] = (Tensor){.rank = RANK_UNKNOWN};
    return ERR_OK;
}

Err special_graph(FlowCtx *x, const Graph *g, const Tensor *inputs, const Special *outer,
                  Special **made) {
    Special *s = NULL;
    TRY(create(g, x->arena, &s));
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        s->values[g->inputs[i]] = inputs[i];
        s->values[g->inputs[i]].data = NULL;  // only types count: numbers change from run to run
    }
    CHECK(outer != NULL || g->n_captures == 0);
    for (uint32_t i = 0; i < g->n_captures; i++)
        s->values[g->captures[i].inner] = outer->values[g->captures[i].outer];
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const Node *n = &g->nodes[i];
        if (++x->visits > VISIT_LIMIT)
            return err_set(ERR_LIMIT, "control flow is nested too deeply to be analysed");
        size_t  mark = x->scratch.used;
        Tensor *out = arena_try_new(&x->scratch, Tensor, n->n_out);
        if (out == NULL) return err_set(ERR_LIMIT, "too many outputs");
        for (uint32_t k = 0; k < n->n_out; k++) out[k].rank = RANK_UNKNOWN;
        TRY(visit_maybe(x, s, i, out));
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k] != NO_VALUE) s->values[n->out[k]] = out[k];
        arena_rewind(&x->scratch, mark);
    }
    find_last_uses(s);
    *made = s;
    return ERR_OK;
}

Err special_make(const Graph *g, const Tensor *inputs, EvalFn *eval, Arena *arena, Special **out) {
    CHECK(g->parent == NULL);
    FlowCtx x = {.eval = eval, .arena = arena, .room = {arena, FOLD_BYTES, FOLD_TOTAL}};
    TRY(arena_init(&x.scratch, (size_t)1 << ARENA_SHIFT));
    Err e = special_graph(&x, g, inputs, NULL, out);
    arena_finish(&x.scratch);
    return e;
}
