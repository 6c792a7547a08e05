#include "model/fold.h"

#include "model/infer/infer.h"
#include "model/work.h"

enum {
    FOLD_BYTES = 1 << 28,  // per output; larger outputs, or more work, are computed at run time
    FOLD_MACS = 1 << 30,
    SCRATCH_FIRST = 1 << 20,
};

typedef struct Folder {
    FoldBudget budget;
    Arena      scratch;
    EvalFn    *eval;
} Folder;

static bool allocate(const Node *n, FoldBudget *budget, Tensor *out) {
    for (uint32_t i = 0; i < n->n_out; i++) {
        size_t bytes = 0;
        if (!tensor_known(&out[i]) || tensor_measure(&out[i], &bytes) != ERR_OK) return false;
        if (bytes > budget->each || bytes > budget->left) return false;
        out[i].data = arena_try(budget->keep, 1, bytes + TENSOR_SLACK, TENSOR_ALIGN);
        if (out[i].data == NULL) return false;
        budget->left -= bytes;
    }
    return true;
}

static bool is_cheap(const OpCall *c, const Tensor *out) {
    return work_macs(c->node, c->in, out) <= FOLD_MACS;
}

// Shape and Size depend on shapes alone, not on data.
static bool inputs_have_data(const OpCall *c) {
    if (c->node->op == OP_Shape || c->node->op == OP_Size) return true;
    for (uint32_t i = 0; i < c->node->n_in; i++)
        if (c->in[i] != NULL && c->in[i]->data == NULL) return false;
    return true;
}

bool fold_call(const OpCall *c, EvalFn *eval, FoldBudget *budget, Tensor *out) {
    const Node *n = c->node;
    if (eval == NULL || !inputs_have_data(c)) return false;
    size_t mark = budget->keep->used, left = budget->left;
    OpCall call = *c;
    call.keep = budget->keep;
    if (allocate(n, budget, out) && is_cheap(c, out) && eval(&call, out) == ERR_OK) return true;
    arena_rewind(budget->keep, mark);
    budget->left = left;
    for (uint32_t i = 0; i < n->n_out; i++) out[i].data = NULL;
    return false;
}

static void make_constant(Value *v, const Tensor *t) {
    v->type = *t;
    v->symbols = NULL;
    v->constant = true;
    v->producer = NO_NODE;
}

static bool compute(Folder *f, Graph *g, const Node *n) {
    const Tensor **in = arena_try_new(&f->scratch, const Tensor *, n->n_in);
    Tensor        *out = arena_try_new(&f->scratch, Tensor, n->n_out);
    if (in == NULL || out == NULL) return false;
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (n->in[i] == NO_VALUE) continue;
        const Value *v = &g->values[n->in[i]];
        if (!v->constant || v->type.data == NULL) return false;
        in[i] = &v->type;
    }
    OpCall call = {.node = n, .in = in, .scratch = &f->scratch};
    if (infer_node(&call, out) != ERR_OK) return false;
    if (!fold_call(&call, f->eval, &f->budget, out)) return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != NO_VALUE) make_constant(&g->values[n->out[i]], &out[i]);
    return true;
}

// Quantised weights stay bytes: a quarter of the memory, and the compiler computes with them.
static bool widens_bytes(const Graph *g, const Node *n) {
    if (n->op != OP_DequantizeLinear && n->op != OP_MsDequantizeLinear) return false;
    DType t = g->values[n->in[0]].type.dtype;
    return t == DT_I8 || t == DT_U8 || t == DT_I32;
}

// Captured constants become constants of the body, so that the body folds too.
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
        bool   flow = op_is_control_flow(n.op);
        for (uint32_t k = 0; k < n.n_attr; k++)
            if (n.attrs[k].kind == ATTR_GRAPH) fold_graph(f, n.attrs[k].v.g);
        bool gone = !flow && !widens_bytes(g, &n) && compute(f, g, &n);
        arena_rewind(&f->scratch, mark);
        if (gone) continue;
        for (uint32_t k = 0; k < n.n_out; k++)
            if (n.out[k] != NO_VALUE) g->values[n.out[k]].producer = kept;
        g->nodes[kept++] = n;
    }
    g->n_nodes = kept;
}

Err fold_constants(Model *m, EvalFn *eval) {
    // Constants of 16 bits grow by two when they are widened; shape arithmetic is negligible.
    size_t total = FOLD_BYTES + 4 * m->arena.used;
    Folder f = {.budget = {.keep = &m->arena, .each = FOLD_BYTES, .left = total}, .eval = eval};
    TRY(arena_init_growing(&f.scratch, SCRATCH_FIRST, (size_t)1 << 34));
    fold_graph(&f, m->graph);
    arena_finish(&f.scratch);
    return ERR_OK;
}
