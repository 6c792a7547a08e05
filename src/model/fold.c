#include "model/fold.h"

#include "model/infer.h"

enum { FOLD_BYTES = 1 << 28, SCRATCH_SHIFT = 34 };  // per output; larger ones are made when asked

typedef struct Folder {
    Arena  *arena;  // the model's
    Arena   scratch;
    EvalFn *eval;
} Folder;

static bool inputs_constant(const Graph *g, const Node *n, const Tensor **in) {
    for (uint32_t i = 0; i < n->n_in; i++) {
        in[i] = n->in[i] != NO_VALUE ? &g->values[n->in[i]].type : NULL;
        if (in[i] != NULL && (!g->values[n->in[i]].constant || in[i]->data == NULL)) return false;
    }
    return true;
}

static bool make_room(Folder *f, const Node *n, Tensor *out) {
    for (uint32_t i = 0; i < n->n_out; i++) {
        size_t bytes = 0;
        if (!tensor_known(&out[i]) || tensor_measure(&out[i], &bytes) != ERR_OK) return false;
        if (bytes > FOLD_BYTES) return false;
        out[i].data = arena_try(f->arena, 1, bytes, TENSOR_ALIGN);
        if (out[i].data == NULL) return false;
    }
    return true;
}

static bool compute(Folder *f, Graph *g, const Node *n) {
    const Tensor **in = arena_try_new(&f->scratch, const Tensor *, n->n_in);
    Tensor        *out = arena_try_new(&f->scratch, Tensor, n->n_out);
    if (in == NULL || out == NULL || !inputs_constant(g, n, in)) return false;
    OpCall call = {.node = n, .in = in, .scratch = &f->scratch};
    if (infer_node(&call, out) != ERR_OK) return false;
    size_t mark = f->arena->used;
    call.keep = f->arena;
    if (!make_room(f, n, out) || f->eval(&call, out) != ERR_OK) {
        arena_rewind(f->arena, mark);
        return false;
    }
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != NO_VALUE) {
            Value *v = &g->values[n->out[i]];
            v->type = out[i];
            v->symbols = NULL;
            v->constant = true;
            v->producer = NO_NODE;
        }
    return true;
}

// A captured constant becomes the body's own, so that the body folds too.
static void adopt_constants(Graph *g) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->n_captures; i++) {
        const Value *outer = &g->parent->values[g->captures[i].outer];
        if (outer->constant && outer->type.data != NULL) {
            g->values[g->captures[i].inner].type = outer->type;
            g->values[g->captures[i].inner].constant = true;
        } else
            g->captures[kept++] = g->captures[i];
    }
    g->n_captures = kept;
}

static void fold_graph(Folder *f, Graph *g) {
    if (g->parent != NULL) adopt_constants(g);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        Node   n = g->nodes[i];
        size_t mark = f->scratch.used;
        bool   flow = op_info(n.op)->infer == infer_flow;
        for (uint32_t k = 0; k < n.n_attr; k++)
            if (n.attrs[k].kind == ATTR_GRAPH) fold_graph(f, n.attrs[k].v.g);
        bool gone = !flow && compute(f, g, &n);
        arena_rewind(&f->scratch, mark);
        if (gone) continue;
        for (uint32_t k = 0; k < n.n_out; k++)
            if (n.out[k] != NO_VALUE) g->values[n.out[k]].producer = kept;
        g->nodes[kept++] = n;
    }
    g->n_nodes = kept;
}

Err fold_constants(Model *m, EvalFn *eval) {
    Folder f = {.arena = &m->arena, .eval = eval};
    TRY(arena_init(&f.scratch, (size_t)1 << SCRATCH_SHIFT));
    fold_graph(&f, m->graph);
    arena_finish(&f.scratch);
    return ERR_OK;
}
