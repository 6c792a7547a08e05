#include "model/shaped_graph.h"

#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "model/control_flow.h"
#include "model/fold.h"
#include "model/infer/infer.h"

enum {
    FOLD_TOTAL = 1 << 28,
    FOLD_BYTES = 1 << 20,   // larger values are computed when the graph runs
    VISIT_LIMIT = 1 << 23,  // nodes inferred, counting every pass over nested bodies
    ARENA_FIRST = 1 << 20,
    SCRATCH_MOST = 1 << 30,  // bytes of temporaries of one folded node
    SYMBOLS_MAX = 64,
};

const ShapedGraph *shaped_graph_body(const ShapedGraph *s, const Graph *body) {
    for (uint32_t i = 0; i < s->n_bodies; i++)
        if (s->bodies[i].graph == body) return s->bodies[i].shaped;
    return NULL;
}

static void note_use(ShapedGraph *s, uint32_t value, uint32_t node) {
    if (value != NO_VALUE && s->last_use[value] < node) s->last_use[value] = node;
}

static void find_last_uses(ShapedGraph *s) {
    const Graph *g = s->graph;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const Node *n = &g->nodes[i];
        for (uint32_t k = 0; k < n->n_in; k++) note_use(s, n->in[k], i);
        for (uint32_t k = 0; k < n->n_out; k++) note_use(s, n->out[k], i);
        for (uint32_t k = 0; k < n->n_attr; k++)
            if (n->attrs[k].kind == ATTR_GRAPH)
                for (uint32_t c = 0; c < n->attrs[k].v.g->n_captures; c++)
                    note_use(s, n->attrs[k].v.g->captures[c].outer, i);
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) note_use(s, g->outputs[i], g->n_nodes);
}

static Err create(const Graph *g, Arena *a, ShapedGraph **out) {
    ShapedGraph *s = arena_try_new(a, ShapedGraph, 1);
    if (s != NULL) {
        s->graph = g;
        s->values = arena_try_new(a, Tensor, g->n_values);
        s->folded = arena_try_new(a, bool, g->n_nodes);
        s->last_use = arena_try_new(a, uint32_t, g->n_values);
        uint32_t n_bodies = 0;
        for (uint32_t i = 0; i < g->n_nodes; i++)
            for (uint32_t k = 0; k < g->nodes[i].n_attr; k++)
                n_bodies += g->nodes[i].attrs[k].kind == ATTR_GRAPH;
        s->bodies = arena_try_new(a, ShapedBody, n_bodies);
    }
    if (s == NULL || s->values == NULL || s->folded == NULL || s->last_use == NULL ||
        s->bodies == NULL)
        return err_set(ERR_LIMIT, "the model is too large for shape inference");
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

static Err infer_at(InferContext *x, ShapedGraph *s, uint32_t at, Tensor *out) {
    const Node    *n = &s->graph->nodes[at];
    const Tensor **in = arena_try_new(&x->scratch, const Tensor *, n->n_in);
    if (in == NULL) return err_set(ERR_LIMIT, "too many inputs");
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = n->in[i] != NO_VALUE ? &s->values[n->in[i]] : NULL;
    OpCall call = {.node = n, .in = in, .scratch = &x->scratch};
    if (op_is_control_flow(n->op)) return control_flow_infer(x, s, &call, out);
    if (!inputs_known(n, in)) return ERR_OK;
    TRY(infer_node(&call, out));
    s->folded[at] = fold_call(&call, x->eval, &x->budget, out);
    return ERR_OK;
}

// Exporters leave branches that are invalid for every input the model gets and never run: inside
// such bodies a failed node has unknown outputs.
static Err infer_conditional(InferContext *x, ShapedGraph *s, uint32_t at, Tensor *out) {
    Err e = infer_at(x, s, at, out);
    if (e == ERR_OK || e == ERR_LIMIT || x->conditional == 0) return e;
    for (uint32_t k = 0; k < s->graph->nodes[at].n_out; k++)
        out[k] = (Tensor){.rank = RANK_UNKNOWN};
    return ERR_OK;
}

Err shaped_graph_infer(InferContext *x, const Graph *g, const Tensor *inputs,
                       const ShapedGraph *outer, ShapedGraph **made) {
    ShapedGraph *s = NULL;
    TRY(create(g, x->arena, &s));
    for (uint32_t i = 0; i < g->n_inputs; i++) s->values[g->inputs[i]] = infer_like(&inputs[i]);
    CHECK(outer != NULL || g->n_captures == 0);
    for (uint32_t i = 0; i < g->n_captures; i++)
        s->values[g->captures[i].inner] = outer->values[g->captures[i].outer];
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const Node *n = &g->nodes[i];
        if (++x->visits > VISIT_LIMIT)
            return err_set(ERR_LIMIT, "control flow is nested too deeply for shape inference");
        size_t  mark = x->scratch.used;
        Tensor *out = arena_try_new(&x->scratch, Tensor, n->n_out);
        if (out == NULL) return err_set(ERR_LIMIT, "too many outputs");
        for (uint32_t k = 0; k < n->n_out; k++) out[k].rank = RANK_UNKNOWN;
        TRY(infer_conditional(x, s, i, out));
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k] != NO_VALUE) s->values[n->out[k]] = out[k];
        arena_rewind(&x->scratch, mark);
    }
    find_last_uses(s);
    *made = s;
    return ERR_OK;
}

Err shaped_graph_make(const Graph *g, const Tensor *inputs, EvalFn *eval, Arena *arena,
                      ShapedGraph **out) {
    CHECK(g->parent == NULL);
    InferContext x = {.eval = eval, .arena = arena, .budget = {arena, FOLD_BYTES, FOLD_TOTAL}};
    TRY(arena_init_growing(&x.scratch, ARENA_FIRST, SCRATCH_MOST));
    Err e = shaped_graph_infer(&x, g, inputs, NULL, out);
    arena_finish(&x.scratch);
    return e;
}

typedef struct Bound {
    const char *symbol, *input;
    int64_t     size;
} Bound;

static Err bind_symbol(Bound *bound, uint32_t *n, Bound now) {
    for (uint32_t i = 0; i < *n; i++)
        if (strcmp(bound[i].symbol, now.symbol) == 0 && bound[i].size != now.size)
            return err_set(ERR_INVALID,
                           "dimension '%s' is %" PRId64 " in input '%s' but %" PRId64
                           " in input '%s'; give both the same size",
                           now.symbol, bound[i].size, bound[i].input, now.size, now.input);
    if (*n < SYMBOLS_MAX) bound[(*n)++] = now;
    return ERR_OK;
}

static Err check_input(const Value *v, const Tensor *given) {
    const Tensor *want = &v->type;
    char          got[128], need[128];
    if (want->dtype != DT_NONE && given->dtype != want->dtype)
        return err_set(ERR_INVALID, "input '%s' has type %s, the model takes %s", v->name,
                       dtype_name(given->dtype), dtype_name(want->dtype));
    if (want->rank == RANK_UNKNOWN || given->rank == RANK_UNKNOWN) return ERR_OK;
    bool fits = given->rank == want->rank;
    for (int32_t i = 0; fits && i < want->rank; i++)
        fits = want->dims[i] < 0 || given->dims[i] < 0 || given->dims[i] == want->dims[i];
    if (fits) return ERR_OK;
    tensor_shape_text(given, got, sizeof got);
    tensor_shape_text(want, need, sizeof need);
    return err_set(ERR_INVALID, "input '%s' has shape %s, the model takes %s", v->name, got, need);
}

Err shaped_graph_check_inputs(const Graph *g, const Tensor *inputs) {
    for (uint32_t i = 0; i < g->n_inputs; i++)
        TRY(check_input(&g->values[g->inputs[i]], &inputs[i]));
    return ERR_OK;
}

Err shaped_graph_check_symbols(const Graph *g, const Tensor *inputs) {
    Bound    bound[SYMBOLS_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const Value *v = &g->values[g->inputs[i]];
        if (v->symbols == NULL || v->type.rank != inputs[i].rank) continue;
        for (int32_t d = 0; d < v->type.rank; d++)
            if (v->symbols[d] != NULL)
                TRY(bind_symbol(bound, &n, (Bound){v->symbols[d], v->name, inputs[i].dims[d]}));
    }
    return ERR_OK;
}

void shape_cache_init(ShapeCache *s, const Model *m, EvalFn *eval) {
    *s = (ShapeCache){.model = m, .eval = eval};
}

void shape_cache_finish(ShapeCache *s) {
    for (size_t i = 0; i < sizeof s->slots / sizeof *s->slots; i++)
        arena_finish(&s->slots[i].arena);
    *s = (ShapeCache){0};
}

static bool same_inputs(const Graph *g, const Tensor *a, const Tensor *b) {
    for (uint32_t i = 0; i < g->n_inputs; i++)
        if (a[i].dtype != b[i].dtype || !tensor_same_shape(&a[i], &b[i])) return false;
    return true;
}

static Err fill_slot(ShapeCache *s, struct ShapeCacheSlot *slot, const Tensor *inputs) {
    const Graph *g = s->model->graph;
    arena_finish(&slot->arena);
    slot->shaped = NULL;
    TRY(arena_init_growing(&slot->arena, ARENA_FIRST, (size_t)1 << 36));
    slot->inputs = arena_new(&slot->arena, Tensor, g->n_inputs);
    for (uint32_t i = 0; i < g->n_inputs; i++) slot->inputs[i] = infer_like(&inputs[i]);
    return shaped_graph_make(g, slot->inputs, s->eval, &slot->arena, &slot->shaped);
}

Err shape_cache_get(ShapeCache *s, const Tensor *inputs, const ShapedGraph **out) {
    struct ShapeCacheSlot *oldest = &s->slots[0];
    for (size_t i = 0; i < sizeof s->slots / sizeof *s->slots; i++) {
        struct ShapeCacheSlot *slot = &s->slots[i];
        if (slot->shaped != NULL && same_inputs(s->model->graph, slot->inputs, inputs)) {
            slot->used = ++s->clock;
            *out = slot->shaped;
            return ERR_OK;
        }
        if (slot->used < oldest->used) oldest = slot;
    }
    oldest->used = ++s->clock;
    TRY(fill_slot(s, oldest, inputs));
    *out = oldest->shaped;
    return ERR_OK;
}
