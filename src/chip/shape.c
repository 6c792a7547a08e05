#include "chip/shape.h"

#include <string.h>

#include "model/attr.h"
#include "model/einsum.h"
#include "model/rnn.h"
#include "model/special.h"
#include "model/window.h"

enum { LIST_FIRST = 64, SIZE_LIMIT = 1 << 28 };  // of a loop

typedef struct List {
    Arena   *arena;
    Shape   *at;
    uint32_t n, cap;
} List;

// Sizes come from files: what is too large stays just that.
static int64_t times(int64_t a, int64_t b) {
    int64_t r = 0;
    return __builtin_mul_overflow(a, b, &r) || r > SIZE_LIMIT ? SIZE_LIMIT + 1 : r;
}

static Shape product(int64_t groups, int64_t rows, int64_t inputs, int64_t outputs) {
    return (Shape){.n = 1, .k = outputs, .c = inputs, .p = rows, .groups = groups};
}

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
                            s->p,        s->q,        s->groups,     s->h,         s->w,
                            s->stride_h, s->stride_w, s->dilation_h, s->dilation_w};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        if (each[i] < 1 || each[i] > SIZE_LIMIT) return false;
    return shape_macs(s) < 1e18;
}

static Err list_add(List *l, Shape s, const Node *n, const char *name) {
    s.name = name;
    s.op = op_info(n->op)->name;
    const int64_t each[] = {s.n, s.k, s.c, s.r, s.s, s.p, s.q, s.stride_h, s.dilation_h};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        if (each[i] > SIZE_LIMIT)
            return err_set(ERR_LIMIT, "layer '%s' is too large for a cost model", name);
    complete(&s);
    if (!small_enough(&s))
        return err_set(ERR_LIMIT, "layer '%s' is too large for a cost model", name);
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

// All dimensions but the last are rows of the map, so that maps of any rank have two.
static void take_window(const Window *w, Shape *s) {
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

static Err conv(const Node *n, const Tensor *x, const Tensor *w, Shape *out) {
    Window win;
    TRY(window_read(n, x, w->dims + 2, &win));
    int64_t groups = attr_int(n, "group", 1);
    *out = (Shape){.n = x->dims[0], .k = w->dims[0] / groups, .c = w->dims[1], .groups = groups};
    take_window(&win, out);
    return ERR_OK;
}

// Each of the stride's phases is a plain convolution of the input with the weights that fall on it.
// Where the stride does not divide the kernel, every weight is a 1x1 convolution whose outputs are
// added up.
static Err transposed(const Node *n, const Tensor *x, const Tensor *w, Shape *out) {
    Window win;
    TRY(window_read_transposed(n, x, w->dims + 2, &win));
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

// b of rank 2 is one matrix for all rows of a; else each matrix of the output is a group.
static Shape matmul(const Tensor *a, const Tensor *b, const Tensor *out) {
    int64_t columns = b->rank > 1 ? last(b, 0) : 1;
    int32_t lead = out->rank - (b->rank > 1) - (a->rank > 1);
    if (b->rank <= 2)
        return product(1, count_to(out, out->rank - (b->rank > 1)), last(a, 0), columns);
    return product(count_to(out, lead), a->rank > 1 ? last(a, 1) : 1, last(a, 0), columns);
}

static Shape gemm(const Node *n, const Tensor *a, const Tensor *out) {
    Shape s = product(1, 1, a->dims[attr_int(n, "transA", 0) != 0 ? 0 : 1], out->dims[1]);
    s.n = out->dims[0];
    return s;
}

// The steps follow each other in truth; here they are rows of one product.
static Err recurrent(const OpCall *c, Shape *out) {
    Rnn r;
    if (c->node->op == OP_MsDynamicQuantizeLSTM) {
        RnnBytes plain;
        TRY(rnn_bytes(c, &plain));
        TRY(rnn_read(&plain.call, &r));
    } else {
        TRY(rnn_read(c, &r));
    }
    *out = product(r.directions, r.steps, r.input + r.hidden, times(r.gates, r.hidden));
    out->n = r.batch;
    return ERR_OK;
}

// Indices of both operands and the output are groups, of one operand rows or columns, and what is
// summed over is the input.
static Err einsum(const OpCall *c, Shape *out) {
    Einsum e;
    TRY(einsum_read(c, &e));
    if (e.operands != 2)
        return err_set(ERR_UNSUPPORTED, "Einsum of %u operands; cut it into products", e.operands);
    Shape s = product(1, 1, 1, 1);
    for (int32_t i = 0; i < e.n; i++) {
        bool in[2] = {false, false};
        for (int32_t o = 0; o < 2; o++)
            for (int32_t d = 0; d < c->in[o]->rank; d++) in[o] = in[o] || e.at[o][d] == i;
        int64_t *to = i >= e.n_out ? &s.c : in[0] && in[1] ? &s.groups : in[0] ? &s.p : &s.k;
        *to = times(*to, e.dims[i]);
    }
    *out = s;
    return ERR_OK;
}

static Err shape_of(const OpCall *c, const Tensor *out, Shape *s) {
    const Node          *n = c->node;
    const Tensor *const *in = c->in;
    switch (n->op) {
    case OP_Conv:
    case OP_MsFusedConv:
    case OP_ConvInteger: return conv(n, in[0], in[1], s);
    case OP_QLinearConv: return conv(n, in[0], in[3], s);
    case OP_ConvTranspose: return transposed(n, in[0], in[1], s);
    case OP_Gemm: *s = gemm(n, in[0], out); return ERR_OK;
    case OP_MatMul:
    case OP_MatMulInteger: *s = matmul(in[0], in[1], out); return ERR_OK;
    case OP_QLinearMatMul: *s = matmul(in[0], in[3], out); return ERR_OK;
    case OP_RNN:
    case OP_GRU:
    case OP_LSTM:
    case OP_MsDynamicQuantizeLSTM: return recurrent(c, s);
    case OP_Einsum: return einsum(c, s);
    default: *s = (Shape){0}; return ERR_OK;
    }
}

static bool all_known(const Special *g, const Node *n) {
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != NO_VALUE && !tensor_known(&g->values[n->in[i]])) return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != NO_VALUE && !tensor_known(&g->values[n->out[i]])) return false;
    return true;
}

static bool is_recurrent(OpId op) {
    return op == OP_RNN || op == OP_GRU || op == OP_LSTM || op == OP_MsDynamicQuantizeLSTM;
}

static bool is_product(OpId op) {
    switch (op) {
    case OP_Conv:
    case OP_MsFusedConv:
    case OP_ConvInteger:
    case OP_QLinearConv:
    case OP_ConvTranspose:
    case OP_Gemm:
    case OP_MatMul:
    case OP_MatMulInteger:
    case OP_QLinearMatMul:
    case OP_Einsum: return true;
    default: return is_recurrent(op);
    }
}

static Err add_node(List *l, const Special *g, const Node *n, const char *name) {
    const Tensor **in = arena_try_new(l->arena, const Tensor *, n->n_in);
    if (in == NULL) return err_set(ERR_LIMIT, "layer '%s' has too many inputs", name);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = n->in[i] != NO_VALUE ? &g->values[n->in[i]] : NULL;
    Shape  s;
    OpCall call = {.node = n, .in = in, .scratch = l->arena};
    if (n->out[0] == NO_VALUE && !is_recurrent(n->op)) return ERR_OK;
    Err e = shape_of(&call, n->out[0] != NO_VALUE ? &g->values[n->out[0]] : NULL, &s);
    return e == ERR_OK ? list_add(l, s, n, name) : err_add(e, "layer '%s'", name);
}

static Err add_graph(List *l, const Special *g) {
    for (uint32_t i = 0; i < g->graph->n_nodes; i++) {
        const Node *n = &g->graph->nodes[i];
        if (g->folded[i] || !is_product(n->op)) continue;
        if (!all_known(g, n))
            return err_set(ERR_UNSUPPORTED,
                           "layer '%s': its shape depends on inputs; fix the sizes in the file",
                           n->name);
        TRY(add_node(l, g, n, arena_str(l->arena, n->name)));
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
