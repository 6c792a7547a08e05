// Operators that read and write by index, on ref_gather.
#include "compile/run.h"
#include "kernel/ref_gather.h"

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

static RefScatter how_of(const Node *n) {
    if (attr_is(n, "reduction", "add", false)) return REF_SCATTER_ADD;
    if (attr_is(n, "reduction", "mul", false)) return REF_SCATTER_MUL;
    if (attr_is(n, "reduction", "max", false)) return REF_SCATTER_MAX;
    return attr_is(n, "reduction", "min", false) ? REF_SCATTER_MIN : REF_SCATTER_SET;
}

Err run_scatter_elements(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    TRY(axis_of(c, &axis));
    TRY(run_same(c, out));
    return ref_scatter_elements(how_of(c->node), c->in[1], c->in[2], axis, out);
}

Err run_scatter_nd(const OpCall *c, Tensor *out) {
    TRY(run_same(c, out));
    return ref_scatter_nd(how_of(c->node), c->in[1], c->in[2], out);
}
