// Shapes of operators, then of networks by name or file. No weights are created.
#include "chip/cost/shape.h"

#include <string.h>
#include <unistd.h>

#include "model/onnx/onnx.h"
#include "model/shaped_graph.h"
#include "model/zoo/zoo.h"
#include "model/attr.h"
#include "model/graph.h"
#include "model/params/attention.h"
#include "model/params/einsum.h"
#include "model/params/rnn.h"
#include "model/params/sliding_window.h"

enum { SHAPE_PARTS = 3, SHAPE_LIMIT = 1 << 28 };  // matrix products of an operator; size of a loop

typedef struct ShapeCall {
    OpCall        call;
    const Tensor *second;  // operand of the product; set by shape_parts
    const Tensor *out;     // NULL: omitted
} ShapeCall;

// Sizes of 0 mean 1, sizes above SHAPE_LIMIT are rejected later. Names are suffixes of the node's.
typedef Err ShapeFn(const ShapeCall *c, Shape *out, uint32_t *parts);

// Saturates: sizes come from files.
static int64_t times(int64_t a, int64_t b) {
    int64_t r = 0;
    return __builtin_mul_overflow(a, b, &r) || r > SHAPE_LIMIT ? SHAPE_LIMIT + 1 : r;
}

static Shape product(int64_t groups, int64_t rows, int64_t inputs, int64_t outputs) {
    return (Shape){.n = 1, .k = outputs, .c = inputs, .p = rows, .groups = groups};
}

// All spatial dimensions but the last are merged into rows, so that maps of any rank have two.
static void take_window(const SlidingWindow *w, Shape *s) {
    int32_t last = w->rank - 1;
    s->s = w->kernel[last];
    s->q = w->out[last];
    s->w = w->in[last];
    s->stride_w = w->stride[last];
    s->dilation_w = w->dilation[last];
    s->r = s->p = s->h = 1;
    for (int32_t i = 0; i < last; i++) {
        s->r = times(s->r, w->kernel[i]);
        s->p = times(s->p, w->out[i]);
        s->h = times(s->h, w->in[i]);
        s->stride_h = w->stride[i];
        s->dilation_h = w->dilation[i];
    }
}

static Err conv(const ShapeCall *c, Shape *out, uint32_t *parts) {
    const Node   *n = c->call.node;
    const Tensor *x = c->call.in[0], *w = c->second;
    SlidingWindow win;
    *parts = 1;
    TRY(sliding_window_read(n, x, w->dims + 2, &win));
    int64_t groups = attr_int(n, "group", 1);
    *out = (Shape){.n = x->dims[0], .k = w->dims[0] / groups, .c = w->dims[1], .groups = groups};
    take_window(&win, out);
    return ERR_OK;
}

// Each phase of the stride is a plain convolution of the input with its subset of the weights. If
// the stride does not divide the kernel, every weight is a 1x1 convolution, with outputs added up.
static Err transposed(const ShapeCall *c, Shape *out, uint32_t *parts) {
    const Node   *n = c->call.node;
    const Tensor *x = c->call.in[0], *w = c->second;
    SlidingWindow win;
    *parts = 1;
    TRY(sliding_window_read_transposed(n, x, w->dims + 2, &win));
    *out = (Shape){.n = x->dims[0], .k = w->dims[1], .groups = attr_int(n, "group", 1)};
    out->c = x->dims[1] / out->groups;
    int64_t taps[2] = {1, 1}, phases = 1;
    for (int32_t i = 0; i < win.rank; i++) {
        bool    even = win.dilation[i] == 1 && win.kernel[i] % win.stride[i] == 0;
        int64_t each = even ? win.stride[i] : win.kernel[i];
        phases = times(phases, each);
        taps[i == win.rank - 1] = times(taps[i == win.rank - 1], win.kernel[i] / each);
    }
    out->k = times(out->k, phases);
    out->r = taps[0];
    out->s = taps[1];
    out->q = win.out[win.rank - 1];
    out->p = 1;
    for (int32_t i = 0; i < win.rank - 1; i++) out->p = times(out->p, win.out[i]);
    return ERR_OK;
}

static int64_t last(const Tensor *t, int32_t back) {
    return t->rank > back ? t->dims[t->rank - 1 - back] : 1;
}

static int64_t count_to(const Tensor *t, int32_t end) {
    int64_t n = 1;
    for (int32_t i = 0; i < end; i++) n = times(n, t->dims[i]);
    return n;
}

// A second operand of rank 2 is one matrix for all rows; else each output matrix is a group.
static Err matmul(const ShapeCall *c, Shape *out, uint32_t *parts) {
    const Tensor *a = c->call.in[0], *b = c->second, *y = c->out;
    int32_t       rows = a->rank > 1, columns = b->rank > 1;
    int64_t       inputs = last(a, attr_int(c->call.node, "transA", 0) != 0);
    int64_t       outputs = columns ? last(y, 0) : 1;
    *parts = 1;
    if (b->rank <= 2)
        *out = product(1, count_to(y, y->rank - columns), inputs, outputs);
    else
        *out =
            product(count_to(y, y->rank - columns - rows), rows ? last(y, 1) : 1, inputs, outputs);
    return ERR_OK;
}

static Err gemm(const ShapeCall *c, Shape *out, uint32_t *parts) {
    const Tensor *a = c->call.in[0];
    bool          turned = attr_int(c->call.node, "transA", 0) != 0;
    *parts = 1;
    *out = product(1, 1, a->dims[turned ? 0 : 1], c->out->dims[1]);
    out->n = c->out->dims[0];
    return ERR_OK;
}

// Time steps are sequential; the shape has them as rows of one product.
static Err recurrent(const ShapeCall *c, Shape *out, uint32_t *parts) {
    Rnn r;
    *parts = 1;
    if (c->call.node->op == OP_MsDynamicQuantizeLSTM) {
        QuantizedRnn plain;
        TRY(rnn_read_quantized(&c->call, &plain));
        TRY(rnn_read(&plain.call, &r));
    } else {
        TRY(rnn_read(&c->call, &r));
    }
    *out = product(r.directions, r.steps, r.input + r.hidden, times(r.gates, r.hidden));
    out->n = r.batch;
    return ERR_OK;
}

// Indices in both operands and the output are groups, in one operand rows or columns, in the output
// of neither: summed over, they are the input.
static Err einsum(const ShapeCall *c, Shape *out, uint32_t *parts) {
    Einsum e;
    TRY(einsum_read(&c->call, &e));
    *parts = e.operands > 1;
    if (e.operands < 2) return ERR_OK;
    if (e.operands != 2)
        return err_set(ERR_UNSUPPORTED, "Einsum of %u operands; split it into products of two",
                       e.operands);
    Shape s = product(1, 1, 1, 1);
    for (int32_t i = 0; i < e.n; i++) {
        bool in[2] = {false, false};
        for (int32_t o = 0; o < 2; o++)
            for (int32_t d = 0; d < c->call.in[o]->rank; d++) in[o] = in[o] || e.at[o][d] == i;
        int64_t *to = i >= e.n_out ? &s.c : in[0] && in[1] ? &s.groups : in[0] ? &s.p : &s.k;
        *to = times(*to, e.dims[i]);
    }
    *out = s;
    return ERR_OK;
}

static void scores_and_values(const Attention *a, Shape *out) {
    int64_t groups = times(a->batch, a->heads), keys = a->past + a->fresh;
    out[0] = product(groups, a->queries, a->size, keys);
    out[0].name = "scores";
    out[1] = product(groups, a->queries, keys, a->v_size);
    out[1].name = "values";
}

static Err attention(const ShapeCall *c, Shape *out, uint32_t *parts) {
    Attention a;
    TRY(attention_read(&c->call, &a));
    scores_and_values(&a, out);
    *parts = 2;
    return ERR_OK;
}

// MsAttention starts with the product that computes queries, keys and values.
static Err attention_ms(const ShapeCall *c, Shape *out, uint32_t *parts) {
    Attention     a;
    const Tensor *x = c->call.in[0];
    TRY(attention_read_ms(&c->call, &a));
    out[0] = product(1, times(x->dims[0], x->dims[1]), x->dims[2], last(c->second, 0));
    out[0].name = "input";
    scores_and_values(&a, out + 1);
    *parts = 3;
    return ERR_OK;
}

// MatMulNBits: the weights' bytes have no shape of a matrix.
static Err matmul_nbits(const ShapeCall *c, Shape *out, uint32_t *parts) {
    const Tensor *x = c->call.in[0];
    int64_t       rows = 1;
    for (int32_t i = 0; i + 1 < x->rank; i++) rows = times(rows, x->dims[i]);
    out[0] = product(1, rows, attr_int(c->call.node, "K", 1), attr_int(c->call.node, "N", 1));
    *parts = 1;
    return ERR_OK;
}

typedef struct Row {
    OpId     op;
    ShapeFn *fn;
    uint32_t second;
} Row;

static const Row rows[] = {
#define X(op, fn, second) {OP_##op, fn, second},
#include "chip/cost/shape_op.def"
#undef X
};

static const Row *row_of(OpId op) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == op) return &rows[i];
    return NULL;
}

static bool has_shape(OpId op) { return row_of(op) != NULL; }

static Err shape_parts(ShapeCall *c, Shape *out, uint32_t *parts) {
    const Row *row = row_of(c->call.node->op);
    *parts = 0;
    if (row == NULL) return ERR_OK;
    c->second = c->call.in[row->second];
    for (uint32_t i = 0; i < SHAPE_PARTS; i++) out[i] = (Shape){0};
    return row->fn(c, out, parts);
}

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
        if (g->folded[i] || !has_shape(n->op)) continue;
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
