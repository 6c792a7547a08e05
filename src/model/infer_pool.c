#include <inttypes.h>

#include "model/infer.h"
#include "model/window.h"

static uint64_t pool_types(OpId op) {
    uint64_t bytes = dtype_bit(DT_U8) | dtype_bit(DT_I8);
    return op == OP_MaxPool ? TYPES_FLOAT | bytes : TYPES_FLOAT;
}

// LpPool and GlobalLpPool: p is an integer since version 2, a float before.
static Err pool_norm(const OpCall *c) {
    double      p = (double)attr_int(c->node, "p", 2);
    const Attr *a = attr_find(c->node, "p");
    if (a != NULL && a->kind == ATTR_FLOAT) p = (double)a->v.f;
    if (p >= 1 && p <= 1024) return ERR_OK;
    return err_set(ERR_INVALID, "p is %g, must be in 1..1024", p);
}

Err infer_pool(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    Window        w;
    TRY(infer_need(x, pool_types(c->node->op), "X"));
    TRY(window_read(c->node, x, NULL, &w));
    if (c->node->op == OP_LpPool) TRY(pool_norm(c));
    out[0].dtype = x->dtype;
    out[0].rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) out[0].dims[i] = i < 2 ? x->dims[i] : w.out[i - 2];
    if (c->node->n_out > 1) {
        out[1] = out[0];
        out[1].dtype = DT_I64;
    }
    return ERR_OK;
}

Err infer_pool_global(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    TRY(infer_need(x, TYPES_FLOAT, "X"));
    if (x->rank < 2)
        return err_set(ERR_INVALID, "the input has rank %d, needs at least 2", x->rank);
    if (c->node->op == OP_GlobalLpPool) TRY(pool_norm(c));
    out->dtype = x->dtype;
    out->rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) out->dims[i] = i < 2 ? x->dims[i] : 1;
    return ERR_OK;
}

static Err unpool_shape(const Tensor *shape, const Tensor *x, Tensor *out) {
    uint32_t n = 0;
    if (shape->data == NULL) {
        out->rank = RANK_UNKNOWN;
        return ERR_OK;
    }
    TRY(infer_read_ints(shape, out->dims, TENSOR_MAX_RANK, &n));
    if (n != (uint32_t)x->rank || out->dims[0] != x->dims[0] || out->dims[1] != x->dims[1])
        return err_set(ERR_INVALID, "output_shape does not fit an input of rank %d", x->rank);
    for (int32_t i = 2; i < x->rank; i++)
        if (out->dims[i] < 1)
            return err_set(ERR_INVALID, "output_shape holds %" PRId64, out->dims[i]);
    return ERR_OK;
}

Err infer_unpool(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *indices = c->in[1], *shape = infer_in(c, 2);
    Window        w;
    TRY(infer_need(x, TYPES_FLOAT, "X"));
    TRY(infer_need(indices, dtype_bit(DT_I64), "I"));
    if (!tensor_same_shape(x, indices))
        return err_set(ERR_INVALID, "X and I have different shapes");
    TRY(window_read_unpool(c->node, x, &w));
    out->dtype = x->dtype;
    out->rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) out->dims[i] = i < 2 ? x->dims[i] : w.in[i - 2];
    if (shape == NULL) return ERR_OK;
    TRY(infer_need(shape, dtype_bit(DT_I64), "output_shape"));
    return unpool_shape(shape, x, out);
}

Err infer_pool_roi(const OpCall *c, Tensor *out) {
    const Tensor  *x = c->in[0], *rois = c->in[1];
    uint32_t       n = 0;
    const int64_t *size = attr_ints(c->node, "pooled_shape", &n);
    TRY(infer_need(x, TYPES_FLOAT, "X"));
    TRY(infer_need(rois, dtype_bit(x->dtype), "rois"));
    if (x->rank != 4 || rois->rank != 2 || rois->dims[1] != 5)
        return err_set(ERR_INVALID, "needs X of rank 4 and rois of shape Nx5");
    if (n != 2 || size[0] < 1 || size[1] < 1 || size[0] > INT32_MAX || size[1] > INT32_MAX)
        return err_set(ERR_INVALID, "pooled_shape must hold two sizes of at least 1");
    out->dtype = x->dtype;
    out->rank = 4;
    out->dims[0] = rois->dims[0];
    out->dims[1] = x->dims[1];
    out->dims[2] = size[0];
    out->dims[3] = size[1];
    return ERR_OK;
}
