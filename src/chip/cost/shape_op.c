#include "chip/cost/shape_op.h"

#include "model/params/attention.h"
#include "model/attr.h"
#include "model/params/einsum.h"
#include "model/params/rnn.h"
#include "model/params/sliding_window.h"

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
// the stride does not divide the kernel, every weight is a 1x1 convolution whose outputs are added.
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

bool shape_op(OpId op) { return row_of(op) != NULL; }

Err shape_parts(ShapeCall *c, Shape *out, uint32_t *parts) {
    const Row *row = row_of(c->call.node->op);
    *parts = 0;
    if (row == NULL) return ERR_OK;
    c->second = c->call.in[row->second];
    for (uint32_t i = 0; i < SHAPE_PARTS; i++) out[i] = (Shape){0};
    return row->fn(c, out, parts);
}
