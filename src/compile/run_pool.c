#include "compile/run.h"
#include "compile/run_window.h"
#include "kernel/ref_pool.h"

static RefPoolKind pool_kind(OpId op) {
    switch (op) {
    case OP_AveragePool:
    case OP_GlobalAveragePool: return REF_POOL_AVERAGE;
    case OP_LpPool:
    case OP_GlobalLpPool: return REF_POOL_LP;
    default: return REF_POOL_MAX;
    }
}

static RefPool pool_params(const OpCall *c, const Window *w) {
    const Attr *p = attr_find(c->node, "p");
    double      norm = (double)attr_int(c->node, "p", 2);
    if (p != NULL && p->kind == ATTR_FLOAT) norm = (double)p->v.f;
    return (RefPool){
        .kind = pool_kind(c->node->op),
        .window = run_window(w),
        .p = norm,
        .count_pad = attr_int(c->node, "count_include_pad", 0) != 0,
        .column_major = attr_int(c->node, "storage_order", 0) != 0,
    };
}

Err run_pool(const OpCall *c, Tensor *out) {
    Window w;
    TRY(window_read(c->node, c->in[0], NULL, &w));
    RefPool p = pool_params(c, &w);
    return ref_pool(&p, c->in[0], &out[0], c->node->n_out > 1 ? &out[1] : NULL, c->scratch);
}

Err run_pool_global(const OpCall *c, Tensor *out) {
    Window w;
    window_whole(c->in[0], &w);
    RefPool p = pool_params(c, &w);
    return ref_pool(&p, c->in[0], &out[0], NULL, c->scratch);
}

Err run_unpool(const OpCall *c, Tensor *out) {
    Window w;
    TRY(window_read_unpool(c->node, c->in[0], &w));
    return ref_unpool(c->in[0], c->in[1], w.in, &out[0]);
}

Err run_pool_roi(const OpCall *c, Tensor *out) {
    double scale = (double)attr_float(c->node, "spatial_scale", 1);
    return ref_roi_max(scale, c->in[0], c->in[1], &out[0]);
}
