#include "model/graph.h"

#include <string.h>

#include "base/err.h"
#include "base/heap.h"

Graph *graph_create(Arena *a, Graph *parent, const char *name) {
    Graph *g = arena_new(a, Graph, 1);
    g->arena = a;
    g->parent = parent;
    g->name = name;
    string_map_init(&g->names, a);
    return g;
}

// Makes room for one more element. The old array stays in the arena, at most doubling its use.
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

// Visits the nodes that n depends on: producers of its inputs and of what its bodies capture.
typedef void DependencyFn(void *self, uint32_t producer);

static void each_dependency(const Graph *g, const Node *n, DependencyFn *visit, void *self) {
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
    uint32_t *first;    // [n_nodes + 1] where the users of each node begin in users
    uint32_t *users;    // nodes grouped by the node they depend on
    uint32_t *missing;  // [n_nodes] dependencies of each node that are not ordered yet
    uint32_t  from, total;
} Edges;

static void count_edge(void *self, uint32_t producer) {
    Edges *e = self;
    e->first[producer + 1]++;
    e->missing[e->from]++;
    e->total++;
}

static void store_edge(void *self, uint32_t producer) {
    Edges *e = self;
    e->users[e->first[producer]++] = e->from;
}

static Edges edges_build(const Graph *g, Arena *a) {
    Edges e = {.first = arena_new(a, uint32_t, (size_t)g->n_nodes + 2),
               .missing = arena_new(a, uint32_t, g->n_nodes)};
    for (e.from = 0; e.from < g->n_nodes; e.from++)
        each_dependency(g, &g->nodes[e.from], count_edge, &e);
    e.users = arena_new(a, uint32_t, e.total);
    for (uint32_t i = 1; i <= g->n_nodes; i++) e.first[i] += e.first[i - 1];
    for (e.from = 0; e.from < g->n_nodes; e.from++)
        each_dependency(g, &g->nodes[e.from], store_edge, &e);
    for (uint32_t i = g->n_nodes; i > 0; i--) e.first[i] = e.first[i - 1];
    e.first[0] = 0;
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
    for (; o.at < g->n_nodes && !o.broken; o.at++)
        each_dependency(g, &g->nodes[o.at], check_order, &o);
    return !o.broken;
}

static void add_ready(Heap *ready, uint32_t node) { heap_push(ready, node, 0, node); }

// Kahn's algorithm; among ready nodes the first of the file goes first. Returns how many it
// ordered.
static uint32_t topological(const Graph *g, Edges *e, uint32_t *order) {
    Heap     ready;
    uint32_t n = 0;
    heap_init(&ready, g->arena, g->n_nodes);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (e->missing[i] == 0) add_ready(&ready, i);
    while (!heap_empty(&ready)) {
        uint32_t at = order[n++] = heap_pop(&ready).id;
        for (uint32_t k = e->first[at]; k < e->first[at + 1]; k++)
            if (--e->missing[e->users[k]] == 0) add_ready(&ready, e->users[k]);
    }
    return n;
}

static Err check_cycle(const Graph *g, const Edges *e, uint32_t n_ordered) {
    if (n_ordered == g->n_nodes) return ERR_OK;
    uint32_t stuck = 0;
    while (e->missing[stuck] == 0) stuck++;
    return err_set(ERR_INVALID, "node '%s' (%s) is part of a cycle or depends on one",
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
            return err_set(ERR_INVALID, "nothing produces output '%s'",
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
    uint32_t  n = topological(g, &e, order);
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

void random_fill_make(const RandomFill *f, const Tensor *type, void *out) {
    CHECK(type->dtype == DT_F32);
    int64_t n = tensor_count(type);
    Rng     r = f->rng;
    float  *at = out;
    for (int64_t i = 0; i < n; i++) at[i] = f->mean + f->spread * (2 * rng_unit(&r) - 1);
}
