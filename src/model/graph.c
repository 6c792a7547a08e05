#include "model/graph.h"

#include <string.h>

#include "base/err.h"

Graph *graph_create(Arena *a, Graph *parent, const char *name) {
    Graph *g = arena_new(a, Graph, 1);
    g->arena = a;
    g->parent = parent;
    g->name = name;
    string_map_init(&g->names, a);
    return g;
}

// Room for one more element; the old array stays behind in the arena, at most as large again.
static void *grown(Arena *a, void *old, uint32_t n, uint32_t *cap, size_t size) {
    if (n < *cap) return old;
    uint32_t more = *cap == 0 ? 8 : 2 * *cap;
    void    *now = arena_alloc(a, more, size, _Alignof(max_align_t));
    if (n > 0) memcpy(now, old, n * size);
    *cap = more;
    return now;
}

uint32_t graph_find(const Graph *g, const char *name) { return string_map_get(&g->names, name); }

uint32_t graph_value(Graph *g, const char *name) {
    uint32_t found = graph_find(g, name);
    if (found != NO_VALUE) return found;
    g->values = grown(g->arena, g->values, g->n_values, &g->cap_values, sizeof(Value));
    g->values[g->n_values] =
        (Value){.name = name, .type = {.rank = RANK_UNKNOWN}, .producer = NO_NODE};
    string_map_put(&g->names, name, g->n_values);
    return g->n_values++;
}

uint32_t graph_const(Graph *g, const char *name, Tensor t, const RandomFill *fill) {
    uint32_t v = graph_value(g, name);
    g->values[v].type = t;
    g->values[v].fill = fill;
    g->values[v].constant = true;
    return v;
}

void graph_input(Graph *g, uint32_t value) {
    g->inputs = grown(g->arena, g->inputs, g->n_inputs, &g->cap_inputs, sizeof(uint32_t));
    g->inputs[g->n_inputs++] = value;
    g->values[value].given = true;
}

void graph_output(Graph *g, uint32_t value) {
    g->outputs = grown(g->arena, g->outputs, g->n_outputs, &g->cap_outputs, sizeof(uint32_t));
    g->outputs[g->n_outputs++] = value;
}

uint32_t graph_capture(Graph *g, const char *name) {
    if (g->parent == NULL) return NO_VALUE;
    uint32_t outer = graph_find(g->parent, name);
    if (outer == NO_VALUE) outer = graph_capture(g->parent, name);
    if (outer == NO_VALUE) return NO_VALUE;
    uint32_t inner = graph_value(g, name);
    g->captures = grown(g->arena, g->captures, g->n_captures, &g->cap_captures, sizeof(Capture));
    g->captures[g->n_captures++] = (Capture){inner, outer};
    g->values[inner].given = true;
    return inner;
}

Node *graph_node(Graph *g, Node n) {
    g->nodes = grown(g->arena, g->nodes, g->n_nodes, &g->cap_nodes, sizeof(Node));
    uint32_t at = g->n_nodes++;
    g->nodes[at] = n;
    for (uint32_t i = 0; i < n.n_out; i++)
        if (n.out[i] != NO_VALUE) g->values[n.out[i]].producer = at;
    return &g->nodes[at];
}

// Calls visit for every node a given node waits for: producers of inputs and of captured values.
typedef void WaitFn(void *self, uint32_t producer);

static void each_wait(const Graph *g, const Node *n, WaitFn *visit, void *self) {
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != NO_VALUE && g->values[n->in[i]].producer != NO_NODE)
            visit(self, g->values[n->in[i]].producer);
    for (uint32_t i = 0; i < n->n_attr; i++) {
        if (n->attrs[i].kind != ATTR_GRAPH) continue;
        const Graph *body = n->attrs[i].v.g;
        for (uint32_t k = 0; k < body->n_captures; k++) {
            uint32_t p = g->values[body->captures[k].outer].producer;
            if (p != NO_NODE) visit(self, p);
        }
    }
}

typedef struct Edges {
    uint32_t *count;  // [n_nodes + 1] how many wait for a node; then where its list begins
    uint32_t *list;   // the waiting nodes, grouped by what they wait for
    uint32_t *waits;  // [n_nodes] how many a node still waits for
    uint32_t  from, total;
} Edges;

static void count_edge(void *self, uint32_t producer) {
    Edges *e = self;
    e->count[producer + 1]++;
    e->waits[e->from]++;
    e->total++;
}

static void store_edge(void *self, uint32_t producer) {
    Edges *e = self;
    e->list[e->count[producer]++] = e->from;
}

static Edges edges_build(const Graph *g, Arena *a) {
    Edges e = {.count = arena_new(a, uint32_t, (size_t)g->n_nodes + 2),
               .waits = arena_new(a, uint32_t, g->n_nodes)};
    for (e.from = 0; e.from < g->n_nodes; e.from++) each_wait(g, &g->nodes[e.from], count_edge, &e);
    e.list = arena_new(a, uint32_t, e.total);
    for (uint32_t i = 1; i <= g->n_nodes; i++) e.count[i] += e.count[i - 1];
    for (e.from = 0; e.from < g->n_nodes; e.from++) each_wait(g, &g->nodes[e.from], store_edge, &e);
    for (uint32_t i = g->n_nodes; i > 0; i--) e.count[i] = e.count[i - 1];
    e.count[0] = 0;
    return e;
}

typedef struct Order {
    uint32_t at;
    bool     broken;
} Order;

static void check_order(void *self, uint32_t producer) {
    Order *o = self;
    if (producer >= o->at) o->broken = true;
}

static bool sorted_already(const Graph *g) {
    Order o = {0};
    for (; o.at < g->n_nodes && !o.broken; o.at++) each_wait(g, &g->nodes[o.at], check_order, &o);
    return !o.broken;
}

static void sift_up(uint32_t *heap, uint32_t i) {
    for (; i > 0 && heap[i] < heap[(i - 1) / 2]; i = (i - 1) / 2) {
        uint32_t t = heap[i];
        heap[i] = heap[(i - 1) / 2];
        heap[(i - 1) / 2] = t;
    }
}

static uint32_t pop(uint32_t *heap, uint32_t *n) {
    uint32_t top = heap[0];
    heap[0] = heap[--*n];
    for (uint32_t i = 0, kid; (kid = 2 * i + 1) < *n; i = kid) {
        if (kid + 1 < *n && heap[kid + 1] < heap[kid]) kid++;
        if (heap[i] <= heap[kid]) break;
        uint32_t t = heap[i];
        heap[i] = heap[kid];
        heap[kid] = t;
    }
    return top;
}

// Kahn's algorithm; among ready nodes the one that stood first in the file goes first.
static uint32_t topological(const Graph *g, Edges *e, uint32_t *order, uint32_t *heap) {
    uint32_t n_heap = 0, n = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (e->waits[i] == 0) {
            heap[n_heap] = i;
            sift_up(heap, n_heap++);
        }
    while (n_heap > 0) {
        uint32_t at = order[n++] = pop(heap, &n_heap);
        for (uint32_t k = e->count[at]; k < e->count[at + 1]; k++)
            if (--e->waits[e->list[k]] == 0) {
                heap[n_heap] = e->list[k];
                sift_up(heap, n_heap++);
            }
    }
    return n;
}

static Err check_cycle(const Graph *g, const Edges *e, uint32_t n_ordered) {
    if (n_ordered == g->n_nodes) return ERR_OK;
    uint32_t stuck = 0;
    while (e->waits[stuck] == 0) stuck++;
    return err_set(ERR_INVALID, "node '%s' (%s) is part of a cycle or waits for one",
                   g->nodes[stuck].name, op_info(g->nodes[stuck].op)->name);
}

static bool value_has_source(const Graph *g, uint32_t v) {
    return g->values[v].constant || g->values[v].given || g->values[v].producer != NO_NODE;
}

static Err check_sources(const Graph *g) {
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; k < g->nodes[i].n_in; k++)
            if (g->nodes[i].in[k] != NO_VALUE && !value_has_source(g, g->nodes[i].in[k]))
                return err_set(ERR_INVALID, "node '%s' (%s) reads '%s', which nothing produces",
                               g->nodes[i].name, op_info(g->nodes[i].op)->name,
                               g->values[g->nodes[i].in[k]].name);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (!value_has_source(g, g->outputs[i]))
            return err_set(ERR_INVALID, "output '%s' is produced by nothing",
                           g->values[g->outputs[i]].name);
    return ERR_OK;
}

Err graph_sort(Graph *g) {
    TRY(check_sources(g));
    if (sorted_already(g)) return ERR_OK;
    Arena    *a = g->arena;
    size_t    mark = a->used;
    Edges     e = edges_build(g, a);
    uint32_t *order = arena_new(a, uint32_t, g->n_nodes);
    uint32_t  n = topological(g, &e, order, arena_new(a, uint32_t, g->n_nodes));
    TRY(check_cycle(g, &e, n));
    Node *sorted = arena_new(a, Node, g->n_nodes);
    for (uint32_t i = 0; i < n; i++) sorted[i] = g->nodes[order[i]];
    memcpy(g->nodes, sorted, n * sizeof *sorted);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < g->nodes[i].n_out; k++)
            if (g->nodes[i].out[k] != NO_VALUE) g->values[g->nodes[i].out[k]].producer = i;
    arena_rewind(a, mark);
    return ERR_OK;
}

// Seeded weights on demand. The numbers depend on the fill alone, so a file written twice is equal.

static float sample(const RandomFill *f, Rng *r) {
    switch (f->kind) {
    case FILL_NORMAL: return f->shift + f->scale * (float)rng_normal(r);
    case FILL_UNIFORM: return f->shift + f->scale * (2 * rng_unit(r) - 1);
    case FILL_CONST: break;
    }
    return f->shift;
}

void random_fill_make(const RandomFill *f, const Tensor *type, void *out) {
    CHECK(type->dtype == DT_F32);
    int64_t n = tensor_count(type);
    Rng     r = f->rng;
    float  *at = out;
    for (int64_t i = 0; i < n; i++) at[i] = sample(f, &r);
}

// Two graphs are equal when a reader could not tell them apart: names, order, types and numbers.

static bool same_text(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_str(Str a, Str b) { return a.len == b.len && memcmp(a.at, b.at, a.len) == 0; }

static bool same_strings(const Attr *a, const Attr *b) {
    for (uint32_t i = 0; i < a->n; i++)
        if (!same_str(a->v.strings[i], b->v.strings[i])) return false;
    return true;
}

static bool same_attr(const Attr *a, const Attr *b) {
    if (!same_text(a->name, b->name) || a->kind != b->kind || a->n != b->n) return false;
    switch (a->kind) {
    case ATTR_FLOAT: return memcmp(&a->v.f, &b->v.f, sizeof a->v.f) == 0;
    case ATTR_INT: return a->v.i == b->v.i;
    case ATTR_STRING: return same_str(a->v.s, b->v.s);
    case ATTR_TENSOR:
    case ATTR_TYPE: return tensor_equal(a->v.t, b->v.t);
    case ATTR_GRAPH: return graph_equal(a->v.g, b->v.g);
    case ATTR_FLOATS: return memcmp(a->v.floats, b->v.floats, a->n * sizeof(float)) == 0;
    case ATTR_INTS: return memcmp(a->v.ints, b->v.ints, a->n * sizeof(int64_t)) == 0;
    case ATTR_STRINGS: return same_strings(a, b);
    }
    return false;
}

static bool same_symbols(const Value *a, const Value *b) {
    for (int32_t i = 0; i < a->type.rank; i++)
        if (!same_text(a->symbols != NULL ? a->symbols[i] : NULL,
                       b->symbols != NULL ? b->symbols[i] : NULL))
            return false;
    return true;
}

// A filled constant equals the numbers it would make, so compare only what both sides hold.
static bool same_value(const Value *a, const Value *b) {
    if (!same_text(a->name, b->name) || a->constant != b->constant) return false;
    if (a->type.dtype != b->type.dtype || !tensor_same_shape(&a->type, &b->type)) return false;
    if (!same_symbols(a, b)) return false;
    if (a->type.data != NULL && b->type.data != NULL) return tensor_equal(&a->type, &b->type);
    return true;
}

static bool same_ref(const Graph *a, uint32_t x, const Graph *b, uint32_t y) {
    if (x == NO_VALUE || y == NO_VALUE) return x == y;
    return same_value(&a->values[x], &b->values[y]);
}

static bool same_refs(const Graph *a, const uint32_t *x, const Graph *b, const uint32_t *y,
                      uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!same_ref(a, x[i], b, y[i])) return false;
    return true;
}

static bool same_node(const Graph *a, const Node *x, const Graph *b, const Node *y) {
    if (!same_text(x->name, y->name) || x->op != y->op || x->version != y->version) return false;
    if (x->n_in != y->n_in || x->n_out != y->n_out || x->n_attr != y->n_attr) return false;
    if (!same_refs(a, x->in, b, y->in, x->n_in)) return false;
    if (!same_refs(a, x->out, b, y->out, x->n_out)) return false;
    for (uint32_t i = 0; i < x->n_attr; i++)
        if (!same_attr(&x->attrs[i], &y->attrs[i])) return false;
    return true;
}

bool graph_equal(const Graph *a, const Graph *b) {
    if (a->n_nodes != b->n_nodes || a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs)
        return false;
    if (!same_refs(a, a->inputs, b, b->inputs, a->n_inputs)) return false;
    if (!same_refs(a, a->outputs, b, b->outputs, a->n_outputs)) return false;
    for (uint32_t i = 0; i < a->n_nodes; i++)
        if (!same_node(a, &a->nodes[i], b, &b->nodes[i])) return false;
    return true;
}
