// Pooling and resizing of images.
#include "compile/interp/run_ops.h"
#include "compile/lower/lower.h"
#include "compile/spec.h"
#include "kernel/pool.h"
#include "kernel/resample.h"
#include "model/infer/infer.h"
#include "model/params/resize.h"
#include "model/params/sliding_window.h"

static bool pool_spec(const Ir *ir, const Node *n, const SlidingWindow *w, PoolKind kind, Pool *p) {
    const Tensor *x = lower_type(ir, n, 0);
    *p = (Pool){.kind = kind, .count_pad = attr_int(n, "count_include_pad", 0) != 0};
    if (!spec_window(w, &p->shape) || x->dims[0] * x->dims[1] > INT32_MAX) return false;
    p->shape.n = (uint32_t)x->dims[0];
    p->shape.ic = p->shape.oc = (uint32_t)x->dims[1];
    p->shape.groups = 1;
    for (int32_t i = 0; i < w->rank; i++)
        if (w->pad_end[i] < 0 || w->pad_end[i] > INT32_MAX) return false;
    p->pr = (uint32_t)w->pad_end[w->rank - 1];
    p->pb = w->rank > 1 ? (uint32_t)w->pad_end[w->rank - 2] : 0;
    return true;
}

static bool add_pool(Ir *ir, const Node *n, const SlidingWindow *w, PoolKind kind) {
    Pool p;
    if (!pool_spec(ir, n, w, kind, &p)) return false;
    lower_add(ir, n, 0, IR_POOL, 1, &p, sizeof p);
    return true;
}

// Whether every window has an element of the input: only then is its maximum defined.
static bool windows_are_inside(const ConvShape *s) {
    return s->pt < s->kh && s->pl < s->kw &&
           (uint64_t)(s->oh - 1) * s->sh < (uint64_t)s->ih + s->pt &&
           (uint64_t)(s->ow - 1) * s->sw < (uint64_t)s->iw + s->pl && s->dh == 1 && s->dw == 1;
}

// The largest byte, in any scale.
static bool add_byte_pool(Ir *ir, const Node *n, const SlidingWindow *w) {
    const ByteScale same = {.scale = 1, .is_signed = lower_type(ir, n, 0)->dtype == DT_I8};
    Int8PoolSpec    s = {.from = same, .to = same};
    if (!pool_spec(ir, n, w, POOL_MAX, &s.pool) || !windows_are_inside(&s.pool.shape)) return false;
    lower_add(ir, n, 0, IR_INT8_POOL, 1, &s, sizeof s);
    return true;
}

// The window of dimensions [from, to).
static SlidingWindow window_part(const SlidingWindow *w, int32_t from, int32_t to) {
    SlidingWindow p = {.rank = to - from};
    for (int32_t i = from; i < to; i++) {
        p.in[i - from] = w->in[i], p.out[i - from] = w->out[i];
        p.kernel[i - from] = w->kernel[i], p.stride[i - from] = w->stride[i];
        p.dilation[i - from] = w->dilation[i], p.pad[i - from] = w->pad[i];
        p.pad_end[i - from] = w->pad_end[i];
    }
    return p;
}

// A volume: each plane is pooled, then the results along the depth, a plane as one row.
static bool add_volume_pool(Ir *ir, const Node *n, const SlidingWindow *w, PoolKind kind) {
    const Tensor *x = lower_type(ir, n, 0);
    Pool          flat, deep;
    SlidingWindow sides = window_part(w, 1, 3), depth = window_part(w, 0, 2);
    Tensor        between = *x;
    between.dims[3] = w->out[1], between.dims[4] = w->out[2];
    depth.in[1] = depth.out[1] = w->out[1] * w->out[2];
    depth.kernel[1] = depth.stride[1] = depth.dilation[1] = 1;
    depth.pad[1] = depth.pad_end[1] = 0;
    if (!spec_dim_fits(w->in[0]) || tensor_count(&between) > INT32_MAX) return false;
    if (!pool_spec(ir, n, &sides, kind, &flat) || !pool_spec(ir, n, &depth, kind, &deep))
        return false;
    flat.planes = (uint32_t)w->in[0];
    Pool *spec = arena_new(ir->arena, Pool, 1);
    *spec = flat;
    uint32_t x_in = lower_in(ir, n, 0);
    uint32_t mid = ir_computed(ir, ir->values[x_in].name, between);
    IrLayer *l = ir_layer(ir, IR_POOL, n, 1, 1);
    l->in[0] = x_in;
    l->out[0] = mid;
    l->spec = spec;
    lower_add(ir, n, 0, IR_POOL, 1, &deep, sizeof deep)->in[0] = mid;
    return true;
}

bool lower_pool(Ir *ir, const Node *n) {
    const DType   t = lower_type(ir, n, 0)->dtype;
    SlidingWindow w;
    if (!lower_single_output(n)) return false;
    if (sliding_window_read(n, lower_type(ir, n, 0), NULL, &w) != ERR_OK) return false;
    if (n->op == OP_MaxPool && (t == DT_U8 || t == DT_I8)) return add_byte_pool(ir, n, &w);
    if (t != DT_F32) return false;
    const PoolKind kind = n->op == OP_MaxPool ? POOL_MAX : POOL_AVERAGE;
    if (w.rank == 3) return add_volume_pool(ir, n, &w, kind);
    return add_pool(ir, n, &w, kind);
}

bool lower_pool_global(Ir *ir, const Node *n) {
    const Tensor *x = lower_type(ir, n, 0);
    SlidingWindow w;
    if (!lower_is_float(ir, n, 0) || x->rank < 3) return false;
    sliding_window_whole(x, &w);
    return add_pool(ir, n, &w, n->op == OP_GlobalMaxPool ? POOL_MAX : POOL_AVERAGE);
}

static uint32_t add_expr(Ir *ir, const Node *n, Tensor type, const Expr *e) {
    uint32_t out = ir_computed(ir, n->name, type);
    IrLayer *l = ir_layer(ir, IR_ELEMENTWISE, n, 0, 1);
    l->out[0] = out;
    l->expr = *e;
    return out;
}

// The mean of the squares over `size` channels; the channels are the rows of one image.
static uint32_t mean_square(Ir *ir, const Node *n, uint32_t size) {
    const Tensor *x = lower_type(ir, n, 0);
    Tensor        image = {.dtype = DT_F32, .rank = 4, .dims = {x->dims[0], 1, x->dims[1], 1}};
    for (int32_t i = 2; i < x->rank; i++) image.dims[3] *= x->dims[i];
    Pool p = {.kind = POOL_AVERAGE, .count_pad = true};
    p.shape = (ConvShape){.n = (uint32_t)x->dims[0], .ic = 1, .oc = 1, .groups = 1};
    p.shape.ih = p.shape.oh = (uint32_t)x->dims[1];
    p.shape.iw = p.shape.ow = (uint32_t)image.dims[3];
    p.shape.kh = size;
    p.shape.kw = p.shape.sh = p.shape.sw = p.shape.dh = p.shape.dw = 1;
    p.shape.pt = (size - 1) / 2, p.pb = size / 2;
    Expr square = {.n_args = 1, .args = {lower_in(ir, n, 0)}};
    expr_step(&square, (ExprStep){.op = EWISE_SQUARE, .a = EXPR_ARG(0)});
    uint32_t squares = lower_reshaped(ir, n, add_expr(ir, n, *x, &square), image);
    uint32_t mean = ir_computed(ir, n->name, image);
    IrLayer *l = ir_layer(ir, IR_POOL, n, 1, 1);
    Pool    *own = arena_new(ir->arena, Pool, 1);
    *own = p;
    l->in[0] = squares;
    l->out[0] = mean;
    l->spec = own;
    return lower_reshaped(ir, n, mean, *x);
}

// x / (bias + alpha mean)^beta. The usual beta of 3/4 is two square roots.
bool lower_lrn(Ir *ir, const Node *n) {
    const Tensor *x = lower_type(ir, n, 0);
    int64_t       size = attr_int(n, "size", 1);
    float         beta = attr_float(n, "beta", 0.75f);
    if (!lower_is_float(ir, n, 0) || x->rank < 3 || tensor_count(x) > INT32_MAX) return false;
    for (int32_t i = 0; i < x->rank; i++)
        if (!spec_dim_fits(x->dims[i])) return false;
    if (!spec_dim_fits(size) || !spec_dim_fits(tensor_count(x) / x->dims[0] / x->dims[1]))
        return false;
    Tensor power = {.dtype = DT_F32};
    if (tensor_alloc(&power, ir->arena) != ERR_OK) return false;
    *(float *)power.data = beta;
    uint32_t mean = mean_square(ir, n, (uint32_t)size);
    Expr     e = {.n_args = 2, .args = {lower_in(ir, n, 0), mean}};
    expr_step(&e, (ExprStep){.op = EWISE_AFFINE,
                             .a = EXPR_ARG(1),
                             .p = attr_float(n, "alpha", 1e-4f),
                             .q = attr_float(n, "bias", 1)});
    if (beta == 0.75f) {
        expr_step(&e, (ExprStep){.op = EWISE_SQRT, .a = 0});
        expr_step(&e, (ExprStep){.op = EWISE_SQRT, .a = 1});
        expr_step(&e, (ExprStep){.op = EWISE_MUL, .a = 1, .b = 2});
    } else {
        e.args[e.n_args++] = ir_const(ir, n->name, power);
        expr_step(&e, (ExprStep){.op = EWISE_POW, .a = 0, .b = EXPR_ARG(2)});
    }
    expr_step(&e, (ExprStep){.op = EWISE_DIV, .a = EXPR_ARG(0), .b = expr_result(&e)});
    lower_add(ir, n, 0, IR_ELEMENTWISE, 0, NULL, 0)->expr = e;
    return true;
}

// Resizes height and width by tables of taps; batch and channels must keep their size.
bool lower_resize(Ir *ir, const Node *n) {
    const Tensor *x = lower_type(ir, n, 0), *y = &ir->shaped->values[n->out[0]], *in[4] = {0};
    RefResize     p;
    OpCall        c = {.node = n, .in = in};
    if (!lower_is_float(ir, n, 0) || x->rank != 4 || tensor_count(y) > INT32_MAX) return false;
    for (uint32_t i = 0; i < n->n_in && i < 4; i++) in[i] = lower_type(ir, n, i);
    for (uint32_t i = 1; i < n->n_in && i < 4; i++)
        if (in[i] != NULL && in[i]->data == NULL && tensor_count(in[i]) > 0) return false;
    if (run_resize_params(&c, 4, &p) != ERR_OK) return false;
    if (!resample_keeps(&p, 0, x->dims[0]) || !resample_keeps(&p, 1, x->dims[1])) return false;
    ResampleTap *rows = arena_new(ir->arena, ResampleTap, (size_t)y->dims[2]);
    ResampleTap *columns = arena_new(ir->arena, ResampleTap, (size_t)y->dims[3]);
    if (!resample_axis(&p, 2, x->dims[2], y->dims[2], rows)) return false;
    if (!resample_axis(&p, 3, x->dims[3], y->dims[3], columns)) return false;
    Resample r = {.n = (uint32_t)x->dims[0],
                  .c = (uint32_t)x->dims[1],
                  .ih = (uint32_t)x->dims[2],
                  .iw = (uint32_t)x->dims[3],
                  .oh = (uint32_t)y->dims[2],
                  .ow = (uint32_t)y->dims[3],
                  .nearest = p.mode == REF_RESIZE_NEAREST,
                  .rows = rows,
                  .columns = columns};
    lower_add(ir, n, 0, IR_RESIZE, 1, &r, sizeof r);
    return true;
}
