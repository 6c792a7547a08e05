#include "chip/shape.h"

#include <string.h>

#include "chip/shape_op.h"
#include "model/special.h"

enum { LIST_FIRST = 64 };

typedef struct List {
    Arena   *arena;
    Shape   *at;
    uint32_t n, cap;
} List;

// What was left 0 is 1; the input map covers at least what the windows span.
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
        return err_set(ERR_LIMIT, "layer '%s' is too large for a cost model", s.name);
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

static bool all_known(const Special *g, const Node *n) {
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != NO_VALUE && !tensor_known(&g->values[n->in[i]])) return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != NO_VALUE && !tensor_known(&g->values[n->out[i]])) return false;
    return true;
}

static Err add_node(List *l, const Special *g, const Node *n) {
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

static Err add_graph(List *l, const Special *g) {
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

Err shape_list_of(const Special *g, Arena *a, Shape **out, uint32_t *n) {
    List l = {.arena = a};
    TRY(add_graph(&l, g));
    if (l.n == 0) return err_set(ERR_INVALID, "the network has no convolution and no product");
    *out = l.at;
    *n = l.n;
    return ERR_OK;
}
