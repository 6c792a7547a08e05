#include "model/fold.h"

#include "model/infer/infer.h"
#include "model/work.h"

enum {
    FOLD_BYTES =
        1 << 28,  // per output; what is larger, or more work, is computed when it is needed
    FOLD_MACS = 1 << 30,
    SCRATCH_SHIFT = 34,
};

typedef struct Folder {
    FoldBudget room;
    Arena      scratch;
    EvalFn    *eval;
} Folder;

static bool make_room(const Node *n, FoldBudget *room, Tensor *out) {
    for (uint32_t i = 0; i < n->n_out; i++) {
        size_t bytes = 0;
        if (!tensor_known(&out[i]) || tensor_measure(&out[i], &bytes) != ERR_OK) return false;
        if (bytes > room->each || bytes > room->left) return false;
        out[i].data = arena_try(room->keep, 1, bytes, TENSOR_ALIGN);
        if (out[i].data == NULL) return false;
        room->left -= bytes;
    }
    return true;
}

static bool worth_it(const OpCall *c, const Tensor *out) {
    return work_macs(c->node, c->in, out) <= FOLD_MACS;
}

// Shape and Size ask for no numbers: they are known as soon as shapes are.
static bool inputs_there(const OpCall *c) {
    if (c->node->op == OP_Shape || c->node->op == OP_Size) return true;
    for (uint32_t i = 0; i < c->node->n_in; i++)
        if (c->in[i] != NULL && c->in[i]->data == NULL) return false;
    return true;
}

bool fold_call(const OpCall *c, EvalFn *eval, FoldBudget *room, Tensor *out) {
    const Node *n = c->node;
    if (eval == NULL || !inputs_there(c)) return false;
    size_t mark = room->keep->used, left = room->left;
    OpCall call = *c;
    call.keep = room->keep;
    if (make_room(n, room, out) && worth_it(c, out) && eval(&call, out) == ERR_OK) return true;
    arena_rewind(room->keep, mark);
    room->left = left;
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
    if (!fold_call(&call, f->eval, &f->room, out)) return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != NO_VALUE) make_constant(&g->values[n->out[i]], &out[i]);
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
        bool   flow = op_is_control_flow(n.op);
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
    // Weights kept as bytes unfold to floats, four times as large; shapes need next to nothing.
    size_t total = FOLD_BYTES + 4 * m->arena.used;
    Folder f = {.room = {.keep = &m->arena, .each = FOLD_BYTES, .left = total}, .eval = eval};
    TRY(arena_init(&f.scratch, (size_t)1 << SCRATCH_SHIFT));
    fold_graph(&f, m->graph);
    arena_finish(&f.scratch);
    return ERR_OK;
}
