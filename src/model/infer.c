#include "model/infer.h"

#include <inttypes.h>

const Tensor *infer_in(const OpCall *c, uint32_t i) { return i < c->node->n_in ? c->in[i] : NULL; }

Err infer_node(const OpCall *c, Tensor *out) {
    const OpInfo *op = op_info(c->node->op);
    Err           e = op->infer(c, out);
    for (uint32_t i = 0; e == ERR_OK && i < c->node->n_out; i++) {
        size_t bytes = 0;
        out[i].data = NULL;
        if (tensor_known(&out[i])) e = tensor_measure(&out[i], &bytes);
    }
    return e == ERR_OK ? e : op_failed(c->node, e);
}

Err infer_axis(int64_t axis, int32_t rank, int32_t *out) {
    if (axis < -rank || axis >= rank)
        return err_set(ERR_INVALID, "axis %" PRId64 " is outside a tensor of rank %d", axis, rank);
    *out = (int32_t)(axis < 0 ? axis + rank : axis);
    return ERR_OK;
}

Err infer_broadcast(const Tensor *a, Tensor *out) {
    int32_t rank = a->rank > out->rank ? a->rank : out->rank;
    Tensor  joined = *out;
    joined.rank = rank;
    for (int32_t i = 1; i <= rank; i++) {
        int64_t x = i <= a->rank ? a->dims[a->rank - i] : 1;
        int64_t y = i <= out->rank ? out->dims[out->rank - i] : 1;
        if (x != y && x != 1 && y != 1)
            return err_set(ERR_INVALID,
                           "shapes do not broadcast: %" PRId64 " against %" PRId64
                           " in dimension %d from the end",
                           x, y, i);
        joined.dims[rank - i] = x == 1 ? y : x;
    }
    *out = joined;
    return ERR_OK;
}

Err infer_read_ints(const Tensor *t, int64_t *out, uint32_t max, uint32_t *n) {
    if (t->rank > 1 || (t->dtype != DT_I64 && t->dtype != DT_I32))
        return err_set(ERR_INVALID, "a list of integers has type %s and rank %d",
                       dtype_name(t->dtype), t->rank);
    int64_t count = tensor_count(t);
    if (count > (int64_t)max)
        return err_set(ERR_UNSUPPORTED, "a list of %" PRId64 " integers; at most %u are handled",
                       count, max);
    for (int64_t i = 0; i < count; i++)
        out[i] = t->dtype == DT_I64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
    *n = (uint32_t)count;
    return ERR_OK;
}

Err infer_need(const Tensor *t, uint64_t types, const char *what) {
    if ((types & dtype_bit(t->dtype)) != 0) return ERR_OK;
    return err_set(ERR_UNSUPPORTED, "type %s of input %s is not supported", dtype_name(t->dtype),
                   what);
}

Err infer_same(const OpCall *c, Tensor *out) {
    out[0] = *c->in[0];
    out[0].data = NULL;
    return ERR_OK;
}

Err infer_flow(const OpCall *c, Tensor *out) {
    (void)out;
    return err_set(ERR_UNSUPPORTED, "%s needs the graph around it", op_info(c->node->op)->name);
}
