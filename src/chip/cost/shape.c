// Networks by name or file, from shapes alone: no weights are created.
#include "chip/cost/shape.h"

#include <string.h>
#include <unistd.h>

#include "chip/cost/shape_op.h"
#include "model/onnx/onnx.h"
#include "model/shaped_graph.h"
#include "model/zoo/zoo.h"

typedef struct Known {
    const char *network;
    Shape       shape;
} Known;

static const Known known[] = {
#define X(net, layer, k_, c_, kernel, out, stride, groups_)                                        \
    {#net,                                                                                         \
     {.name = #layer,                                                                              \
      .op = "Conv",                                                                                \
      .n = 1,                                                                                      \
      .k = (k_),                                                                                   \
      .c = (c_),                                                                                   \
      .r = (kernel),                                                                               \
      .s = (kernel),                                                                               \
      .p = (out),                                                                                  \
      .q = (out),                                                                                  \
      .groups = (groups_),                                                                         \
      .stride_h = (stride),                                                                        \
      .stride_w = (stride),                                                                        \
      .dilation_h = 1,                                                                             \
      .dilation_w = 1,                                                                             \
      .h = ((out)-1) * (stride) + (kernel),                                                        \
      .w = ((out)-1) * (stride) + (kernel)}},
#include "chip/cost/shape_known.def"
#undef X
};

enum { KNOWN = sizeof known / sizeof *known };

// The number of a network's layers in shape_known.def; copies them to out unless NULL.
static uint32_t look_up(const char *network, int64_t batch, Shape *out) {
    uint32_t n = 0;
    for (size_t i = 0; i < KNOWN; i++) {
        if (strcmp(known[i].network, network) != 0) continue;
        if (out != NULL) {
            out[n] = known[i].shape;
            out[n].n = batch;
        }
        n++;
    }
    return n;
}

bool shape_known(const char *network) { return look_up(network, 1, NULL) > 0; }

static bool is_file(const char *what) {
    size_t n = strlen(what);
    bool   suffix = n > 5 && strcmp(what + n - 5, ".onnx") == 0;
    return suffix || strchr(what, '/') != NULL || access(what, F_OK) == 0;
}

static Err bind(const Model *m, int64_t batch, Tensor *types) {
    for (uint32_t i = 0; i < m->graph->n_inputs; i++) {
        const Value *v = &m->graph->values[m->graph->inputs[i]];
        types[i] = v->type;
        for (int32_t d = 0; d < types[i].rank; d++) {
            if (types[i].dims[d] >= 0) continue;
            if (d > 0)
                return err_set(ERR_UNSUPPORTED,
                               "dimension %d of input '%s' is open; give it a size in the file", d,
                               v->name);
            types[i].dims[d] = batch;
        }
    }
    return ERR_OK;
}

static Err list(const Model *m, int64_t batch, Arena *a, Shape **out, uint32_t *n) {
    ShapeCache         all;
    const ShapedGraph *s = NULL;
    Tensor            *types = arena_try_new(a, Tensor, m->graph->n_inputs);
    if (types == NULL) return err_set(ERR_LIMIT, "no memory for %u inputs", m->graph->n_inputs);
    TRY(bind(m, batch, types));
    shape_cache_init(&all, m, NULL);
    Err e = shape_cache_get(&all, types, &s);
    if (e == ERR_OK) e = shape_list_of(s, a, out, n);
    shape_cache_finish(&all);
    return e;
}

Err shape_list(const char *network, int64_t batch, Arena *a, Shape **out, uint32_t *n) {
    Model    m = {0};
    uint32_t layers = look_up(network, batch, NULL);
    if (layers > 0) {
        *out = arena_try_new(a, Shape, layers);
        if (*out == NULL) return err_set(ERR_LIMIT, "%s: no memory for its layers", network);
        *n = look_up(network, batch, *out);
        return ERR_OK;
    }
    if (is_file(network))
        TRY(onnx_read(network, &m));
    else
        TRY(zoo_build(network, &(ZooOptions){.batch = batch}, &m));
    Err e = list(&m, batch, a, out, n);
    model_finish(&m);
    return e == ERR_OK ? e : err_add(e, "%s", network);
}

enum { LIST_FIRST = 64 };

typedef struct List {
    Arena   *arena;
    Shape   *at;
    uint32_t n, cap;
} List;

// Sizes of 0 become 1; the input map becomes at least the span of the windows.
static void complete(Shape *s) {
    int64_t *each[] = {&s->n,        &s->k,        &s->c,          &s->r,
                       &s->s,        &s->p,        &s->q,          &s->groups,
                       &s->stride_h, &s->stride_w, &s->dilation_h, &s->dilation_w};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        if (*each[i] == 0) *each[i] = 1;
    int64_t h = shape_span(s->p, s->r, s->stride_h, s->dilation_h, INT64_MAX);
    int64_t w = shape_span(s->q, s->s, s->stride_w, s->dilation_w, INT64_MAX);
    if (s->h < h) s->h = h;
    if (s->w < w) s->w = w;
}

static bool small_enough(const Shape *s) {
    const int64_t each[] = {s->n,        s->k,        s->c,          s->r,         s->s,
                            s->p,        s->q,        s->h,          s->w,         s->groups,
                            s->stride_h, s->stride_w, s->dilation_h, s->dilation_w};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        if (each[i] < 0 || each[i] > SHAPE_LIMIT) return false;
    return true;
}

static Err list_add(List *l, Shape s) {
    bool fits = small_enough(&s);
    if (fits) complete(&s);
    if (!fits || !small_enough(&s) || shape_macs(&s) > 1e18)
        return err_set(ERR_LIMIT, "layer '%s' is too large for the cost model", s.name);
    if (l->n == l->cap) {
        uint32_t cap = l->cap > 0 ? 2 * l->cap : LIST_FIRST;
        Shape   *more = arena_try_new(l->arena, Shape, cap);
        if (more == NULL) return err_set(ERR_LIMIT, "the network has too many layers");
        if (l->n > 0) memcpy(more, l->at, l->n * sizeof *more);
        l->at = more;
        l->cap = cap;
    }
    l->at[l->n++] = s;
    return ERR_OK;
}

static bool all_known(const ShapedGraph *g, const Node *n) {
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != NO_VALUE && !tensor_known(&g->values[n->in[i]])) return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != NO_VALUE && !tensor_known(&g->values[n->out[i]])) return false;
    return true;
}

static Err add_node(List *l, const ShapedGraph *g, const Node *n) {
    const Tensor **in = arena_try_new(l->arena, const Tensor *, n->n_in);
    Shape          s[SHAPE_PARTS];
    uint32_t       parts = 0;
    if (in == NULL) return err_set(ERR_LIMIT, "layer '%s' has too many inputs", n->name);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = n->in[i] != NO_VALUE ? &g->values[n->in[i]] : NULL;
    ShapeCall c = {.call = {.node = n, .in = in, .scratch = l->arena}};
    for (uint32_t i = 0; i < n->n_out && c.out == NULL; i++)
        if (n->out[i] != NO_VALUE) c.out = &g->values[n->out[i]];
    Err e = c.out != NULL ? shape_parts(&c, s, &parts) : ERR_OK;
    if (e != ERR_OK) return err_add(e, "layer '%s'", n->name);
    for (uint32_t i = 0; i < parts; i++) {
        const char *part = s[i].name;
        s[i].op = op_info(n->op)->name;
        s[i].name = part == NULL ? arena_str(l->arena, n->name)
                                 : arena_printf(l->arena, "%s/%s", n->name, part);
        TRY(list_add(l, s[i]));
    }
    return ERR_OK;
}

static Err add_graph(List *l, const ShapedGraph *g) {
    for (uint32_t i = 0; i < g->graph->n_nodes; i++) {
        const Node *n = &g->graph->nodes[i];
        if (g->folded[i] || !shape_op(n->op)) continue;
        if (!all_known(g, n))
            return err_set(ERR_UNSUPPORTED,
                           "layer '%s': its shape depends on inputs; fix the sizes in the file",
                           n->name);
        TRY(add_node(l, g, n));
    }
    return ERR_OK;
}

Err shape_list_of(const ShapedGraph *g, Arena *a, Shape **out, uint32_t *n) {
    List l = {.arena = a};
    TRY(add_graph(&l, g));
    if (l.n == 0)
        return err_set(ERR_INVALID, "the network has no convolution and no matrix product");
    *out = l.at;
    *n = l.n;
    return ERR_OK;
}
