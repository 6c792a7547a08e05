// Operators that select elements, gathers and scatters.
#include <string.h>

#include "base/work_stop.h"
#include "compile/interp/run_ops.h"
#include "kernel/ref/ref_gather.h"
#include "kernel/ref/ref_reduce.h"
#include "model/infer/selection.h"

Err run_nonzero(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    Selection     s;
    int64_t      *y = out->data, step = 1;
    TRY(selection_nonzero(c, x, &s));
    for (int32_t d = x->rank - 1; d >= 0; d--) {
        WORK_EACH (i, s.n) y[d * s.n + i] = s.at[i] / step % x->dims[d];
        step *= x->dims[d];
    }
    return ERR_OK;
}

// Gathers along the `axis` attribute; without it from the flattened tensor.
static Err gather_chosen(const OpCall *c, Selection s, Tensor *out) {
    Tensor  x = *c->in[0], at = tensor_of(DT_I64, 1, &s.n, s.at);
    int32_t axis = 0;
    if (attr_has(c->node, "axis")) {
        TRY(infer_axis(attr_int(c->node, "axis", 0), x.rank, &axis));
    } else {
        x.dims[0] = tensor_count(&x);
        x.rank = 1;
    }
    return ref_gather(&x, &at, axis, out);
}

Err run_compress(const OpCall *c, Tensor *out) {
    Selection s;
    TRY(selection_nonzero(c, c->in[1], &s));
    return gather_chosen(c, s, out);
}

Err run_unique(const OpCall *c, Tensor *out) {
    UniqueSelection u;
    TRY(selection_unique(c, &u));
    const int64_t *lists[] = {NULL, u.first.at, u.inverse.at, u.counts};
    for (uint32_t i = 1; i < 4 && i < c->node->n_out; i++)
        if (out[i].dims[0] > 0)
            memcpy(out[i].data, lists[i], (size_t)out[i].dims[0] * sizeof(int64_t));
    return gather_chosen(c, u.first, &out[0]);
}

Err run_topk(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    TRY(infer_axis(attr_int(c->node, "axis", -1), c->in[0]->rank, &axis));
    return ref_topk(c->in[0], axis, attr_int(c->node, "largest", 1) != 0, c->scratch, &out[0],
                    c->node->n_out > 1 ? &out[1] : NULL);
}

Err run_nms(const OpCall *c, Tensor *out) {
    Selection s;
    TRY(selection_nms(c, &s));
    if (s.n > 0) memcpy(out->data, s.at, (size_t)s.n * 3 * sizeof *s.at);
    return ERR_OK;
}

// Gathers and scatters.

static Err axis_of(const OpCall *c, int32_t *axis) {
    return infer_axis(attr_int(c->node, "axis", 0), c->in[0]->rank, axis);
}

Err run_gather(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    TRY(axis_of(c, &axis));
    return ref_gather(c->in[0], c->in[1], axis, out);
}

Err run_gather_elements(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    TRY(axis_of(c, &axis));
    return ref_gather_elements(c->in[0], c->in[1], axis, out);
}

Err run_gather_nd(const OpCall *c, Tensor *out) {
    return ref_gather_nd(c->in[0], c->in[1], (int32_t)attr_int(c->node, "batch_dims", 0), out);
}

static RefScatter scatter_reduction(const Node *n) {
    if (attr_is(n, "reduction", "add", false)) return REF_SCATTER_ADD;
    if (attr_is(n, "reduction", "mul", false)) return REF_SCATTER_MUL;
    if (attr_is(n, "reduction", "max", false)) return REF_SCATTER_MAX;
    return attr_is(n, "reduction", "min", false) ? REF_SCATTER_MIN : REF_SCATTER_SET;
}

Err run_scatter_elements(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    TRY(axis_of(c, &axis));
    TRY(run_same(c, out));
    return ref_scatter_elements(scatter_reduction(c->node), c->in[1], c->in[2], axis, out);
}

Err run_scatter_nd(const OpCall *c, Tensor *out) {
    TRY(run_same(c, out));
    return ref_scatter_nd(scatter_reduction(c->node), c->in[1], c->in[2], out);
}
